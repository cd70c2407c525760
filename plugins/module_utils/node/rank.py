"""The rank that this host serves: its files, its GID indices, its start and its stop.

Everything of one deployment lies in one folder, so that another takes its place, and the old one its back, in one
step each.
"""

from __future__ import annotations

import json
import secrets
import shutil
from dataclasses import dataclass, field
from typing import Any

from ..contract import documents, marks, rank_unit
from ..contract.host_plan import HostPlan
from ..contract.rank_unit import RankUnit
from . import gid, units
from .commands import HostError
from .host import Host

NEXT = rank_unit.DIRECTORY + "/next"
STARTED = marks.RUN_DIR + "/rank-started"
"""Digest of the unit that was started last."""
LOG_LINES = 20


@dataclass
class Outcome:
    """What was changed, or would be: ids, and the files before and after, secrets left out."""

    changes: list[str] = field(default_factory=list)
    before: str = ""
    after: str = ""


def standing(host: Host, folder: str = rank_unit.CURRENT) -> RankUnit | None:
    """The unit that lies in a folder; None where there is none."""
    text = host.read(f"{folder}/{rank_unit.DOCUMENT}")
    if text is None:
        return None
    try:
        return RankUnit.from_plain(json.loads(text))
    except ValueError as error:
        raise HostError(f"{folder}/{rank_unit.DOCUMENT} is damaged ({error}): run serve") from error


def place(host: Host, unit: RankUnit, unit_text: str, environment: str, check: bool) -> Outcome:
    """Make the unit the current deployment of this host; another that lay there becomes the previous one.

    The running rank is not touched: systemd reads the unit anew, and ``start`` starts it.
    """
    _finish(host, check)
    wanted = {
        rank_unit.DOCUMENT: documents.to_text(unit),
        rank_unit.UNIT_FILE: unit_text,
        rank_unit.ENVIRONMENT: environment,
    }
    there = {name: host.read_bytes(f"{rank_unit.CURRENT}/{name}") for name in wanted}
    installed = f"{marks.UNIT_DIR}/{unit.unit}"
    outcome = Outcome()
    differing = [name for name, text in wanted.items() if there[name] != text.encode()]
    if differing:
        outcome.changes += [f"{rank_unit.CURRENT}/{name}" for name in differing]
    if host.read_bytes(installed) != unit_text.encode():
        outcome.changes.append(installed)
    outcome.changes += [item.source for item in unit.folders if item.write and not host.path(item.source).is_dir()]
    outcome.before = "".join((there[name] or b"").decode() for name in wanted if name in differing)
    outcome.after = "".join(wanted[name] for name in wanted if name in differing)
    if check or not outcome.changes:
        return outcome
    for item in unit.folders:
        if item.write:
            host.path(item.source).mkdir(parents=True, exist_ok=True, mode=0o750)
    if differing:
        _clear(host, NEXT)
        for name, text in wanted.items():
            host.write(f"{NEXT}/{name}", text.encode(), 0o600)
        _swap_in(host)
    _install(host)
    return outcome


def swap(host: Host, check: bool) -> RankUnit:
    """Let the previous deployment and the current one change places; the one that is current then."""
    _finish(host, check)
    before, current = standing(host, rank_unit.PREVIOUS), standing(host)
    if before is None:
        raise HostError("There is no previous deployment to go back to: run serve with the recipe that you want")
    if check:
        return before
    if current is not None:
        stop(host, current)
        _uninstall(host, current)
    _clear(host, NEXT)
    host.move(rank_unit.PREVIOUS, NEXT)
    _swap_in(host)
    _install(host)
    return before


def remove(host: Host, check: bool) -> list[str]:
    """Stop the rank and take its unit away; its folders with caches stay."""
    found = standing(host)
    if found is None:
        return []
    if not check:
        stop(host, found)
        _uninstall(host, found)
        for folder in (rank_unit.CURRENT, rank_unit.PREVIOUS, NEXT):
            _clear(host, folder)
        host.remove(rank_unit.KEY_PATH)
        host.remove_empty(rank_unit.DIRECTORY)
    return [found.unit]


def keep_key(host: Host, check: bool) -> bool:
    """Make the key of the API where there is none yet; whether one was, or would be, made."""
    if host.read(rank_unit.KEY_PATH) is not None:
        return False
    if not check:
        host.write(rank_unit.KEY_PATH, f"VLLM_API_KEY={secrets.token_urlsafe(32)}\n".encode(), 0o600)
    return True


def start(host: Host, unit: RankUnit) -> None:
    """Start the rank with what lies in the current folder."""
    host.runner.run(["systemctl", "start", unit.unit], timeout=120)
    host.write(STARTED, documents.digest(unit).encode(), 0o600)


def stop(host: Host, unit: RankUnit) -> bool:
    """Stop the rank; whether there was anything to stop."""
    if active(host, unit) in ("inactive", "unknown"):
        return False
    host.runner.run(["systemctl", "stop", unit.unit], timeout=180)
    host.runner.execute(["systemctl", "reset-failed", unit.unit], None, 30)
    host.remove(STARTED)
    return True


def active(host: Host, unit: RankUnit) -> str:
    """What systemd says of the rank's unit: active, activating, failed, inactive and so on."""
    return units.show(host, [unit.unit]).get(unit.unit, {}).get("ActiveState", "unknown")


def runs(host: Host, unit: RankUnit) -> bool:
    """Whether this very unit was started and still runs."""
    return host.read(STARTED) == documents.digest(unit) and active(host, unit) == "active"


def observe(host: Host, unit: RankUnit) -> dict[str, Any]:
    """How the rank stands, with the last lines of its log where it does not run."""
    said = active(host, unit)
    log: list[str] = []
    if said != "active":
        command = ["journalctl", "-q", "-o", "cat", "--no-pager", "-n", str(LOG_LINES), "-u", unit.unit]
        log = host.runner.execute(command, None, 30).output.splitlines()
    return {
        "deployment": unit.deployment,
        "recipe": unit.recipe,
        "unit": unit.unit,
        "rank": unit.rank,
        "invariant": unit.invariant,
        "status": unit.status,
        "active": said,
        "runs": runs(host, unit),
        "log": log,
        "api": unit.api,
        "model": unit.model_name,
        "key": rank_unit.KEY_PATH if unit.engine == "venv" else None,
        "timeout_seconds": unit.timeout_seconds,
    }


def write_gids(host: Host, plan: HostPlan) -> None:
    """Write the GID indices that the current rank asks for, as variables of its environment."""
    unit = standing(host)
    if unit is None:
        raise HostError("No rank is laid on this host: run serve")
    ends = {link.rdma_device: (link.netdev, link.address.partition("/")[0]) for link in plan.links}
    for lane in plan.lanes:
        ends.setdefault(lane.source.rdma_device, (lane.source.netdev, lane.source.address))
    lines = []
    for name, devices in sorted(unit.gids.items()):
        strangers = [device for device in devices if device not in ends]
        if strangers:
            raise HostError(f"{strangers[0]} is in no link of this host's plan: run serve, which renders the rank anew")
        index = gid.common(host, [(device, *ends[device]) for device in devices])
        lines.append(f"{name}={index}\n")
    host.write(rank_unit.GID_PATH, "".join(lines).encode(), 0o600)


def _swap_in(host: Host) -> None:
    """The folder ``next`` becomes the current one, and the current one the previous."""
    if host.path(rank_unit.CURRENT).exists():
        _clear(host, rank_unit.PREVIOUS)
        host.move(rank_unit.CURRENT, rank_unit.PREVIOUS)
    host.move(NEXT, rank_unit.CURRENT)
    host.settle()


def _finish(host: Host, check: bool) -> None:
    """Complete a change of places that power loss cut between its two steps."""
    if not check and host.path(NEXT).exists() and not host.path(rank_unit.CURRENT).exists():
        host.move(NEXT, rank_unit.CURRENT)


def _install(host: Host) -> None:
    unit = standing(host)
    text = host.read_bytes(f"{rank_unit.CURRENT}/{rank_unit.UNIT_FILE}")
    if unit is None or text is None:
        raise HostError(f"{rank_unit.CURRENT} lacks files: run serve")
    before = standing(host, rank_unit.PREVIOUS)
    if before is not None and before.unit != unit.unit:
        stop(host, before)
        _uninstall(host, before)
    host.write(f"{marks.UNIT_DIR}/{unit.unit}", text, 0o644)
    units.forget(host)


def _uninstall(host: Host, unit: RankUnit) -> None:
    host.remove(f"{marks.UNIT_DIR}/{unit.unit}")
    units.forget(host)


def _clear(host: Host, folder: str) -> None:
    shutil.rmtree(host.path(folder), ignore_errors=True)
