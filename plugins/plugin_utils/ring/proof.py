"""The planner's proof of its own work: every packet is traced through the planned objects.

It follows names and cables; the MAC of every hop must be the one that stands at the cable's far end.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import tags
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import (
    BaselineRoute,
    Filter,
    HostPlan,
    Link,
    MeshRoute,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan

from .errors import RingError

PLAIN = tags.hexadecimal(tags.IPV4)


def prove(plan: RingPlan) -> None:
    """Raise RingError at the first thing in the plan that does not hold."""
    for fault in _Proof(plan).faults():
        raise RingError(f"Ring {plan.ring}: the plan does not hold, {fault}; report this as a fault of the planner.")


class _Proof:
    def __init__(self, plan: RingPlan) -> None:
        self.plan = plan
        self.hosts = plan.hosts
        self.links = {(host.host, link.netdev): link for host in plan.hosts.values() for link in host.links}
        self.at_address = {
            link.address.partition("/")[0]: (host.host, link) for host in plan.hosts.values() for link in host.links
        }
        self.network_of = {
            address: str(IPv4Network(link.address, strict=False)) for address, (_host, link) in self.at_address.items()
        }
        self.filters: dict[tuple[str, str, str], Filter] = {}
        self.mesh: dict[tuple[str, str], MeshRoute] = {}
        self.baseline: dict[tuple[str, str], BaselineRoute] = {}
        self.markers = {
            (h.host, m.rdma_device, m.destination): m.tag for h in plan.hosts.values() for m in h.marker_rules
        }
        self.neighbours = {(h.host, n.address, n.netdev): n.mac for h in plan.hosts.values() for n in h.neighbours}

    def faults(self) -> Iterator[str]:
        """Sentences about what does not hold."""
        yield from self._index()
        for host in self.hosts.values():
            reached = {host.host}
            for route in host.mesh_routes:
                fault, end = self._trace(host, route)
                if fault:
                    yield fault
                else:
                    reached.add(end)
            reached |= {link.peer_host for link in host.links}
            if host.links and reached != set(self.hosts):
                yield f"{host.host} does not reach {', '.join(sorted(set(self.hosts) - reached))}"
            yield from self._kernel(host)

    def _index(self) -> Iterator[str]:
        for host in self.hosts.values():
            for item in host.filters:
                key = (host.host, item.netdev, item.tag)
                if key in self.filters:
                    yield f"{host.host} has two filters for {item.tag} on {item.netdev}"
                self.filters[key] = item
            for route in host.mesh_routes:
                self.mesh[host.host, route.destination.partition("/")[0]] = route
            for way in host.routes:
                self.baseline[host.host, way.destination] = way
        if len(self.at_address) != len(self.links):
            yield "two endpoints have one address"

    def _far(self, host: str, netdev: str) -> tuple[str, Link] | None:
        link = self.links.get((host, netdev))
        return self.at_address.get(link.peer_address) if link else None

    def _trace(self, host: HostPlan, route: MeshRoute) -> tuple[str, str]:
        """Follow RDMA from its origin; (fault, "") or ("", the host that gets it)."""
        target = route.destination.partition("/")[0]
        link = self.links.get((host.host, route.netdev))
        what = f"{host.host} to {target}"
        if link is None or link.address.partition("/")[0] != route.source:
            return f"{what} leaves by {route.netdev} without its address {route.source}", ""
        tag = self.markers.get((host.host, link.rdma_device, target), PLAIN)
        mac = self.neighbours.get((host.host, target, route.netdev))
        place, arrived, netdev = host.host, link, route.netdev
        for _ in range(tags.MAX_RELAYS + 1):
            far = self._far(place, netdev)
            if far is None or far[1].mac != mac:
                return f"{what} is lost at {netdev} of {place}", ""
            place, arrived = far
            if tag == PLAIN:
                break
            item = self.filters.get((place, arrived.netdev, tag))
            if item is None:
                return f"{what} finds no filter for {tag} at {place}", ""
            if item.set_tag != PLAIN and item.set_tag >= tag:
                return f"{what} keeps tag {tag} at {place}", ""
            tag, mac, netdev = item.set_tag, item.set_mac, item.egress
        end = self.at_address.get(target)
        if end is None or end[0] != place or arrived is not end[1]:
            return f"{what} arrives at {place}", ""
        if (place, route.source) not in self.mesh:
            return f"{what} has no way back from {place}", ""
        return "", place

    def _kernel(self, host: HostPlan) -> Iterator[str]:
        """Follow a plain packet to every fabric address."""
        for target, (owner, _link) in self.at_address.items():
            if owner == host.host:
                continue
            place, crossed = host.host, 0
            while place != owner and crossed <= len(self.hosts):
                step = self._next(place, target)
                if step is None:
                    yield f"{place} has no route to {target}"
                    break
                place, crossed = step, crossed + 1
            if crossed > len(self.hosts):
                yield f"packets from {host.host} to {target} go round"

    def _next(self, place: str, target: str) -> str | None:
        mesh = self.mesh.get((place, target))
        if mesh is not None:
            far = self._far(place, mesh.netdev)
            return far[0] if far else None
        for link in self.hosts[place].links:
            if link.peer_address == target:
                return link.peer_host
        route = self.baseline.get((place, self.network_of[target]))
        via = self.at_address.get(route.via) if route else None
        return via[0] if via else None
