"""The states that a host's rank is brought to, one function each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..contract import documents, rank_unit
from ..contract.rank_unit import RankUnit
from . import nccl_library, rank, rank_checks, rank_probe
from .commands import HostError
from .host import Host

Answer = dict[str, Any]


def reach(host: Host, given: Mapping[str, Any], check: bool) -> Answer:
    """Bring the rank to ``given["state"]``; the module's answer. Raises HostError in one sentence."""
    return STATES[given["state"]](host, given, check)


def _checked(host: Host, given: Mapping[str, Any], check: bool) -> Answer:
    refused = rank_checks.refusals(host, RankUnit.from_plain(given["unit"]))
    if refused:
        raise HostError("\n".join(f"{sentence}." for sentence in refused))
    return {"changed": False}


def _placed(host: Host, given: Mapping[str, Any], check: bool) -> Answer:
    unit = RankUnit.from_plain(given["unit"])
    outcome = rank.place(host, unit, given["unit_text"], given["environment"], check)
    if unit.rank == 0 and unit.engine == "venv" and rank.keep_key(host, check):
        outcome.changes.append(rank_unit.KEY_PATH)
    diff = {"before": outcome.before, "after": outcome.after}
    return {"changed": bool(outcome.changes), "changes": outcome.changes, "diff": diff}


def _observed(host: Host, given: Mapping[str, Any], check: bool) -> Answer:
    unit = RankUnit.from_plain(given["unit"]) if given.get("unit") else rank.standing(host)
    if unit is None:
        return {"changed": False, "rank": None}
    seen = rank.observe(host, unit)
    if given.get("probe") and unit.api is not None and seen["active"] == "active":
        seen["lacks"] = rank_probe.answers(host, unit)
    return {"changed": False, "rank": seen}


def _stopped(host: Host, given: Mapping[str, Any], check: bool) -> Answer:
    unit = rank.standing(host)
    if unit is None or all_run(given.get("ranks")):
        return {"changed": False, "changes": []}
    stops = rank.active(host, unit) not in ("inactive", "unknown") if check else rank.stop(host, unit)
    return {"changed": stops, "changes": [f"stop {unit.unit}"] if stops else []}


def _started(host: Host, given: Mapping[str, Any], check: bool) -> Answer:
    unit = rank.standing(host)
    if unit is None:
        if check:
            return {"changed": True, "changes": ["start the rank"]}
        raise HostError("No rank is laid on this host: run serve")
    if rank.runs(host, unit):
        return {"changed": False, "changes": []}
    if not check:
        refused = rank_checks.refusals_now(host, unit)
        if refused:
            raise HostError("\n".join(f"{sentence}." for sentence in refused))
        rank.start(host, unit)
    return {"changed": True, "changes": [f"start {unit.unit}"]}


def _swapped(host: Host, given: Mapping[str, Any], check: bool) -> Answer:
    unit = rank.swap(host, check)
    return {"changed": True, "changes": [unit.unit], "rank": documents.to_plain(unit)}


def _absent(host: Host, given: Mapping[str, Any], check: bool) -> Answer:
    changes = [*rank.remove(host, check), *nccl_library.remove(host, check)]
    return {"changed": bool(changes), "changes": changes}


def all_run(ranks: list[dict[str, Any]] | None) -> bool:
    """Whether every rank of the deployment runs as it lies on its host; not where nothing is known of them."""
    return bool(ranks) and all(item.get("runs") for item in ranks or [])


STATES: dict[str, Callable[[Host, Mapping[str, Any], bool], Answer]] = {
    "checked": _checked,
    "placed": _placed,
    "observed": _observed,
    "stopped": _stopped,
    "started": _started,
    "swapped": _swapped,
    "absent": _absent,
}
