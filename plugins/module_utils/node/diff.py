"""Compare what shall be with what is: an ordered list of changes, nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from . import objects
from .objects import Item

ADD, REPLACE, REMOVE = "add", "replace", "remove"


@dataclass(frozen=True)
class Change:
    """One object that will be laid, put right or taken away."""

    id: str
    kind: str
    action: str
    reason: str
    old: Item | None
    new: Item | None

    def plain(self) -> dict[str, str]:
        """The change as it is reported."""
        return {"id": self.id, "action": self.action, "reason": self.reason}


def compare(desired: list[Item], observed: list[Item]) -> list[Change]:
    """Changes that make the host equal to its plan: removals backwards, then the rest in order."""
    wanted = {item.id: item for item in desired}
    present = {item.id: item for item in observed}
    removals = [
        Change(item.id, item.kind, REMOVE, "not in the plan", item, None)
        for item in observed
        if item.id not in wanted and item.removable
    ]
    removals.sort(key=lambda change: (-objects.ORDER.index(change.kind), change.id))
    restarted: set[str] = set()
    rest = []
    for item in desired:
        old = present.get(item.id)
        if old is None:
            rest.append(Change(item.id, item.kind, ADD, "missing", None, item))
        elif old.body != item.body:
            rest.append(Change(item.id, item.kind, REPLACE, _difference(old, item), old, item))
        elif item.netdev in restarted:
            rest.append(Change(item.id, item.kind, REPLACE, f"{item.netdev} is started again", old, item))
        else:
            continue
        if item.kind == objects.LINK:
            restarted.update({item.body["netdev"]} | ({old.body["netdev"]} if old else set()))
    return removals + rest


def _difference(old: Item, new: Item) -> str:
    names = sorted(name for name in new.body if old.body.get(name) != new.body[name])
    parts = []
    for name in names:
        before, after = old.body.get(name), new.body[name]
        if isinstance(before, dict) and isinstance(after, dict):
            keys = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
            parts += [f"{key} is {before.get(key) or 'unset'}, planned {after.get(key)}" for key in keys]
        elif name == "content":
            parts.append("content differs")
        else:
            parts.append(f"{name} is {objects.short(before)}, planned {objects.short(after)}")
    return "; ".join(parts)
