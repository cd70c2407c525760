"""What of a ring is lost, as the surveys show it or the operator says, and what the rest can carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, ValidationError

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import FUNCTIONS, ROLE_BY_PLACE
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import Counts

from . import layouts
from .bindings import Bindings
from .errors import RingError
from .inventory import Inventory, Strict
from .survey import Survey

AUTO: Literal["auto"] = "auto"
KIB = 1024
FORM = "write auto, or {cables: [2]} or {hosts: [name]}"


class Lost(Strict):
    """Cables by number and hosts by name; ``reasons`` are what the surveys show of them."""

    cables: list[int] = Field(default=[])
    hosts: list[str] = Field(default=[])
    reasons: list[str] = Field(default=[])

    def __bool__(self) -> bool:
        """Whether anything is lost."""
        return bool(self.cables or self.hosts)


NOTHING = Lost()


@dataclass(frozen=True)
class Left:
    """What remains of a ring."""

    lost: Lost
    shape: layouts.Layout


def seen(inventory: Inventory, bindings: Bindings, surveys: Mapping[str, Any]) -> Lost:
    """Hosts without a survey, and cables with an endpoint without carrier between two hosts that have one."""
    hosts = [host.name for host in inventory.hosts if not surveys.get(host.name)]
    reasons = [f"{host} does not answer" for host in hosts]
    names = [host.name for host in inventory.hosts]
    down = {
        name: {link.netdev for link in Survey.model_validate(surveys[name]).links if link.carrier is False}
        for name in names
        if name not in hosts
    }
    cables = []
    for cable in inventory.shape.cables:
        ends = [(names[position], port) for position, port in (cable.first, cable.second)]
        if any(host in hosts for host, _port in ends):
            continue
        dark = [
            f"{netdev} of {host}"
            for host, port in ends
            for function in FUNCTIONS
            for netdev in [bindings.hosts[host].endpoints[ROLE_BY_PLACE[port, function].name].netdev]
            if netdev in down[host]
        ]
        if dark:
            cables.append(cable.index)
            reasons.append(f"{cable_name(inventory, cable)} has no carrier on {', '.join(dark)}")
    return Lost(cables=cables, hosts=hosts, reasons=reasons)


def asked(inventory: Inventory, document: Any) -> Lost:
    """What the operator says is lost; raises RingError where the ring has no such cable or host."""
    ring = inventory.ring
    try:
        lost = Lost.model_validate(document)
    except ValidationError:
        raise RingError(f"Ring {ring}: degraded is {document}, which says nothing; {FORM}.") from None
    names = [host.name for host in inventory.hosts]
    known = [cable.index for cable in inventory.shape.cables]
    for index in lost.cables:
        if index not in known:
            raise RingError(f"Ring {ring}: degraded names cable {index}; the cables are {_listed(map(str, known))}.")
    for host in lost.hosts:
        if host not in names:
            raise RingError(f"Ring {ring}: degraded names host {host}; the hosts are {_listed(names)}.")
    return Lost(cables=sorted(set(lost.cables)), hosts=sorted(set(lost.hosts), key=names.index))


def left(inventory: Inventory, lost: Lost) -> Left:
    """The line that remains; raises RingError where nothing does."""
    if not lost:
        return Left(lost, inventory.shape)
    ring, shape = inventory.ring, inventory.shape
    if shape.kind == layouts.SWITCHED:
        raise RingError(
            f"Ring {ring}: a switched ring is not planned without what is lost; take the host out of the inventory."
        )
    names = [host.name for host in inventory.hosts]
    rest = shape.left(lost.cables, [names.index(host) for host in lost.hosts])
    if rest is None:
        raise RingError(
            f"Ring {ring}: without {_what(inventory, lost)} no two hosts are joined by a cable; "
            "repair that, then run mesh-setup."
        )
    # A cable of a lost host is lost with it, whether or not it is named.
    ends = {cable.index: {names[cable.first[0]], names[cable.second[0]]} for cable in shape.cables}
    cables = [index for index in lost.cables if not ends[index] & set(lost.hosts)]
    return Left(lost.model_copy(update={"cables": cables}), rest)


def still_lost(inventory: Inventory, lost: Lost) -> str:
    """The sentence for a whole ring that was asked for while a part of a degraded one is still lost."""
    return (
        f"Ring {inventory.ring} is planned without what was lost, and it is not whole yet: {'; '.join(lost.reasons)}; "
        "repair that, or run mesh-setup with -e degraded=auto."
    )


def sentences(inventory: Inventory, rest: Left, counts: Counts, whole: Counts) -> list[str]:
    """What the line can carry, and what it cannot."""
    names = [host.name for host in inventory.hosts]
    line = [names[position] for position in rest.shape.line]
    out = [name for place, name in enumerate(names) if place not in rest.shape.members]
    found = [
        f"Ring {inventory.ring} is degraded: {_what(inventory, rest.lost)} {_are(rest.lost)} lost.",
        f"What is left is the line {' ↔ '.join(line)}, planned like {rest.shape.like} with unchanged addresses.",
        _capacity(counts, whole),
    ]
    if out:
        found.append(
            f"Out of the line {'is' if len(out) == 1 else 'are'} {_listed(out)}: a model on {len(names)} ranks does "
            f"not fit; sizes up to {len(line)} do."
        )
    else:
        found.append(f"All {len(names)} hosts reach each other: a model on {len(names)} ranks still fits.")
    if inventory.source_port_rule:
        found.append("It has no rule by UDP source port: a transport that needs that rule needs the whole ring.")
    if names[0] in out:
        found.append(f"The head {names[0]} is out of the line; {names[rest.shape.members[0]]} stands first in it.")
    return found


def cable_name(inventory: Inventory, cable: layouts.Cable) -> str:
    """A cable by its number and ends."""
    (first, first_port), (second, second_port) = cable.first, cable.second
    names = [host.name for host in inventory.hosts]
    return f"cable {cable.index} ({names[first]} p{first_port} ↔ {names[second]} p{second_port})"


def _capacity(counts: Counts, whole: Counts) -> str:
    if counts.window_min is None:
        return f"It has {counts.lanes} lanes (whole: {whole.lanes}) and needs no relay."
    return (
        f"It has {counts.lanes} lanes (whole: {whole.lanes}), at most {_relays(counts.relays_max)} between two hosts "
        f"(whole: {whole.relays_max}), and windows from {counts.window_min // KIB} KiB "
        f"(whole: {_window(whole.window_min)})."
    )


def _relays(count: int) -> str:
    return f"{count} relay{'' if count == 1 else 's'}"


def _window(size: int | None) -> str:
    return "none" if size is None else f"{size // KIB} KiB"


def _what(inventory: Inventory, lost: Lost) -> str:
    cables = {cable.index: cable for cable in inventory.shape.cables}
    return _listed([*lost.hosts, *(cable_name(inventory, cables[index]) for index in lost.cables)])


def _are(lost: Lost) -> str:
    return "is" if len(lost.cables) + len(lost.hosts) == 1 else "are"


def _listed(words: Iterator[str] | list[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
