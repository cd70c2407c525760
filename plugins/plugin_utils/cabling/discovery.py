"""From what the ports see to cables, layout and host order, or to findings with the fewest moves that help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.sparkring.cluster.plugins.plugin_utils.finding import Finding, Severity, ordered

from . import shape
from .evidence import Cable, End, Evidence, PortView
from .shape import Move

WAIT = "wait 30 s for LLDP and survey again; if it stays so, check that cable and that lldpd runs on both hosts."


@dataclass(frozen=True)
class Discovery:
    """The wiring. ``hosts`` are in cable order where there is a layout, else as they were asked for.

    ``moves`` are the changes of plugs that the findings name, to be made in this order.
    """

    hosts: tuple[str, ...]
    ports: Mapping[End, PortView]
    cables: tuple[Cable, ...]
    layout: str | None
    findings: tuple[Finding, ...]
    moves: tuple[Move, ...]

    def lines(self) -> list[str]:
        """The wiring for the terminal: cables, then ports that have none, then layout and order."""
        weak = {"lldp": "", "ipv6": " (by IPv6 neighbours, not confirmed by LLDP)"}
        shown = [f"{cable}{weak[cable.source]}" for cable in self.cables]
        joined = {end for cable in self.cables for end in (cable.a, cable.b)}
        for end in (End(host, port) for host in self.hosts for port in (0, 1)):
            view = self.ports.get(end)
            if view is not None and end not in joined:
                shown.append(f"{end}: {_open_words(view)}")
        if self.layout:
            shown.append(f"layout {self.layout}, hosts in order: {', '.join(self.hosts)}")
        return shown


def _open_words(view: PortView) -> str:
    if view.far or view.unknown or view.shared:
        return "sees " + ", ".join([*map(str, view.far), *view.unknown, *view.shared])
    return {"no link": "no link", "unseen": "carrier, but no neighbour seen"}.get(view.state, view.state)


def discover(surveys: Mapping[str, Mapping[str, Any]], hosts: Sequence[str] | None = None) -> Discovery:
    """The wiring of ``hosts`` (in inventory order; by default all that were surveyed, by name).

    Surveys of other hosts only tell who a neighbour is. Raises pydantic's ValidationError for a damaged survey.
    """
    evidence = Evidence(surveys)
    group = [host for host in (sorted(evidence.surveys) if hosts is None else hosts) if host in evidence.surveys]
    views = evidence.views()
    own = {end: view for end, view in views.items() if end.host in group}
    cables = tuple(sorted(_cables(own, views, group)))
    found = [_same_machine(*pair) for pair in evidence.same]
    for end, view in own.items():
        found += _port_findings(end, view, views, group, evidence)
    found = _switch(found)
    blind = {end for end, view in own.items() if view.state != "no link"} - {e for c in cables for e in (c.a, c.b)}
    # A host without a survey is somewhere in the ring all the same, with ports of which nothing is known.
    everyone = (
        group if hosts is None else [host for host in hosts if host not in {second for _first, second in evidence.same}]
    )
    blind |= {End(host, port) for host in everyone if host not in group for port in (0, 1)}
    wiring = shape.judge(everyone, cables, blind)
    found += wiring.findings
    if len(everyone) == 2:
        found = [_note(one) if _on_p1(one) else one for one in found]
    order = wiring.order or tuple(group)
    return Discovery(order, own, cables, wiring.layout, tuple(ordered(found)), wiring.moves)


def _cables(own: Mapping[End, PortView], views: Mapping[End, PortView], group: Sequence[str]) -> Iterator[Cable]:
    """Pairs of ports that see each other and nothing else."""
    for end, view in own.items():
        if len(view.far) == 1 and view.far[0].host in group and end < view.far[0]:
            back = views[view.far[0]]
            if back.far == (end,):
                yield Cable(end, view.far[0], "lldp" if view.source == back.source == "lldp" else "ipv6")


def _same_machine(first: str, second: str) -> Finding:
    return Finding(
        "cabling.same_machine",
        "fail",
        f"{first}, {second}",
        f"{first} and {second} are one machine by their RDMA node GUIDs.",
        "correct ansible_host of one of them.",
    )


def _port_findings(
    end: End, view: PortView, views: Mapping[End, PortView], group: Sequence[str], evidence: Evidence
) -> Iterator[Finding]:
    """What one port by itself, or against its far end, shows to be wrong."""

    def finding(name: str, severity: Severity, sentence: str, fix: str) -> Finding:
        return Finding(f"cabling.{name}", severity, str(end), sentence, fix)

    for name in view.shared:
        named = evidence.named(name)
        yield finding(
            "name_shared",
            "fail",
            f"{end} sees {name}, and {' and '.join(named)} all go by that name.",
            f"give each host its own name (hostnamectl set-hostname), restart lldpd, survey again: {', '.join(named)}.",
        )
    if view.unknown:
        yield finding(
            "unknown_neighbour",
            "fail",
            f"{end} ↔ {', '.join(view.unknown)}, which is no host of the survey.",
            "add that host to the inventory, or plug the cable into a host of the ring.",
        )
    elif view.state == "unseen" and not view.shared and not any(end in other.far for other in views.values()):
        yield finding("unseen", "warn", f"{end} has a carrier, but sees no neighbour and no neighbour sees it.", WAIT)
    if len(view.far) > 1:
        yield finding(
            "several_far_ports",
            "fail",
            f"{end} sees more than one far port: {', '.join(map(str, view.far))}.",
            "join each port to one other by a cable of its own; a switch is not looked through.",
        )
    elif view.far:
        far = view.far[0]
        back = views[far].far
        if far.host not in group:
            yield finding(
                "outside_group",
                "fail",
                f"{end} ↔ {far}, and {far.host} is not of this ring.",
                f"move the plug at {far} to a host of the ring, or add {far.host} to the ring's group.",
            )
        elif not back:
            yield finding("one_sided", "warn", f"{end} sees {far}, but {far} does not see {end}.", WAIT)
        elif len(back) == 1 and back[0] != end:
            yield finding(
                "ends_disagree",
                "fail",
                f"{end} sees {far}, but {far} sees {back[0]}.",
                f"survey again after 30 s; if it stays so, follow the cables at {end} and {far} by hand.",
            )


def _switch(found: list[Finding]) -> list[Finding]:
    """Three ports or more that see several are behind one switch: said once."""
    several = [one for one in found if one.id == "cabling.several_far_ports"]
    if len(several) < 3:
        return found
    subjects = ", ".join(sorted(one.subject for one in several))
    switch = Finding(
        "topology.ambiguous",
        "fail",
        subjects,
        f"{subjects} each see more than one far port, so a switch lies between them.",
        "plan a switched ring (sparkring_layout: switched), or join the ports by cables.",
    )
    return [one for one in found if one not in several] + [switch]


def _on_p1(finding: Finding) -> bool:
    """Whether a port's finding is about p1, which a pair does not need."""
    return finding.subject.endswith(" p1") and finding.id in (
        *("cabling.unseen", "cabling.one_sided", "cabling.unknown_neighbour", "cabling.outside_group"),
        *("cabling.several_far_ports", "cabling.ends_disagree", "cabling.name_shared"),
    )


def _note(finding: Finding) -> Finding:
    return Finding(finding.id, "info", finding.subject, finding.sentence, finding.fix)
