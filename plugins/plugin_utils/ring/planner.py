"""inventory + bindings -> plan: a pure function, proved before it returns (DESIGN section 4)."""

from __future__ import annotations

import dataclasses
import uuid
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents, marks, tags
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.drivers import DRIVERS, Driver
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import (
    FUNCTIONS,
    ROLE_BY_NAME,
    ROLE_BY_PLACE,
    ROLES,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import (
    BaselineRoute,
    Filter,
    ForwardRule,
    Hairpin,
    HostPlan,
    Lane,
    LaneEnd,
    LaneRelay,
    Link,
    Management,
    MarkerRule,
    MeshRoute,
    Neighbour,
    Peer,
    Qdisc,
    QueueShare,
    Sysctl,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import (
    Cable,
    CableEnd,
    CableSubnets,
    Counts,
    Degraded,
    Queue,
    RingPlan,
)

from . import addressing, checks, degraded, lanes, layouts, proof
from .bindings import Bindings, BoundEndpoint, needed_roles
from .errors import RingError
from .inventory import Inventory, management_is_fabric

MTU = 9000
HAIRPIN_QUEUE_SIZE = 8192
HAIRPIN_NUM_QUEUES = 4
OPEN_DRIVER = "mlx5"
"""Driver that an offline plan assumes."""
PROFILE_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "sparkring.cluster/profile")


def plan(inventory: Inventory, bindings: Bindings | None, lost: degraded.Lost = degraded.NOTHING) -> RingPlan:
    """The plan of one ring; without bindings MACs and identities stay open and it may not be applied.

    With something lost it is the plan of the line that is left. Raises RingError when inventory and bindings do not
    fit each other or the plan does not hold.
    """
    if bindings is not None:
        _check_bindings(inventory, bindings)
    rest = degraded.left(inventory, lost)
    made = _Planner(inventory, bindings, rest.shape).ring_plan()
    if rest.shape.kept is not None:
        whole = _Planner(inventory, bindings, inventory.shape).ring_plan().counts
        made = dataclasses.replace(made, degraded=_degraded(inventory, rest, made.counts, whole))
    proof.prove(made)
    digest = documents.digest(made)
    hosts = {name: dataclasses.replace(host, plan_digest=digest) for name, host in made.hosts.items()}
    return dataclasses.replace(made, digest=digest, hosts=hosts)


def _check_bindings(inventory: Inventory, bindings: Bindings) -> None:
    ring, names = inventory.ring, [host.name for host in inventory.hosts]
    if set(bindings.hosts) != set(names):
        odd = sorted(set(bindings.hosts) ^ set(names))
        raise RingError(
            f"Ring {ring}: inventory and bindings do not name the same hosts ({', '.join(odd)}); run rebind."
        )
    for position, host in enumerate(inventory.hosts):
        bound = bindings.hosts[host.name]
        if bound.driver not in DRIVERS:
            raise RingError(f"Ring {ring}: driver {bound.driver} of {host.name} is unknown; run rebind.")
        missing = [role for role in needed_roles(inventory, position) if role not in bound.endpoints]
        if missing:
            raise RingError(f"Ring {ring}: the bindings of {host.name} lack {', '.join(missing)}; run rebind.")
        management = bound.management
        if management.netdev in {endpoint.netdev for endpoint in bound.endpoints.values()}:
            raise RingError(management_is_fabric(host.name, management.netdev))
        network = IPv4Network((management.address, management.prefix), strict=False)
        if inventory.shape.cables and network.overlaps(inventory.network):
            raise RingError(
                f"Ring {ring}: the management network {network} of {host.name} overlaps the supernet "
                f"{inventory.network}; choose another sparkring_supernet."
            )


def _degraded(inventory: Inventory, rest: degraded.Left, counts: Counts, whole: Counts) -> Degraded:
    names = [host.name for host in inventory.hosts]
    return Degraded(
        cables=rest.lost.cables,
        hosts=rest.lost.hosts,
        out=[name for place, name in enumerate(names) if place not in rest.shape.members],
        line=[names[position] for position in rest.shape.line],
        like=rest.shape.like,
        sentences=degraded.sentences(inventory, rest, counts, whole),
    )


class _Planner:
    """One ring's planning: geometry by position, names and MACs from the bindings."""

    def __init__(self, inventory: Inventory, bindings: Bindings | None, shape: layouts.Layout) -> None:
        self.inventory = inventory
        self.bindings = bindings
        self.shape = shape
        self.members = shape.members or tuple(range(len(inventory.hosts)))
        self.names = [host.name for host in inventory.hosts]
        self.endpoints = [self._endpoints(name) for name in self.names]
        drivers = [bindings.hosts[name].driver if bindings else OPEN_DRIVER for name in self.names]
        self.drivers: list[Driver] = [DRIVERS[name] for name in drivers]
        self.addressing = addressing.of(inventory, shape, bindings)
        self.addresses = self.addressing.addresses
        self.lanes = lanes.lane_paths(self.shape)
        self.loads = lanes.queue_loads(self.lanes)
        self.shares = lanes.queue_shares(self.shape, self.lanes)

    def _endpoints(self, name: str) -> dict[str, BoundEndpoint]:
        if self.bindings is not None:
            return self.bindings.hosts[name].endpoints
        return {
            role.name: BoundEndpoint(netdev=role.netdev, rdma_device=role.rdma_device, mac="", bdf=None)
            for role in ROLES
        }

    def endpoint(self, position: int, port: int, function: str) -> BoundEndpoint:
        """Hardware of one endpoint."""
        return self.endpoints[position][ROLE_BY_PLACE[port, function].name]

    def ring_plan(self) -> RingPlan:
        """The whole ring, digests empty."""
        hosts = {self.names[position]: self._host(position) for position in self.members}
        research = self.shape.max_relays > tags.QUALIFIED_RELAYS
        return RingPlan(
            schema=documents.PLAN,
            ring=self.inventory.ring,
            layout=self.shape.name,
            supernet=str(self.inventory.network)
            if len(self.addressing.adopted) < len(self.addressing.subnets)
            else None,
            digest="",
            bound=self.bindings is not None,
            research=research,
            blockers=self._blockers(research),
            counts=self._counts(list(hosts.values())),
            cables=[self._cable(cable) for cable in self.shape.cables],
            queues=[self._queue(key) for key in self.shares],
            hosts=hosts,
        )

    def _blockers(self, research: bool) -> list[str]:
        ring = self.inventory.ring
        found = []
        if self.bindings is None:
            found.append(f"Ring {ring} is not bound to hardware: run bind, then plan.")
        if research and not self.inventory.allow_research:
            found.append(
                f"Ring {ring} needs {self.shape.max_relays} relays between its ends, and more than "
                f"{tags.QUALIFIED_RELAYS} are research: set sparkring_allow_research to accept that."
            )
        return found

    def _cable(self, cable: layouts.Cable) -> Cable:
        first, second = (CableEnd(self.names[position], port) for position, port in (cable.first, cable.second))
        subnets = [str(self.addressing.subnets[cable.index, function]) for function in FUNCTIONS]
        return Cable(cable.index, first, second, CableSubnets(*subnets))

    def _queue_names(self, key: lanes.QueueKey) -> tuple[str, str, str]:
        position, port, function = key
        ingress, egress = (self.endpoint(position, side, function).netdev for side in (port, 1 - port))
        return f"queue/{self.names[position]}/{ingress}>{egress}", ingress, egress

    def _queue(self, key: lanes.QueueKey) -> Queue:
        name, ingress, egress = self._queue_names(key)
        shares = {self.names[origin]: size for origin, size in self.shares[key].items()}
        return Queue(name, self.names[key[0]], ingress, egress, self.loads[key], shares)

    def _host(self, position: int) -> HostPlan:
        name, driver = self.names[position], self.drivers[position]
        links = self._links(position)
        routes, sysctls, rules = self._routes(position), self._sysctls(position), self._forward_rules(position)
        mesh_routes, neighbours, markers = self._origin(position)
        filters = self._filters(position)
        hairpin = Hairpin(bool(filters) and driver.needs_hairpin, HAIRPIN_QUEUE_SIZE, HAIRPIN_NUM_QUEUES)
        found = [
            *checks.of_links(links, driver),
            *checks.of_baseline(routes, sysctls, rules),
            *checks.of_hairpin(links, hairpin),
            *checks.of_mesh(mesh_routes, neighbours, filters, markers, driver),
            *checks.of_pings(self._far_addresses(position)),
        ]
        return HostPlan(
            schema=documents.HOST_PLAN,
            ring=self.inventory.ring,
            layout=self.shape.like,
            host=name,
            position=position,
            plan_digest="",
            driver=driver.name,
            identity=self.bindings.hosts[name].identity if self.bindings else "",
            management=self._management(position),
            links=links,
            routes=routes,
            sysctls=sysctls,
            forward_rules=rules,
            mesh_routes=mesh_routes,
            neighbours=neighbours,
            qdiscs=self._qdiscs(filters, markers, driver),
            filters=filters,
            marker_rules=markers,
            hairpin=hairpin,
            units=self._units(links, markers, hairpin),
            lanes=self._lanes(position),
            shares=[
                QueueShare(self._queue_names(key)[0], origins[position])
                for key, origins in self.shares.items()
                if position in origins
            ],
            peers=[
                Peer(self.names[place], place, self._management(place).address)
                for place in self.members
                if place != position
            ],
            checks=found,
        )

    def _management(self, position: int) -> Management:
        if self.bindings is None:
            host = self.inventory.hosts[position]
            return Management(host.management_interface or "", host.address, 0)
        bound = self.bindings.hosts[self.names[position]].management
        return Management(bound.netdev, bound.address, bound.prefix)

    def _links(self, position: int) -> list[Link]:
        ring, name = self.inventory.ring, self.names[position]
        links = []
        for role in ROLES:
            place = (position, role.port)
            if place not in self.shape.wiring:
                continue
            endpoint = self.endpoints[position][role.name]
            peer, peer_port = self.shape.wiring[place]
            subnet = (self.shape.cable_at[place].index, role.function)
            own = self.addresses[position, role.port, role.function]
            links.append(
                Link(
                    id=f"link/{role.name}",
                    role=role.name,
                    port=role.port,
                    function=role.function,
                    cable=self.shape.cable_at[place].index,
                    netdev=endpoint.netdev,
                    rdma_device=endpoint.rdma_device,
                    mac=endpoint.mac,
                    bdf=endpoint.bdf,
                    address=f"{own}/{self.addressing.subnets[subnet].prefixlen}",
                    mtu=MTU,
                    profile=marks.profile_name(ring, role.name),
                    profile_uuid=str(uuid.uuid5(PROFILE_NAMESPACE, f"{ring}/{name}/{role.name}")),
                    peer_host=self.names[peer],
                    peer_address=self.addresses[peer, peer_port, role.function],
                    adopted=subnet in self.addressing.adopted,
                )
            )
        return links

    def _routes(self, position: int) -> list[BaselineRoute]:
        routes = []
        for cable in self.shape.cables:
            hop = self.shape.way_to_cable(position, cable)
            if hop is None:
                continue
            for function in FUNCTIONS:
                subnet = str(self.addressing.subnets[cable.index, function])
                via, own = (
                    self.addresses[hop.end, hop.in_port, function],
                    self.endpoint(position, hop.out_port, function),
                )
                routes.append(BaselineRoute(f"route/{subnet}", subnet, via, own.netdev))
        return routes

    def _forwards(self, position: int) -> bool:
        """Whether a host stands between others: both of its ports are cabled."""
        return self.shape.ports(position) == list(layouts.PORTS)

    def _sysctls(self, position: int) -> list[Sysctl]:
        if not self._forwards(position):
            return []
        return [
            Sysctl(f"sysctl/{key}", key, value)
            for role in ROLES
            for setting, value in (("forwarding", "1"), ("rp_filter", "0"))
            for key in [f"net/ipv4/conf/{self.endpoints[position][role.name].netdev}/{setting}"]
        ]

    def _forward_rules(self, position: int) -> list[ForwardRule]:
        if not self._forwards(position):
            return []
        rules = []
        for function in FUNCTIONS:
            for port in layouts.PORTS:
                ingress, egress = (self.endpoint(position, side, function).netdev for side in (port, 1 - port))
                rules.append(ForwardRule(f"forward/{ingress}>{egress}", ingress, egress))
        return rules

    def _origin(self, position: int) -> tuple[list[MeshRoute], list[Neighbour], list[MarkerRule]]:
        """What a host needs to send to hosts behind relays."""
        routes, neighbours, markers = [], [], []
        for path in sorted(
            (
                path
                for (start, _end), paths in self.shape.paths.items()
                if start == position
                for path in paths
                if len(path) > 1
            ),
            key=lambda path: (path[-1].end, path[0].out_port),
        ):
            first, last = path[0], path[-1]
            for function in FUNCTIONS:
                target = self.addresses[last.end, last.in_port, function]
                own = self.endpoint(position, first.out_port, function)
                source = self.addresses[position, first.out_port, function]
                mac = self.endpoint(first.end, first.in_port, function).mac
                tag = tags.hexadecimal(tags.tag(len(path) - 1))
                routes.append(MeshRoute(f"mesh-route/{target}", f"{target}/32", own.netdev, source))
                neighbours.append(Neighbour(f"neighbour/{target}", target, own.netdev, mac))
                markers.append(
                    MarkerRule(f"marker/{own.rdma_device}/{target}", own.rdma_device, own.netdev, target, tag)
                )
        return routes, neighbours, markers + self._source_port_rules(position)

    def _source_port_rules(self, position: int) -> list[MarkerRule]:
        """The older rule on each device that a relayed lane leaves by; a line that is left has none."""
        if not self.inventory.source_port_rule or self.shape.kept is not None:
            return []
        match = f"{marks.SOURCE_PORT_MATCH}{marks.OLDER_SOURCE_PORT}"
        rules = []
        for lane in self.lanes:
            if lane.start == position and len(lane.path) > 1:
                own = self.endpoint(position, lane.path[0].out_port, lane.function)
                tag = tags.hexadecimal(tags.tag(len(lane.path) - 1))
                rules.append(MarkerRule(f"marker/{own.rdma_device}/{match}", own.rdma_device, own.netdev, match, tag))
        return rules

    def _filters(self, position: int) -> list[Filter]:
        """Relay filters: for each ingress device, one for each count of relays left that arrives there."""
        arriving: set[tuple[int, int]] = set()
        for paths in self.shape.paths.values():
            for path in paths:
                for crossed, hop in enumerate(path[:-1]):
                    if hop.end == position:
                        arriving.add((hop.in_port, len(path) - 1 - crossed))
        filters = []
        for role in ROLES:
            for port, left in sorted(arriving):
                if port != role.port:
                    continue
                ingress = self.endpoints[position][role.name].netdev
                next_end, next_port = self.shape.wiring[position, 1 - port]
                tag = tags.hexadecimal(tags.tag(left))
                filters.append(
                    Filter(
                        id=f"filter/{ingress}/{tag}",
                        netdev=ingress,
                        tag=tag,
                        preference=marks.INGRESS_PREFERENCE_BASE + left,
                        handle=left,
                        set_mac=self.endpoint(next_end, next_port, role.function).mac,
                        set_tag=tags.hexadecimal(tags.tag(left - 1)),
                        egress=self.endpoint(position, 1 - port, role.function).netdev,
                        in_nic=self.drivers[position].relays_in_nic,
                    )
                )
        return filters

    @staticmethod
    def _qdiscs(filters: list[Filter], markers: list[MarkerRule], driver: Driver) -> list[Qdisc]:
        netdevs = [item.netdev for item in filters]
        if not driver.marks_in_nic:
            netdevs += [rule.netdev for rule in markers]
        return [Qdisc(f"qdisc/{netdev}", netdev) for netdev in sorted(set(netdevs))]

    @staticmethod
    def _units(links: list[Link], markers: list[MarkerRule], hairpin: Hairpin) -> list[str]:
        if not links:
            return []
        first = [marks.HAIRPIN_UNIT] if hairpin.needed else []
        return [
            *first,
            marks.FABRIC_UNIT,
            *(marks.marker_unit(device) for device in sorted({m.rdma_device for m in markers})),
            marks.RECONCILE_TIMER,
        ]

    def _far_addresses(self, position: int) -> list[str]:
        """Fabric addresses of all other hosts."""
        if self.shape.cables:
            far = [text for (place, _port, _function), text in self.addresses.items() if place != position]
        else:
            far = [
                str(IPv4Interface(text).ip)
                for place, host in enumerate(self.inventory.hosts)
                if place != position
                for text in host.endpoints.values()
            ]
        return [str(item) for item in sorted(map(IPv4Address, far))]

    def _lanes(self, position: int) -> list[Lane]:
        if not self.shape.cables:
            return self._switched_lanes(position)
        return [self._lane(lane) for lane in self.lanes if lane.start == position]

    def _lane(self, lane: lanes.LanePath) -> Lane:
        first, last = lane.path[0], lane.path[-1]
        crossed = []
        for index, hop in enumerate(lane.path[:-1]):
            ingress = self.endpoint(hop.end, hop.in_port, lane.function).netdev
            egress = self.endpoint(hop.end, 1 - hop.in_port, lane.function).netdev
            tag = tags.hexadecimal(tags.tag(len(lane.path) - 1 - index))
            crossed.append(LaneRelay(self.names[hop.end], ingress, egress, f"filter/{ingress}/{tag}"))
        return Lane(
            id=f"lane/{self.names[lane.start]}>{self.names[lane.end]}/{lane.index}",
            peer=self.names[lane.end],
            index=lane.index,
            function=lane.function,
            source=self._lane_end(lane.start, first.out_port, lane.function),
            target=self._lane_end(lane.end, last.in_port, lane.function),
            relays=crossed,
            window=lanes.window(lane, self.loads),
        )

    def _lane_end(self, position: int, port: int, function: str) -> LaneEnd:
        endpoint = self.endpoint(position, port, function)
        return LaneEnd(endpoint.netdev, endpoint.rdma_device, self.addresses[position, port, function])

    def _switched_lanes(self, position: int) -> list[Lane]:
        """One lane for each role to each peer, between the addresses that the inventory gives."""
        found = []
        for place, peer in enumerate(self.names):
            if place == position:
                continue
            roles = [role for role in ROLE_BY_NAME if role in self.inventory.hosts[position].endpoints]
            for index, role in enumerate(roles):
                ends = []
                for side in (position, place):
                    endpoint = self.endpoints[side][role]
                    address = str(IPv4Interface(self.inventory.hosts[side].endpoints[role]).ip)
                    ends.append(LaneEnd(endpoint.netdev, endpoint.rdma_device, address))
                function = ROLE_BY_NAME[role].function
                lane_id = f"lane/{self.names[position]}>{peer}/{index}"
                found.append(Lane(lane_id, peer, index, function, ends[0], ends[1], [], None))
        return found

    def _counts(self, hosts: list[HostPlan]) -> Counts:
        rules = [rule for host in hosts for rule in host.marker_rules]
        windows = [lane.window for host in hosts for lane in host.lanes if lane.window is not None]
        return Counts(
            mesh_routes=sum(len(host.mesh_routes) for host in hosts),
            filters=sum(len(host.filters) for host in hosts),
            marker_rules=sum(not _by_port(rule) for rule in rules),
            markers=sum(len({rule.rdma_device for rule in host.marker_rules}) for host in hosts),
            baseline_routes=sum(len(host.routes) for host in hosts),
            lanes=sum(len(host.lanes) for host in hosts),
            relays_max=self.shape.max_relays,
            queue_lanes_max=max(self.loads.values(), default=0),
            window_min=min(windows, default=None),
            source_port_rules=sum(map(_by_port, rules)),
        )


def _by_port(rule: MarkerRule) -> bool:
    return rule.destination.startswith(marks.SOURCE_PORT_MATCH)
