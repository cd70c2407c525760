"""One run over several rings: all are worked out before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan

from . import adoption, bindings, degraded, inventory, planner, selection, store, summary
from .bindings import Bindings
from .degraded import Lost
from .errors import RingError
from .inventory import Inventory


@dataclass
class Outcome:
    """What a run made, and what it changes on disk."""

    documents: dict[str, Any]
    changes: list[store.Change]
    lines: list[str] = field(default_factory=list)
    """Sentences for the operator."""

    @property
    def changed(self) -> bool:
        """Whether any file differs from what was made."""
        return any(change.changed for change in self.changes)

    def diff(self) -> list[dict[str, str]]:
        """All rings' differences, as Ansible shows them."""
        return [entry for change in self.changes for entry in change.diff()]

    def write(self) -> None:
        """Write all rings' files."""
        for change in self.changes:
            change.write()


def choose(
    groups: Sequence[tuple[str, Sequence[str]]],
    variables: Mapping[str, Mapping[str, Any]],
    sources: Sequence[str],
    hosts: Collection[str],
) -> list[Inventory]:
    """Rings of a run, from the child groups of ``sparkring`` with their hosts in order.

    ``variables`` are by host; a ring's own are those of its head. ``hosts`` take part in the run.
    """
    selection.check_sources(sources)
    if not groups:
        raise RingError(f"The inventory has no ring; make a group {selection.GROUP} whose child groups are the rings.")
    rings = []
    for ring, names in groups:
        head = variables[names[0]] if names else {}
        rings.append(inventory.read(ring, head, [(name, variables[name]) for name in names]))
    return selection.in_run(rings, hosts)


@dataclass(frozen=True)
class Losses:
    """What the operator asks to do without (``auto`` is what the surveys show), and what they show of each ring."""

    asked: Any = None
    seen: Mapping[str, Any] | None = None


def plan(
    rings: Sequence[Inventory],
    plans_dir: Path,
    mode: str,
    bound: Mapping[str, Any] | None = None,
    applicable: bool = False,
    losses: Losses = Losses(),
) -> Outcome:
    """Plan all rings; raises RingError when one cannot be planned or differs from disk and may not.

    ``bound`` are bindings by ring as ``bind`` returned them, so that a check run that writes none
    can plan; those on disk serve the rings that it lacks. A plan on disk that differs only in what
    the ring does without is no difference to refuse.
    """
    inventory.check_rings(rings)
    given = {ring: Bindings.model_validate(document) for ring, document in (bound or {}).items()}
    made, changes, lines = [], [], []
    for item in rings:
        hardware = given.get(item.ring) or store.read_bindings(plans_dir, item.ring)
        standing = _standing_loss(item, plans_dir)
        lost = _loss(item, standing, mode, losses, len(rings))
        one = planner.plan(item, hardware, lost)
        change = store.plan_change(plans_dir, one)
        if lost != standing:
            store.refuse_plan(item.ring, mode, store.plan_change(plans_dir, planner.plan(item, hardware, standing)))
        else:
            store.refuse_plan(item.ring, mode, change)
        made.append(one)
        changes.append(change)
        lines += _changes(mode, change) if lost == standing else []
        lines += [*_lines(one, standing, losses), *summary.hazards(one)]
    if applicable and (blockers := [sentence for one in made for sentence in one.blockers]):
        raise RingError(" ".join(blockers))
    inventory.check_subnets({one.ring: _subnets(one) for one in made})
    plain = {one.ring: documents.to_plain(one) for one in made}
    hosts = {name: host for ring in plain.values() for name, host in ring["hosts"].items()}
    return Outcome({"rings": plain, "plans": hosts}, changes, lines)


def _changes(mode: str, change: store.Change) -> list[str]:
    """What replacing documents changes, each without the advice to do so."""
    if mode != "replace":
        return []
    return [sentence.partition("; ")[0].rstrip(".") + "." for sentence in change.sentences]


def _subnets(plan: RingPlan) -> list[str]:
    return [net for cable in plan.cables for net in (cable.subnets.primary, cable.subnets.secondary)]


def _standing_loss(item: Inventory, plans_dir: Path) -> Lost:
    """What the plan on disk does without, as far as the inventory still has it."""
    found = store.read_lost(plans_dir, item.ring)
    hosts = {host.name for host in item.hosts}
    cables = {cable.index for cable in item.shape.cables}
    if not set(found.get("hosts", [])) <= hosts or not set(found.get("cables", [])) <= cables:
        return degraded.NOTHING
    return degraded.asked(item, found) if found else degraded.NOTHING


def _loss(item: Inventory, standing: Lost, mode: str, losses: Losses, rings: int) -> Lost:
    """What a ring is to be planned without."""
    seen = degraded.Lost.model_validate(losses.seen.get(item.ring, {})) if losses.seen is not None else None
    if losses.asked == degraded.AUTO:
        if seen is None:
            raise RingError("degraded=auto needs a survey of the hosts: give it to mesh-setup, or name what is lost.")
        return Lost(cables=seen.cables, hosts=seen.hosts)
    if losses.asked:
        if rings > 1:
            raise RingError("degraded names what one ring lost, but the run has several rings: limit it to that ring.")
        lost = degraded.asked(item, losses.asked)
        if seen is not None and (silent := [host for host in seen.hosts if host not in lost.hosts]):
            raise RingError(
                f"Ring {item.ring}: {', '.join(silent)} does not answer and degraded does not name it; "
                "add it, or use degraded=auto."
            )
        return lost
    if mode == "check":
        return standing
    if standing and seen:
        raise RingError(degraded.still_lost(item, seen))
    return degraded.NOTHING


def _lines(made: RingPlan, standing: Lost, losses: Losses) -> list[str]:
    if made.degraded:
        reasons = Lost.model_validate((losses.seen or {}).get(made.ring, {})).reasons
        return [*made.degraded.sentences, *(f"Seen: {reason}." for reason in reasons)]
    if standing:
        return [f"Ring {made.ring} is whole again: what its plan did without is planned with the rest."]
    return []


def bind(
    rings: Sequence[Inventory],
    surveys: Mapping[str, Any],
    plans_dir: Path,
    mode: str,
    partial: bool = False,
    adopt: bool | None = None,
) -> Outcome:
    """Bind all rings; raises RingError when one cannot be bound or differs from disk and may not.

    ``partial`` lets hosts without a survey keep the bindings that stand. ``adopt`` takes the addresses that the hosts
    have (True), drops adopted ones (False), or leaves those that stand (None). The outcome also says what of each ring
    the surveys show as lost.
    """
    inventory.check_rings(rings)
    made, changes, lines, lost = [], [], [], {}
    for item in rings:
        standing = store.read_bindings(plans_dir, item.ring)
        silent = [host.name for host in item.hosts if not surveys.get(host.name)]
        if silent and not partial:
            raise RingError(f"Ring {item.ring}: {silent[0]} was not surveyed; run this for the whole ring.")
        one = bindings.bind(item, surveys, standing)
        if adopt is not None:
            one, said = adoption.adopt(item, one, surveys) if adopt else (adoption.without(one), [])
            lines += said
        change = store.bindings_change(plans_dir, one)
        store.refuse_bindings(item.ring, mode, change)
        lines += _changes(mode, change)
        made.append(one)
        changes.append(change)
        lost[item.ring] = degraded.seen(item, one, surveys).model_dump()
    return Outcome({"rings": {one.ring: one.model_dump(by_alias=True) for one in made}, "lost": lost}, changes, lines)
