"""The checks that follow from one host's section: one question for everything planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import hairpin_state, marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.drivers import Driver
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import (
    BaselineRoute,
    Check,
    Filter,
    ForwardRule,
    Hairpin,
    Link,
    MarkerRule,
    MeshRoute,
    Neighbour,
    Sysctl,
)

PING_PAYLOAD = 8972
"""Largest ICMP payload in an MTU of 9000."""


def of_links(links: Sequence[Link], driver: Driver) -> Iterator[Check]:
    """Carrier to GID of each cabled endpoint."""
    for link in links:
        yield Check("link.carrier", link.id, "up")
        yield Check("link.mac", link.id, link.mac)
        yield Check("link.mtu", link.id, str(link.mtu))
        yield Check("link.address", link.id, link.address)
        if driver.speed_mbps is not None:
            yield Check("link.speed", link.id, str(driver.speed_mbps))
        yield Check("rdma.state", link.id, "ACTIVE")
        if driver.active_mtu is not None:
            yield Check("rdma.active_mtu", link.id, str(driver.active_mtu))
        yield Check("gid.ipv4", link.id, link.address.partition("/")[0])


def of_baseline(
    routes: Sequence[BaselineRoute], sysctls: Sequence[Sysctl], rules: Sequence[ForwardRule]
) -> Iterator[Check]:
    """What the kernel routes and forwards."""
    for route in routes:
        yield Check("route.present", route.id, f"via {route.via} dev {route.netdev}")
    for sysctl in sysctls:
        yield Check("sysctl.value", sysctl.id, sysctl.value)
    for rule in rules:
        yield Check("forward.rule", rule.id, "accepted")


def of_hairpin(links: Sequence[Link], hairpin: Hairpin) -> Iterator[Check]:
    """The driver setting of each function of a host that relays in its card."""
    for link in links if hairpin.needed else ():
        yield Check("hairpin.in_effect", link.id, hairpin_state.IN_EFFECT)


def of_mesh(
    routes: Sequence[MeshRoute],
    neighbours: Sequence[Neighbour],
    filters: Sequence[Filter],
    markers: Sequence[MarkerRule],
    driver: Driver,
) -> Iterator[Check]:
    """What steers RDMA along relays."""
    for route in routes:
        yield Check("mesh.route", route.id, f"dev {route.netdev} src {route.source}")
    for neighbour in neighbours:
        yield Check("neighbour.present", neighbour.id, f"{neighbour.mac} dev {neighbour.netdev}")
    for item in filters:
        yield Check("mesh.relay.filter", item.id, f"to {item.set_mac} as {item.set_tag} by {item.egress}")
        if driver.relays_in_nic:
            yield Check("mesh.relay.in_hw", item.id, "in hardware")
    for rule in markers:
        by_port = rule.destination.startswith(marks.SOURCE_PORT_MATCH)
        yield Check("mesh.source_port" if by_port else "mesh.marker", rule.id, rule.tag)


def of_pings(addresses: Iterable[str]) -> Iterator[Check]:
    """A full-size datagram that may not be fragmented, to every fabric address of the other hosts."""
    for address in addresses:
        yield Check("pair.ping", address, str(PING_PAYLOAD))
