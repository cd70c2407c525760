"""The files of a ring's plan: what stands there, what shall stand there, and the difference."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan

from . import bindings, drawing, summary
from .bindings import Bindings
from .errors import RingError

BINDINGS = "bindings.json"
RING = "ring.json"
HOSTS = "hosts"
MODES = ("create", "replace", "check")
SHOWN = 12
"""Differences that a message names before it counts the rest."""


@dataclass
class Change:
    """Files of one ring to write (text) or remove (None), by path, and what stood there."""

    folder: Path
    after: dict[str, str | None]
    before: dict[str, str | None]
    sentences: list[str] = field(default_factory=list)
    """Differences between documents that both stand on disk; none when nothing stands there yet."""
    absent: bool = False

    @property
    def changed(self) -> bool:
        """Whether writing changes anything."""
        return bool(self.after)

    def diff(self) -> list[dict[str, str]]:
        """Before and after of the documents, as Ansible shows them."""
        return [
            {
                "before": self.before[name] or "",
                "after": self.after[name] or "",
                "before_header": str(self.folder / name),
                "after_header": str(self.folder / name),
            }
            for name in sorted(self.after)
            if name == BINDINGS or name.startswith(HOSTS + "/")
        ]

    def write(self) -> None:
        """Make the files so, each replaced whole."""
        for name, text in sorted(self.after.items()):
            path = self.folder / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_name(f".{path.name}.new")
            fresh.write_text(text, encoding="utf-8")
            os.replace(fresh, path)


def read_bindings(plans_dir: Path, ring: str) -> Bindings | None:
    """The ring's bindings on disk, None where there are none."""
    text = _read(plans_dir / ring / BINDINGS)
    if text is None:
        return None
    return bindings.read(ring, _parse(text, plans_dir / ring / BINDINGS))


def read_lost(plans_dir: Path, ring: str) -> dict[str, Any]:
    """Cables and hosts that the plan on disk does without; empty for a whole ring or where none stands."""
    path = plans_dir / ring / RING
    text = _read(path)
    standing = _parse(text, path) if text is not None else {}
    lost = standing.get("degraded") if isinstance(standing, dict) else None
    return {name: lost[name] for name in ("cables", "hosts")} if lost else {}


def plan_change(plans_dir: Path, plan: RingPlan) -> Change:
    """What must be written for this plan."""
    texts = {RING: documents.to_text(plan)}
    texts |= {f"{HOSTS}/{name}.json": documents.to_text(host) for name, host in plan.hosts.items()}
    views = {"README.md": summary.markdown(plan), "ring.svg": drawing.svg(plan)}
    folder = plans_dir / plan.ring
    change = _compare(folder, texts | views)
    for path in sorted((folder / HOSTS).glob("*.json")):
        name = f"{HOSTS}/{path.name}"
        if name not in texts:
            change.before[name], change.after[name] = _read(path), None
    standing = _read(folder / RING)
    change.absent = standing is None
    if any(name not in views for name in change.after) and standing is not None:
        change.sentences = list(_differences(_parse(standing, folder / RING), documents.to_plain(plan)))
        change.sentences = change.sentences or [
            f"{name} was edited" for name in sorted(change.after) if name not in views
        ]
    return change


def bindings_change(plans_dir: Path, seen: Bindings) -> Change:
    """What must be written for these bindings."""
    folder = plans_dir / seen.ring
    change = _compare(folder, {BINDINGS: documents.to_text(seen.model_dump(by_alias=True))})
    change.absent = change.changed and change.before[BINDINGS] is None
    if change.changed and not change.absent:
        change.sentences = bindings.differences(bindings.read(seen.ring, _standing(folder / BINDINGS)), seen)
        change.sentences = change.sentences or [f"{folder / BINDINGS} was edited; run rebind to write it again."]
    return change


def refuse_plan(ring: str, mode: str, change: Change) -> None:
    """Raise RingError where the mode does not allow the plan's change."""
    if mode == "check" and change.absent:
        raise RingError(f"Ring {ring}: there is no plan in {change.folder}; run plan.")
    if mode != "replace" and change.sentences:
        named = "; ".join(change.sentences[:SHOWN])
        more = len(change.sentences) - SHOWN
        rest = f"; and {more} more" if more > 0 else ""
        raise RingError(f"Ring {ring}: the plan in {change.folder} differs ({named}{rest}); run plan to accept it.")


def refuse_bindings(ring: str, mode: str, change: Change) -> None:
    """Raise RingError where the mode does not allow the bindings' change."""
    if mode == "check" and change.absent:
        raise RingError(f"Ring {ring}: there are no bindings in {change.folder}; run bind.")
    if mode != "replace" and change.sentences:
        raise RingError(" ".join(change.sentences))


def _compare(folder: Path, texts: Mapping[str, str]) -> Change:
    standing = {name: _read(folder / name) for name in texts}
    differing = [name for name in texts if standing[name] != texts[name]]
    return Change(folder, {name: texts[name] for name in differing}, {name: standing[name] for name in differing})


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _parse(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise RingError(f"{path} is not JSON; restore it or delete it.") from None


def _standing(path: Path) -> Any:
    return _parse(path.read_text(encoding="utf-8"), path)


def _differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """A sentence for each differing value; objects in lists are matched by their id.

    Digests and checks follow from the rest and are left out.
    """
    if where.endswith(("digest", " checks")) or before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(set(before) | set(after)):
            yield from _step(before, after, key, f"{where} {key}".strip())
    elif _keyed(before) and _keyed(after):
        old, new = ({item["id"]: item for item in items} for items in (before, after))
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _step(old, new, key, f"{where.rpartition(' ')[0]} {key}".strip())
    else:
        yield f"{where}: {json.dumps(before)} is now {json.dumps(after)}"


def _step(before: Mapping[str, Any], after: Mapping[str, Any], key: str, where: str) -> Iterator[str]:
    if key not in before:
        yield f"{where} is new"
    elif key not in after:
        yield f"{where} is gone"
    else:
        yield from _differences(before[key], after[key], where)


def _keyed(items: Any) -> bool:
    """Whether a list's items have ids of their own."""
    return (
        isinstance(items, list)
        and all(isinstance(item, dict) and "id" in item for item in items)
        and len({item["id"] for item in items}) == len(items)
    )
