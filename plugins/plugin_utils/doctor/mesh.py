"""Checks of the hardware-forwarded mesh: ours, and that of the reference tool, whose marks are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks, tags

from .registry import Found, check
from .ring import Node, Ring, role_name
from .routing import port_by_netdev

REFERENCE_PROTOCOL = "82"
REFERENCE_PREFERENCES = range(10, 19)
OUR_PROTOCOL = str(marks.ROUTE_PROTOCOL)
OUR_PREFERENCES = range(marks.INGRESS_PREFERENCE_BASE + 1, marks.INGRESS_PREFERENCE_BASE + 9)


TAGS = {words for left in range(1, tags.MAX_RELAYS + 1) for words in (f"[{tags.tag(left)}]", hex(tags.tag(left)))}
"""Protocols of relay filters as tc prints them; a software marker's filters are for plain IPv4."""


def filters(node: Node, preferences: range) -> list[tuple[str, dict[str, Any]]]:
    """Relay filters of some preferences on fabric ports, with their netdevs; tc's summary entries left out."""
    return [
        (netdev, item)
        for netdev, traffic in sorted(node.survey.tc.items())
        if netdev in node.netdevs
        for item in traffic.filters
        if item.get("pref") in preferences and item.get("protocol") in TAGS and "options" in item
    ]


def marked(entries: list[dict[str, Any]], protocol: str) -> list[dict[str, Any]]:
    """Routes or neighbours of a protocol number."""
    return [entry for entry in entries if str(entry.get("protocol", "")) == protocol]


def holdings(node: Node, protocol: str, preferences: range) -> str:
    """What a tool holds on a host, in words; empty for nothing."""
    counts = (
        (len(marked(node.survey.routes, protocol)), "route"),
        (len(marked(node.survey.neighbours, protocol)), "neighbour"),
        (len(filters(node, preferences)), "filter"),
    )
    return ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count)


@check(
    "mesh.other_tool", "info", "routes neighbours tc", "Objects of the reference tool (protocol 82, preferences 10-18)."
)
def other_tool(ring: Ring) -> Iterator[Found]:
    """What the reference tool laid."""
    for node in ring.nodes.values():
        if words := holdings(node, REFERENCE_PROTOCOL, REFERENCE_PREFERENCES):
            yield Found(
                node.name,
                f"{node.name} holds {words} of the reference tool (protocol 82, preferences 10-18).",
                "leave them to that tool, or remove them with it before mesh-setup.",
            )


@check(
    "mesh.two_owners",
    "warn",
    "routes neighbours tc",
    "Relay objects of SparkRing and of the reference tool on one host.",
)
def two_owners(ring: Ring) -> Iterator[Found]:
    """Two tools that would tag the same packets."""
    for node in ring.nodes.values():
        if holdings(node, REFERENCE_PROTOCOL, REFERENCE_PREFERENCES) and holdings(node, OUR_PROTOCOL, OUR_PREFERENCES):
            yield Found(
                node.name,
                f"{node.name} holds relay objects of SparkRing and of the reference tool at once.",
                "stop that tool's units and remove its objects, then run mesh-setup.",
            )


@check("mesh.left_over", "warn", "routes neighbours tc plan", "Objects of SparkRing that the plan does not name.")
def left_over(ring: Ring) -> Iterator[Found]:
    """Our routes, neighbours and filters against the plan."""
    for node, plan in ring.planned():
        routes = {route.destination.removesuffix("/32") for route in plan.mesh_routes}
        routes |= {route.destination for route in plan.routes}
        wanted = {(item.netdev, item.preference, item.handle) for item in plan.filters}
        stale = [entry["dst"] for entry in marked(node.survey.routes, OUR_PROTOCOL) if entry.get("dst") not in routes]
        near = {item.address for item in plan.neighbours}
        stale += [
            entry["dst"] for entry in marked(node.survey.neighbours, OUR_PROTOCOL) if entry.get("dst") not in near
        ]
        stale += [
            f"filter {item['pref']} on {netdev}"
            for netdev, item in filters(node, OUR_PREFERENCES)
            if (netdev, item["pref"], item["options"].get("handle")) not in wanted
        ]
        if stale:
            yield Found(
                node.name,
                f"{node.name} holds {len(stale)} relay object{'s' if len(stale) > 1 else ''} of SparkRing that the "
                f"plan does not name ({stale[0]}{', …' if len(stale) > 1 else ''}).",
                "run mesh-setup, which removes them.",
            )


@check("mesh.no_plan", "info", "routes neighbours tc plan", "Objects of SparkRing on a ring whose plan is not here.")
def no_plan(ring: Ring) -> Iterator[Found]:
    """Our marks without a plan to compare them with."""
    for node in ring.nodes.values() if ring.plan is None else ():
        if words := holdings(node, OUR_PROTOCOL, OUR_PREFERENCES):
            yield Found(
                node.name,
                f"{node.name} holds {words} of SparkRing, but there is no plan here to compare them with.",
                "set sparkring_plans_dir to where the ring's plan lies.",
            )


@check("mesh.not_in_hardware", "fail", "tc", "A relay filter on a ConnectX port is not in the card's hardware.")
def not_in_hardware(ring: Ring) -> Iterator[Found]:
    """Relay filters by which the kernel would have to forward."""
    for node in ring.nodes.values():
        for preferences in (OUR_PREFERENCES, REFERENCE_PREFERENCES):
            for netdev, item in filters(node, preferences):
                port = port_by_netdev(node, netdev)
                if port and port.link.driver == "mlx5_core" and not item["options"].get("in_hw"):
                    yield Found(
                        f"{node.name} {netdev} {item['pref']}",
                        f"{node.name}: relay filter {item['pref']} on {netdev} is not in hardware.",
                        f"ethtool -K {netdev} hw-tc-offload on, then run mesh-setup.",
                    )


@check(
    "mesh.stale_mac",
    "fail",
    "neighbours links plan",
    "A relay's next hop has another MAC than the port at the cable's far end.",
)
def stale_mac(ring: Ring) -> Iterator[Found]:
    """Permanent neighbours of either tool, and the plan, against the hardware that is there."""
    for node in ring.nodes.values():
        laid = marked(node.survey.neighbours, OUR_PROTOCOL) + marked(node.survey.neighbours, REFERENCE_PROTOCOL)
        for entry in laid:
            port = port_by_netdev(node, str(entry.get("dev")))
            peer = ring.peer(port) if port else None
            seen, said = (peer.link.mac.lower() if peer else None), str(entry.get("lladdr", "")).lower()
            if peer is not None and seen != said:
                yield Found(
                    f"{node.name} {entry['dst']}",
                    f"{node.name}: packets to {entry['dst']} leave for MAC {said}, but {peer.place} has {seen}.",
                    "run rebind to accept the new hardware, then mesh-setup.",
                )
    yield from _planned_macs(ring)


def _planned_macs(ring: Ring) -> Iterator[Found]:
    """Planned MACs of far ends against the neighbours that the kernel found itself."""
    if ring.plan is None:
        return
    for node, plan in ring.planned():
        for link in plan.links:
            far = ring.plan.hosts.get(link.peer_host)
            wanted = (
                next((item.mac.lower() for item in far.links if item.address.split("/")[0] == link.peer_address), "")
                if far
                else ""
            )
            for entry in node.survey.neighbours:
                found = str(entry.get("lladdr", "")).lower()
                if (
                    (entry.get("dst"), entry.get("dev")) == (link.peer_address, link.netdev)
                    and wanted
                    and found not in ("", wanted)
                ):
                    yield Found(
                        f"{node.name} {link.peer_address}",
                        f"{node.name}: {link.peer_host} answers for {link.peer_address} with MAC {found}, "
                        f"the plan says {wanted}.",
                        "run rebind to accept the new hardware, then mesh-setup.",
                    )


@check("mesh.live_rdma", "info", "users", "Processes hold RDMA queue pairs; changes of the mesh have to wait for them.")
def live_rdma(ring: Ring) -> Iterator[Found]:
    """Who uses the ring's devices now."""
    for node in ring.nodes.values():
        devices = {port.device.device for port in node.ports.values()}
        held: dict[tuple[int, str], int] = {}
        for user in (user for user in node.survey.users if user.ifname in devices):
            held[user.pid, user.comm or "?"] = held.get((user.pid, user.comm or "?"), 0) + 1
        for (pid, name), count in sorted(held.items()):
            yield Found(
                f"{node.name} {pid}",
                f"{node.name}: {name} (pid {pid}) holds {count} RDMA queue pair{'s' if count > 1 else ''}.",
                "stop it before the mesh is changed.",
            )


@check("plan.unreadable", "warn", "", "The plan or the bindings on disk cannot be read; they were left out.")
def unreadable(ring: Ring) -> Iterator[Found]:
    """Documents that are damaged, or of another version."""
    if ring.fault:
        yield Found(ring.name, f"Ring {ring.name}: its documents were left out ({ring.fault}).", "run rebind.")


@check("plan.degraded", "warn", "plan", "The ring is planned without a cable or a host that was lost.")
def degraded(ring: Ring) -> Iterator[Found]:
    """What the plan says is lost."""
    if ring.plan is not None and ring.plan.degraded is not None:
        yield Found(ring.name, ring.plan.degraded.sentences[0], "repair what is lost, then run mesh-setup.")


@check(
    "plan.touches_management",
    "fail",
    "links plan",
    "The plan would change the interface by which a host is administered.",
)
def touches_management(ring: Ring) -> Iterator[Found]:
    """Planned links against management interfaces."""
    for node, plan in ring.planned():
        management = node.survey.management
        for link in plan.links:
            if management is not None and link.netdev == management.netdev:
                yield Found(
                    node.name,
                    f"{node.name}: the plan lays {link.role} on {link.netdev}, by which the host is administered.",
                    "set sparkring_management_interface, then run rebind.",
                )


@check("bindings.hardware", "fail", "rdma links bindings", "The hardware is not the one that the bindings name.")
def hardware(ring: Ring) -> Iterator[Found]:
    """Identity and MACs of each host against its bindings."""
    for name, bound in (ring.bindings.hosts if ring.bindings else {}).items():
        node = ring.nodes.get(name)
        if node is None:
            continue
        if node.survey.identity != bound.identity:
            yield Found(
                name,
                f"{name}: another machine answers ({node.survey.identity[:8]}, bindings say {bound.identity[:8]}).",
                "see that ansible_host is right; run rebind to accept a replaced host.",
            )
        for port in node.ports.values():
            endpoint = bound.endpoints.get(role_name(port))
            if endpoint is not None and endpoint.mac.lower() != port.link.mac.lower():
                yield Found(
                    port.place,
                    f"{port.place} has MAC {port.link.mac.lower()}, bindings say {endpoint.mac.lower()}.",
                    "run rebind to accept the new card, then mesh-setup.",
                )
