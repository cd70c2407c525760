"""One run over several rings: all are worked out before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents

from . import bindings, inventory, planner, selection, store
from .bindings import Bindings
from .errors import RingError
from .inventory import Inventory


@dataclass
class Outcome:
    """What a run made, and what it changes on disk."""

    documents: dict[str, Any]
    changes: list[store.Change]

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


def plan(
    rings: Sequence[Inventory],
    plans_dir: Path,
    mode: str,
    bound: Mapping[str, Any] | None = None,
    applicable: bool = False,
) -> Outcome:
    """Plan all rings; raises RingError when one cannot be planned or differs from disk and may not.

    ``bound`` are bindings by ring as ``bind`` returned them, so that a check run that writes none
    can plan; those on disk serve the rings that it lacks.
    """
    inventory.check_rings(rings)
    given = {ring: Bindings.model_validate(document) for ring, document in (bound or {}).items()}
    made = [planner.plan(item, given.get(item.ring) or store.read_bindings(plans_dir, item.ring)) for item in rings]
    if applicable and (blockers := [sentence for one in made for sentence in one.blockers]):
        raise RingError(" ".join(blockers))
    changes = [store.plan_change(plans_dir, one) for one in made]
    for item, change in zip(rings, changes, strict=True):
        store.refuse_plan(item.ring, mode, change)
    plain = {one.ring: documents.to_plain(one) for one in made}
    hosts = {name: host for ring in plain.values() for name, host in ring["hosts"].items()}
    return Outcome({"rings": plain, "plans": hosts}, changes)


def bind(rings: Sequence[Inventory], surveys: Mapping[str, Any], plans_dir: Path, mode: str) -> Outcome:
    """Bind all rings; raises RingError when one cannot be bound or differs from disk and may not."""
    inventory.check_rings(rings)
    made = [bindings.bind(item, surveys) for item in rings]
    changes = [store.bindings_change(plans_dir, one) for one in made]
    for item, change in zip(rings, changes, strict=True):
        store.refuse_bindings(item.ring, mode, change)
    return Outcome({"rings": {one.ring: one.model_dump(by_alias=True) for one in made}}, changes)
