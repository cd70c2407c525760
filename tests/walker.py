"""An independent packet walker: it knows nothing of the planner, only of Linux, a card and cables.

It takes a ring's plan as plain JSON values, lays each host's objects out as a kernel and a card would
hold them, and walks packets frame by frame. ``faults(plan)`` gives one sentence for each packet that
does not arrive as it should; none means that every pair of hosts reaches each other, both ways, over
RDMA and over the kernel.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

IPV4 = "0x0800"
HOP_LIMIT = 16
OUR_PREFERENCES = range(41, 49)


class Lost(Exception):
    """Why a packet does not arrive."""


@dataclass(frozen=True)
class Netdev:
    """One function of one port, as configured."""

    host: str
    name: str
    port: int
    rdma_device: str
    mac: str
    address: str
    network: ipaddress.IPv4Network


@dataclass(frozen=True)
class Route:
    network: ipaddress.IPv4Network
    netdev: str
    via: str | None
    source: str


@dataclass(frozen=True)
class Frame:
    mac: str
    ethertype: str
    source: str
    target: str


class Host:
    """One host after its section was laid."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.name: str = plan["host"]
        self.virtual = plan["driver"] == "virtual"
        self.netdevs = {
            link["netdev"]: Netdev(
                self.name,
                link["netdev"],
                link["port"],
                link["rdma_device"],
                link["mac"],
                link["address"].partition("/")[0],
                ipaddress.IPv4Network(link["address"], strict=False),
            )
            for link in plan["links"]
        }
        self.routes = [Route(dev.network, dev.name, None, dev.address) for dev in self.netdevs.values()]
        for route in plan["routes"]:
            network = ipaddress.IPv4Network(route["destination"])
            dev = self.netdevs.get(route["netdev"])
            # The kernel refuses a route whose gateway is not on the link.
            if dev is not None and ipaddress.IPv4Address(route["via"]) in dev.network:
                self.routes.append(Route(network, dev.name, route["via"], dev.address))
        for route in plan["mesh_routes"]:
            network = ipaddress.IPv4Network(route["destination"])
            self.routes.append(Route(network, route["netdev"], None, route["source"]))
        self.neighbours = {(item["netdev"], item["address"]): item["mac"] for item in plan["neighbours"]}
        self.clsact = {item["netdev"] for item in plan["qdiscs"]}
        self.filters = plan["filters"]
        self.markers = {(item["rdma_device"], item["destination"]): item["tag"] for item in plan["marker_rules"]}
        self.sysctls = {item["key"]: item["value"] for item in plan["sysctls"]}
        self.forward = {(item["ingress"], item["egress"]) for item in plan["forward_rules"]}

    def route(self, target: str) -> Route:
        """Longest prefix wins."""
        address = ipaddress.IPv4Address(target)
        matching = [route for route in self.routes if address in route.network]
        if not matching:
            raise Lost(f"{self.name} has no route to {target}")
        longest = max(route.network.prefixlen for route in matching)
        best = {route for route in matching if route.network.prefixlen == longest}
        if len(best) > 1:
            raise Lost(f"{self.name} has {len(best)} routes to {target}")
        return best.pop()

    def owns(self, address: str) -> bool:
        return any(dev.address == address for dev in self.netdevs.values())

    def sysctl(self, netdev: str, name: str) -> str | None:
        return self.sysctls.get(f"net/ipv4/conf/{netdev}/{name}")


class Ring:
    """Hosts and the cables between them."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.hosts = {name: Host(host) for name, host in plan["hosts"].items()}
        self.far_port: dict[tuple[str, int], tuple[str, int]] = {}
        for cable in plan["cables"]:
            ends = [(cable[end]["host"], cable[end]["port"]) for end in ("a", "b")]
            self.far_port[ends[0]], self.far_port[ends[1]] = ends[1], ends[0]

    def on_wire(self, netdev: Netdev) -> list[Netdev]:
        """Netdevs that share a cable with this one: the far port's functions and its own sibling."""
        near = (netdev.host, netdev.port)
        if near not in self.far_port:
            raise Lost(f"{netdev.name} of {netdev.host} has no cable")
        places = [near, self.far_port[near]]
        return [
            other
            for host, port in places
            for other in self.hosts[host].netdevs.values()
            if other.port == port and other != netdev
        ]

    def resolve(self, host: Host, route: Route, target: str) -> str:
        """MAC of the next hop: a permanent neighbour, else who answers ARP on the wire."""
        hop = route.via or target
        permanent = host.neighbours.get((route.netdev, hop))
        if permanent is not None:
            return permanent
        for other in self.on_wire(host.netdevs[route.netdev]):
            if other.address == hop:
                return other.mac
        raise Lost(f"{host.name}: nobody answers for {hop} on {route.netdev}")

    def receive(self, netdev: Netdev, mac: str) -> Netdev:
        """Who on the wire takes a frame."""
        takers = [other for other in self.on_wire(netdev) if other.mac == mac]
        if len(takers) != 1:
            raise Lost(f"{len(takers)} netdevs take {mac} behind {netdev.name} of {netdev.host}")
        return takers[0]

    # RDMA ------------------------------------------------------------------------------------

    def rdma(self, start: str, target: str, source: str | None = None) -> tuple[str, Netdev, list[str]]:
        """Walk an RDMA packet; its source address, where it arrives, and the relays crossed.

        With ``source`` given the packet belongs to a queue pair of that address, as an answer does.
        """
        host = self.hosts[start]
        route = host.route(target)
        netdev = host.netdevs[route.netdev]
        if route.via is not None:
            raise Lost(f"{start} would send RDMA to {target} through the kernel of {route.via}")
        if route.source != netdev.address:
            raise Lost(f"{start} sends to {target} by {netdev.name} with the foreign source {route.source}")
        if source is not None and source != route.source:
            raise Lost(f"{start} would answer {target} from {route.source}, not {source}")
        tag = host.markers.get((netdev.rdma_device, target), IPV4)
        if host.virtual and tag != IPV4 and netdev.name not in host.clsact:
            raise Lost(f"{start} has no clsact on {netdev.name} for its marker")
        frame = Frame(self.resolve(host, route, target), tag, route.source, target)
        crossed: list[str] = []
        while True:
            netdev = self.receive(netdev, frame.mac)
            if frame.ethertype == IPV4:
                break
            if len(crossed) > HOP_LIMIT:
                raise Lost(f"an RDMA packet from {start} to {target} goes round")
            frame, netdev = self.relay(netdev, frame)
            crossed.append(netdev.host)
        if netdev.address != target:
            raise Lost(f"an RDMA packet from {start} to {target} arrives at {netdev.name} of {netdev.host}")
        return frame.source, netdev, crossed

    def relay(self, netdev: Netdev, frame: Frame) -> tuple[Frame, Netdev]:
        """What a relay makes of a tagged frame, and where it leaves."""
        host = self.hosts[netdev.host]
        matching = [item for item in host.filters if (item["netdev"], item["tag"]) == (netdev.name, frame.ethertype)]
        if len(matching) != 1:
            raise Lost(f"{host.name} has {len(matching)} filters for {frame.ethertype} on {netdev.name}")
        item = matching[0]
        if netdev.name not in host.clsact:
            raise Lost(f"{host.name} has no clsact on {netdev.name}")
        if item["in_nic"] == host.virtual:
            raise Lost(f"{host.name} relays {frame.ethertype} where its driver cannot")
        if item["set_tag"] != IPV4 and int(item["set_tag"], 16) >= int(frame.ethertype, 16):
            raise Lost(f"{host.name} turns {frame.ethertype} into {item['set_tag']}")
        if item["egress"] not in host.netdevs:
            raise Lost(f"{host.name} relays to unknown {item['egress']}")
        return replace(frame, mac=item["set_mac"], ethertype=item["set_tag"]), host.netdevs[item["egress"]]

    # The kernel ------------------------------------------------------------------------------

    def ip(self, start: str, target: str, source: str | None = None) -> str:
        """Walk a plain IP packet through kernels; its source address."""
        host = self.hosts[start]
        route = host.route(target)
        source = source or route.source
        for _ in range(HOP_LIMIT):
            netdev = self.receive(host.netdevs[route.netdev], self.resolve(host, route, target))
            host = self.hosts[netdev.host]
            if host.owns(target):
                return source
            route = host.route(target)
            if host.sysctl(netdev.name, "forwarding") != "1":
                raise Lost(f"{host.name} does not forward from {netdev.name}")
            if host.sysctl(netdev.name, "rp_filter") != "0":
                raise Lost(f"{host.name} may drop by reverse path on {netdev.name}")
            if (netdev.name, route.netdev) not in host.forward:
                raise Lost(f"{host.name} does not accept {netdev.name} to {route.netdev}")
        raise Lost(f"a packet from {start} to {target} goes round")


def faults(plan: dict[str, Any]) -> Iterator[str]:
    """Sentences about everything that does not hold."""
    ring = Ring(plan)
    yield from _wiring(ring)
    for host in ring.hosts.values():
        yield from _preferences(host)
        yield from _rdma(ring, host)
        yield from _kernel(ring, host)
    yield from _lanes(ring, plan)


def _wiring(ring: Ring) -> Iterator[str]:
    netdevs = [dev for host in ring.hosts.values() for dev in host.netdevs.values()]
    for field in ("mac", "address"):
        values = [getattr(dev, field) for dev in netdevs]
        for value in sorted({value for value in values if values.count(value) > 1}):
            yield f"{field} {value} is used twice"
    for dev in netdevs:
        if (dev.host, dev.port) not in ring.far_port:
            yield f"{dev.name} of {dev.host} has no cable"
        elif sum(other.network == dev.network for other in ring.on_wire(dev)) != 1:
            yield f"{dev.name} of {dev.host} shares its subnet with none or more than one on its cable"


def _preferences(host: Host) -> Iterator[str]:
    seen = set()
    for item in host.filters:
        if item["preference"] not in OUR_PREFERENCES:
            yield f"{host.name}: preference {item['preference']} is not ours"
        if (item["netdev"], item["preference"]) in seen:
            yield f"{host.name}: preference {item['preference']} is used twice on {item['netdev']}"
        seen.add((item["netdev"], item["preference"]))


def _far(ring: Ring, host: Host) -> list[Netdev]:
    return [dev for other in ring.hosts.values() if other is not host for dev in other.netdevs.values()]


def _rdma(ring: Ring, host: Host) -> Iterator[str]:
    """To every other host in both PCIe functions; an answer comes back to the same endpoint."""
    for other in ring.hosts.values():
        if other is host:
            continue
        arrived = set()
        for dev in other.netdevs.values():
            route = next((route for route in host.routes if str(route.network) == f"{dev.address}/32"), None)
            direct = any(near.network == dev.network for near in host.netdevs.values())
            if route is None and not direct:
                continue
            try:
                source, end, _crossed = ring.rdma(host.name, dev.address)
                _, back, _crossed = ring.rdma(other.name, source, source=end.address)
                if back.host != host.name:
                    yield f"an answer to {source} arrives at {back.host}"
                arrived.add(end.address)
            except Lost as lost:
                yield str(lost)
        if len(arrived) < 2:
            yield f"{host.name} reaches {other.name} over {len(arrived)} RDMA endpoints, 2 at least are needed"


def _kernel(ring: Ring, host: Host) -> Iterator[str]:
    for dev in _far(ring, host):
        try:
            source = ring.ip(host.name, dev.address)
            ring.ip(dev.host, source, source=dev.address)
        except Lost as lost:
            yield str(lost)


def _lanes(ring: Ring, plan: dict[str, Any]) -> Iterator[str]:
    """Each lane that the plan promises, walked: same ends, same relays; two for each ordered pair."""
    pairs: dict[tuple[str, str], int] = {}
    for name, host in plan["hosts"].items():
        for lane in host["lanes"]:
            pairs[name, lane["peer"]] = pairs.get((name, lane["peer"]), 0) + 1
            try:
                source, end, crossed = ring.rdma(name, lane["target"]["address"])
            except Lost as lost:
                yield f"{lane['id']}: {lost}"
                continue
            if (source, end.host, end.name) != (lane["source"]["address"], lane["peer"], lane["target"]["netdev"]):
                yield f"{lane['id']} goes from {source} to {end.name} of {end.host}"
            if crossed != [relay["host"] for relay in lane["relays"]]:
                yield f"{lane['id']} crosses {crossed}"
    for first in ring.hosts:
        for second in ring.hosts:
            if first != second and pairs.get((first, second)) != 2:
                yield f"{first} to {second} has {pairs.get((first, second), 0)} lanes"
