"""Checks of which port is cabled to which: the findings of ``plugin_utils.cabling``, on planned rings and any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ansible_collections.sparkring.cluster.plugins.plugin_utils import cabling
from ansible_collections.sparkring.cluster.plugins.plugin_utils.finding import Finding, Severity

from .registry import Examine, Found, check
from .ring import End, Ring

OURS = ("cabling.same_ports", "cabling.pair_ports")
"""What is wrong only for a plan of ours: a ring that another tool laid may well be cabled so."""
UNSEEN = ("cabling.unseen", "cabling.one_sided", "cabling.cable_unseen")
"""Ports that are not seen by LLDP or IPv6 neighbours; addresses may tell of their cables all the same."""
STRANGERS = ("cabling.unknown_neighbour",)
SAID_ELSEWHERE = ("cabling.same_machine", "cabling.open_line")
"""``fleet.identity`` and ``link.down`` say these."""

KINDS: dict[str, tuple[Severity, str]] = {
    "cabling.same_ports": ("fail", "Cables join ports of one number; every cable must join a p0 to a p1."),
    "cabling.pair_ports": ("fail", "The one cable of a pair is not in p0 at both ends."),
    "cabling.double": ("fail", "Two hosts of a larger ring are joined by two cables and to no other host."),
    "cabling.self_loop": ("fail", "A cable joins two ports of one host."),
    "cabling.several_far_ports": ("fail", "A port sees more than one far port."),
    "cabling.ends_disagree": ("fail", "A port sees a far port that sees another."),
    "cabling.name_shared": ("fail", "A port sees a name that several hosts have."),
    "cabling.unknown_neighbour": ("fail", "A port is cabled to a host that was not surveyed."),
    "cabling.outside_group": ("fail", "A port is cabled to a host of another ring."),
    "cabling.order_differs": ("fail", "The cables make the declared layout with the hosts in another order."),
    "cabling.layout_differs": ("fail", "A cable is not where the declared layout has it."),
    "cabling.unseen": ("warn", "A port has a carrier, and nothing tells what is at its other end."),
    "cabling.one_sided": ("warn", "A port sees a far port that does not see it."),
    "cabling.cable_unseen": ("warn", "A declared cable has carriers, but its ends do not see each other."),
    "topology.ambiguous": ("fail", "A switch lies between ports of a ring that has none."),
    "topology.not_one_cycle": ("fail", "Some hosts make a ring of their own."),
    "topology.in_pieces": ("warn", "The cables join the hosts in more than one piece."),
}


def cables(ring: Ring) -> list[tuple[End, End]]:
    """The cables that both ends see."""
    found = ring.wiring.cables if ring.wiring is not None else ()
    return [((cable.a.host, cable.a.port), (cable.b.host, cable.b.port)) for cable in found]


def _findings(ring: Ring) -> list[Finding]:
    if ring.wiring is None or ring.layout == "switched":
        return []
    found = list(ring.wiring.findings)
    if ring.layout:
        found += cabling.contradictions(ring.wiring, ring.layout, ring.names)
    told = {f"{host} p{port}" for host, port in ring.far_end}
    # A far end that nobody knows is no stranger while a host of the ring shows no ports: another check names that host.
    shown = {node.survey.identity for node in ring.nodes.values() if node.ports}
    passed = (*SAID_ELSEWHERE, *(STRANGERS if len(shown) < len(ring.names) else ()))
    return [
        one
        for one in found
        if one.id not in passed and not (one.id in UNSEEN and set(one.subject.split(" ↔ ")) <= told)
    ]


def _examine(identifier: str) -> Examine:
    def examine(ring: Ring) -> Iterator[Found]:
        for one in _findings(ring):
            if one.id == identifier:
                declared = ring.plan is not None or bool(ring.layout)
                severity: Severity = "warn" if one.id in OURS and not declared else one.severity
                yield Found(one.subject, one.sentence, one.fix, severity)

    return examine


def _register(register: Callable[[Examine], Examine], identifier: str) -> None:
    register(_examine(identifier))


for _identifier, (_severity, _says) in KINDS.items():
    _register(check(_identifier, _severity, "links rdma lldp", _says), _identifier)
