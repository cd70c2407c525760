"""Checks of routes, forwarding and firewall."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from .addresses import SETUP, fabric_networks, listed, route_network
from .registry import Found, check
from .ring import Node, Port, Ring

DOCKER_CHAIN = "DOCKER-USER"
PLAIN_CHAIN = "FORWARD"


def main_routes(node: Node) -> list[tuple[IPv4Network, Mapping[str, Any]]]:
    """IPv4 unicast routes of the main table with their destinations."""
    found: list[tuple[IPv4Network, Mapping[str, Any]]] = []
    for route in node.survey.routes:
        network = route_network(route)
        if network is not None and str(route.get("table", "main")) in ("main", "254"):
            found.append((network, route))
    return found


def way_to(node: Node, address: str) -> Mapping[str, Any] | None:
    """The route that a packet to an address takes: longest prefix, then least metric."""
    fitting = [(network, route) for network, route in main_routes(node) if IPv4Address(address) in network]
    best = max(fitting, key=lambda item: (item[0].prefixlen, -int(item[1].get("metric", 0))), default=None)
    return best[1] if best else None


def gateways(ring: Ring) -> dict[str, set[tuple[str, str]]]:
    """Hosts that others send through, and from which netdev to which: in by the gateway, out by its own route."""
    found: dict[str, set[tuple[str, str]]] = {}
    for node in ring.nodes.values():
        for network, route in main_routes(node):
            port = ring.owners.get(str(route.get("gateway", "")))
            if port is None or port.host == node.name or not network.prefixlen or port.host not in ring.nodes:
                continue
            onward = way_to(ring.nodes[port.host], str(network.network_address + (1 if network.prefixlen < 31 else 0)))
            out = str(onward.get("dev", "")) if onward else ""
            if out in ring.nodes[port.host].netdevs and out != port.netdev:
                found.setdefault(port.host, set()).update({(port.netdev, out), (out, port.netdev)})
    return found


@check("route.default_on_fabric", "fail", "routes", "A default route goes out by a fabric port.")
def default_on_fabric(ring: Ring) -> Iterator[Found]:
    """Default routes over cables of the ring."""
    for node in ring.nodes.values():
        for network, route in main_routes(node):
            if not network.prefixlen and route.get("dev") in node.netdevs:
                yield Found(
                    f"{node.name} {route['dev']}",
                    f"{node.name}: a default route goes out by the fabric port {route['dev']}.",
                    f"set ipv4.never-default yes in the profile of {route['dev']}.",
                )


@check(
    "route.foreign",
    "fail",
    "routes",
    "A route to a subnet of the ring leads elsewhere than into the ring or as planned.",
)
def foreign(ring: Ring) -> Iterator[Found]:
    """Routes within the fabric that contradict the plan, or lead to an address that no host of the ring has."""
    networks = fabric_networks(ring) if ring.subnets else []
    plans = {node.name: plan for node, plan in ring.planned()}
    complete = len(ring.nodes) == len(ring.names) and not ring.dark
    for node in ring.nodes.values():
        planned = {route.destination: route for route in plans[node.name].routes} if node.name in plans else {}
        for network, route in main_routes(node):
            gateway, dev = str(route.get("gateway", "")), str(route.get("dev", ""))
            if not gateway or dev not in node.netdevs or not any(item.overlaps(network) for item in networks):
                continue
            wanted = planned.get(str(network))
            if wanted is not None and (wanted.via, wanted.netdev) != (gateway, dev):
                why = f"the plan says via {wanted.via} dev {wanted.netdev}"
            elif wanted is None and complete and network.prefixlen and gateway not in ring.owners:
                why = "which no host of the ring has"
            else:
                continue
            yield Found(
                f"{node.name} {network}",
                f"{node.name}: the route to {network} goes via {gateway} dev {dev}, {why}.",
                f"ip route del {network} via {gateway} dev {dev} on {node.name}, and whatever adds it; then {SETUP}.",
            )


@check(
    "route.missing",
    "warn",
    "routes links",
    "A host has no route to a subnet of the ring, so it cannot reach far hosts.",
)
def missing(ring: Ring) -> Iterator[Found]:
    """Far subnets that no route leads to."""
    for node in ring.nodes.values():
        if node.name in ring.dark or not any(port.static for port in node.ports.values()):
            continue
        far = [
            str(network)
            for network, ports in sorted(ring.subnets.items())
            if len(ports) > 1
            and not any(port.host == node.name for port in ports)
            and (way_to(node, str(network.network_address + 1)) or {}).get("dev") not in node.netdevs
        ]
        if far:
            yield Found(
                node.name,
                f"{node.name} has no route into {len(far)} subnet{'s' if len(far) > 1 else ''} of the ring: "
                f"{listed(far)}.",
                f"{SETUP}, which adds them; TCP and NCCL's set-up between far hosts need them.",
            )


@check("forward.off", "fail", "sysctls routes", "A host that others send through does not forward on its fabric ports.")
def forwarding(ring: Ring) -> Iterator[Found]:
    """The kernel's forwarding switch on ports that packets come in by."""
    for host, ways in sorted(gateways(ring).items()):
        sysctls = ring.nodes[host].survey.sysctls
        off = sorted({netdev for netdev, _ in ways if sysctls.get(f"net/ipv4/conf/{netdev}/forwarding") == "0"})
        if off:
            yield Found(
                host,
                f"{host} does not forward what comes in by {listed(off)}, though other hosts send through it.",
                f"sysctl net.ipv4.conf.{off[0]}.forwarding=1 (each of them) on {host}, or {SETUP}, which keeps it.",
            )


@check("forward.rp_filter", "warn", "sysctls", "A fabric port drops packets whose way back differs (strict rp_filter).")
def rp_filter(ring: Ring) -> Iterator[Found]:
    """The kernel takes the greater of the port's and the general value; 1 is strict."""
    for host in sorted(gateways(ring)):
        sysctls = ring.nodes[host].survey.sysctls
        general = int(sysctls.get("net/ipv4/conf/all/rp_filter", "0"))
        strict = [
            netdev
            for netdev in sorted(ring.nodes[host].netdevs)
            if max(general, int(sysctls.get(f"net/ipv4/conf/{netdev}/rp_filter", "0"))) == 1
        ]
        if strict:
            yield Found(
                host,
                f"{host}: rp_filter is strict (1) on {listed(strict)}, which drops packets that return another way.",
                f"sysctl net.ipv4.conf.all.rp_filter=2 on {host}.",
            )


def verdict(node: Node, ingress: str, egress: str) -> tuple[str, str]:
    """What the firewall does with packets from one netdev to another: ACCEPT, DROP or UNKNOWN, and by which rule.

    Rules with further conditions (addresses, connection state) accept some of the packets; they count where they
    accept, since a tool that scopes its rules has them on purpose, and are passed over where they drop. A chain that
    the survey does not hold, such as those of ufw, may accept what the policy would drop; Docker's own do not.
    """
    forward = node.survey.forward
    elsewhere = ""
    for line in forward.rules:
        words = shlex.split(line)
        if words[1] != PLAIN_CHAIN:
            continue
        taken = _taken(words, ingress, egress)
        if taken == DOCKER_CHAIN:
            for inner in forward.rules:
                inner_words = shlex.split(inner)
                if inner_words[1] != DOCKER_CHAIN:
                    continue
                ended = _taken(inner_words, ingress, egress)
                if ended in ("ACCEPT", "DROP"):
                    return ended, inner
                if ended == "RETURN":
                    break
        elif taken in ("ACCEPT", "DROP"):
            return taken, line
        elif taken and not taken.startswith("DOCKER"):
            elsewhere = line
    if elsewhere:
        return "UNKNOWN", elsewhere
    return forward.policy or "ACCEPT", f"the policy of {PLAIN_CHAIN}"


def _taken(words: list[str], ingress: str, egress: str) -> str:
    """Target of a rule where it meets the packet: ACCEPT, DROP, RETURN or a chain; empty for none."""
    rest = words[2:]
    target = rest[rest.index("-j") + 1] if "-j" in rest[:-1] else ""
    for flag, netdev in (("-i", ingress), ("-o", egress)):
        if flag in rest[:-1]:
            place = rest.index(flag)
            given = rest[place + 1]
            meets = netdev.startswith(given[:-1]) if given.endswith("+") else given == netdev
            if meets == (place > 0 and rest[place - 1] == "!"):
                return ""
    target = "DROP" if target == "REJECT" else target
    plain = {"-i", "-o", "-j", "!", "-m", "comment", "--comment", "--reject-with"}
    flags = {word for word in rest if word.startswith("-")}
    conditional = bool(flags - plain) or any(
        rest[place + 1] != "comment" for place, word in enumerate(rest[:-1]) if word == "-m"
    )
    return "" if conditional and target != "ACCEPT" else target


def _accepting(node: Node, ingress: str, egress: str) -> bool:
    """Whether any rule accepts exactly this way, wherever it stands."""
    for line in node.survey.forward.rules:
        words = shlex.split(line)
        if "-i" in words and "-o" in words and _taken(words, ingress, egress) == "ACCEPT":
            return True
    return False


@check(
    "forward.dropped", "fail", "forward routes", "The firewall of a host that others send through drops their packets."
)
def dropped(ring: Ring) -> Iterator[Found]:
    """Docker's FORWARD policy, or a rule, without any rule that accepts."""
    for host, way, rule, others in _drops(ring, accepting=False):
        yield Found(
            host,
            f"{host}: {rule} drops packets from {way[0]} to {way[1]}{others}.",
            f"iptables -I {_chain(ring.nodes[host])} 1 -i {way[0]} -o {way[1]} -j ACCEPT, or {SETUP}, which keeps it.",
        )


@check(
    "forward.order",
    "fail",
    "forward routes",
    "A rule that accepts forwarded packets stands behind one that drops them.",
)
def order(ring: Ring) -> Iterator[Found]:
    """Rules in the wrong order."""
    for host, way, rule, others in _drops(ring, accepting=True):
        yield Found(
            host,
            f"{host}: {rule} comes before the rule that accepts {way[0]} to {way[1]}{others}.",
            "move the dropping rule behind the accepting one, or narrow it; SparkRing does not reorder foreign rules.",
        )


def _drops(ring: Ring, accepting: bool) -> Iterator[tuple[str, tuple[str, str], str, str]]:
    for host, ways in sorted(gateways(ring).items()):
        node = ring.nodes[host]
        bad = []
        for way in sorted(ways):
            ended, rule = verdict(node, *way)
            if ended == "DROP" and _accepting(node, *way) == accepting:
                bad.append((way, rule if rule.startswith("the ") else f"'{rule}'"))
        if bad:
            more = f" ({len(bad) - 1} more way{'s' if len(bad) > 2 else ''})" if len(bad) > 1 else ""
            yield host, bad[0][0], bad[0][1], more


def _chain(node: Node) -> str:
    return DOCKER_CHAIN if node.survey.forward.docker_user else PLAIN_CHAIN


def port_by_netdev(node: Node, netdev: str) -> Port | None:
    """A fabric port by its netdev."""
    return next((port for port in node.ports.values() if port.netdev == netdev), None)
