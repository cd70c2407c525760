"""Checks of the way by which hosts are administered, and by which ranks meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .addresses import listed
from .registry import Found, check
from .ring import Node, Ring
from .routing import main_routes, way_to


def defaults(node: Node) -> list[Mapping[str, Any]]:
    """Default routes, the preferred one first."""
    found = [route for network, route in main_routes(node) if not network.prefixlen and "dev" in route]
    return sorted(found, key=lambda route: int(route.get("metric", 0)))


def wireless(node: Node, netdev: str) -> bool:
    """Whether a netdev is Wi-Fi."""
    return any(link.netdev == netdev and link.wireless for link in node.survey.links)


@check("mgmt.on_fabric", "warn", "links", "A host is administered over a port of the ring.")
def on_fabric(ring: Ring) -> Iterator[Found]:
    """Hosts that a change of the fabric could cut off."""
    for node in ring.nodes.values():
        management = node.survey.management
        if management is not None and management.netdev in node.netdevs:
            yield Found(
                node.name,
                f"{node.name} is administered by {management.netdev} ({management.address}), a port of the ring.",
                "administer it over a LAN of its own, so that a change of the ring cannot cut it off.",
            )


@check("mgmt.unroutable", "fail", "routes", "A host cannot reach the management address of the head, where ranks meet.")
def unroutable(ring: Ring) -> Iterator[Found]:
    """Routes to the head's management address."""
    head = ring.nodes.get(ring.names[0]) if ring.names else None
    if head is None or head.survey.management is None:
        return
    address = head.survey.management.address
    for node in ring.nodes.values():
        if node is not head and node.survey.routes and way_to(node, address) is None:
            yield Found(
                node.name,
                f"{node.name} has no route to {address}, the management address of {head.name}.",
                f"connect {node.name} to that network, or add a route to it.",
            )


@check("mgmt.wifi", "warn", "links", "A host is administered over Wi-Fi.")
def over_wifi(ring: Ring) -> Iterator[Found]:
    """Hosts whose management interface is Wi-Fi."""
    for node in ring.nodes.values():
        management = node.survey.management
        if management is not None and wireless(node, management.netdev):
            yield Found(
                node.name,
                f"{node.name} is administered over Wi-Fi ({management.netdev}).",
                "connect its wired port and set ansible_host to that address.",
            )


@check("mgmt.wifi_preferred", "warn", "routes links", "The default route prefers Wi-Fi to a wired interface.")
def wifi_preferred(ring: Ring) -> Iterator[Found]:
    """Metrics of default routes."""
    for node in ring.nodes.values():
        ways = defaults(node)
        wired = next((route for route in ways if not wireless(node, route["dev"])), None)
        if ways and wireless(node, ways[0]["dev"]) and wired is not None:
            first, second = (f"{route['dev']} (metric {route.get('metric', 0)})" for route in (ways[0], wired))
            yield Found(
                node.name,
                f"{node.name}: the default route prefers Wi-Fi {first} to {second}.",
                f"give {ways[0]['dev']} a greater metric: nmcli connection modify PROFILE ipv4.route-metric 600.",
            )


@check("mgmt.default_elsewhere", "info", "routes links", "The default route goes by another interface than management.")
def default_elsewhere(ring: Ring) -> Iterator[Found]:
    """Programs that advertise the address of the default route would give the wrong one."""
    for node in ring.nodes.values():
        ways, management = defaults(node), node.survey.management
        if ways and management is not None and ways[0]["dev"] != management.netdev:
            yield Found(
                node.name,
                f"{node.name}: the default route goes by {ways[0]['dev']}, management is {management.netdev} "
                f"{management.address}.",
                f"set VLLM_HOST_IP={management.address} and socket interfaces {management.netdev} there.",
            )


@check("mgmt.names_differ", "info", "links", "Management interfaces have different names on different hosts.")
def names_differ(ring: Ring) -> Iterator[Found]:
    """A setting that names one interface for all hosts would be wrong."""
    names: dict[str, list[str]] = {}
    for node in ring.nodes.values():
        if node.survey.management is not None:
            names.setdefault(node.survey.management.netdev, []).append(node.name)
    if len(names) > 1:
        words = "; ".join(f"{netdev} on {listed(hosts)}" for netdev, hosts in sorted(names.items()))
        yield Found(
            ring.name, f"Management interfaces differ: {words}.", "name socket interfaces by host, never once for all."
        )
