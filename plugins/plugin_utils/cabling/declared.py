"""Where the wiring contradicts the layout and host order that the inventory declares."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.sparkring.cluster.plugins.plugin_utils.finding import Finding, ordered
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import layouts

from .discovery import Discovery
from .evidence import End

ON_A_PORT = ("cabling.unknown_neighbour", "cabling.outside_group", "cabling.name_shared")
PASSING = ("cabling.ends_disagree",)
"""Findings that may pass by themselves, since LLDP remembers a neighbour for a while."""


def contradictions(discovery: Discovery, layout: str, hosts: Sequence[str]) -> list[Finding]:
    """Findings that speak against the declared layout and order; a ``fail`` means that it cannot be laid so.

    What is merely not seen contradicts nothing: a cable that is not there or not seen yet is a ``warn``.
    """
    shape = layouts.layout(layout)
    if shape is None or not shape.cables or shape.size != len(hosts):
        return []
    wanted: dict[End, End] = {}
    for cable in shape.cables:
        a, b = (End(hosts[position], port) for position, port in (cable.first, cable.second))
        wanted |= {a: b, b: a}
    all_seen = {end.host for end in discovery.ports} >= set(hosts)
    ports = {str(end) for end in wanted}
    found = [
        one
        for one in discovery.findings
        if one.severity == "fail"
        and one.id not in PASSING
        and (one.id not in ON_A_PORT or (all_seen and one.subject in ports))
    ]
    if found:
        return ordered(found)
    actual = {one: other for cable in discovery.cables for one, other in ((cable.a, cable.b), (cable.b, cable.a))}
    wrong = sorted(end for end, far in actual.items() if end in wanted and wanted[end] != far)
    if wrong:
        return [_differs(discovery, layout, wrong[0], wanted[wrong[0]], actual[wrong[0]])]
    missing = sorted((end, far) for end, far in wanted.items() if end < far and end not in actual and far not in actual)
    return [_missing(discovery, end, far) for end, far in missing]


def _differs(discovery: Discovery, layout: str, end: End, wanted: End, seen: End) -> Finding:
    """One cable that is elsewhere; where the cables make the layout in another order, the order is what to change."""
    sentence = f"{end} ↔ {seen}, and the declared order wants {end} ↔ {wanted}"
    if discovery.layout == layout:
        return Finding(
            "cabling.order_differs",
            "fail",
            f"{end} ↔ {seen}",
            f"{sentence}.",
            f"list the hosts in this order in the inventory: {', '.join(discovery.hosts)}; or move the cables.",
        )
    return Finding(
        "cabling.layout_differs",
        "fail",
        f"{end} ↔ {seen}",
        f"{sentence} ({layout}).",
        f"move the plug from {seen} to {wanted}"
        + (f", or set sparkring_layout to {discovery.layout}." if discovery.layout else "."),
    )


def _missing(discovery: Discovery, end: End, far: End) -> Finding:
    """A declared cable that nobody sees."""
    dark = [str(one) for one in (end, far) if one in discovery.ports and discovery.ports[one].state == "no link"]
    if dark:
        return Finding(
            "cabling.open_line",
            "warn",
            f"{end} ↔ {far}",
            f"{end} ↔ {far} is missing: no link at {' and '.join(dark)}.",
            f"plug a cable into {end} and {far}.",
        )
    return Finding(
        "cabling.cable_unseen",
        "warn",
        f"{end} ↔ {far}",
        f"{end} ↔ {far} has a carrier, but its ends do not see each other yet.",
        "wait 30 s for LLDP and survey again; if it stays so, check that lldpd runs on both hosts.",
    )
