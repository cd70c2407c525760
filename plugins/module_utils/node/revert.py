"""Put back what an unconfirmed change has done; it may be cut at any point and run again."""

from __future__ import annotations

import time
from typing import Callable

from ..contract import marks
from . import apply, change, fabric, hairpin_journal, lock, objects, observe, profiles, record, takeover
from .change import Pending
from .commands import HostError
from .diff import Change, compare
from .host import Host

LOCK_SECONDS = 600.0
"""An apply that takes longer than it may ends first, and then the time begins anew."""
ON_DISK = (objects.FILE, objects.BINARY)


def run(host: Host, sleep: Callable[[float], None] = time.sleep) -> list[str]:
    """Go back if it is time to; lines that tell what was done.

    What lies on the disk becomes what it was, and what was not there goes, or HostError is raised and the unit tries
    again. What a boot lays anew and cannot be laid now, as on a link without carrier, is left to the fabric unit.
    """
    asked = change.read(host)
    if asked is not None and not asked.due(host):
        return []
    with lock.hold(host, "a revert of an unconfirmed change", LOCK_SECONDS):
        pending = change.read(host)
        if pending is None:
            change.clean(host)
            return []
        if not pending.due(host):
            return []
        lines = [f"the change of {pending.operator} since {pending.since} was not confirmed: putting back what was"]
        left, problems = _back(host, pending, sleep)
        lines += takeover.put_back(host, pending.reference)
        change.clean(host)
        if left:
            lines.append("left to the fabric unit: " + "; ".join(problems or [item.id for item in left]))
            host.runner.execute(["systemctl", "restart", "--no-block", marks.FABRIC_UNIT], None, 60)
        return lines


def _back(host: Host, pending: Pending, sleep: Callable[[float], None]) -> tuple[list[Change], list[str]]:
    """Changes that are left to the fabric unit, and what failed on the way."""
    plan = pending.host_plan()
    change.put_files_back(host, pending)
    _remember(host, pending)
    state = observe.look(host, plan)
    profiles.refuse_silence(state.network_manager, plan.links)
    changes = compare(pending.objects(), state.items)
    problems = apply.bring(host, plan, state, changes) if changes else []
    left: list[Change] = []
    for pause in (fabric.SETTLE_SECONDS, 0.0):
        left = compare(pending.objects(), observe.look(host, plan).items)
        if not left:
            break
        sleep(pause)
    firm = [item for item in left if _is_firm(host, item)]
    if firm:
        differences = "; ".join(f"{item.id} ({item.reason})" for item in firm)
        raise HostError("; ".join([*problems, f"not yet put back: {differences}"]))
    _settle(host, pending)
    return left, problems


def _remember(host: Host, pending: Pending) -> None:
    """Whose the kernel settings and qdiscs of the snapshot were, so that they are seen as ours again."""
    known = record.read(host)
    same_boot = pending.boot == hairpin_journal.boot_id(host)
    for key, value in pending.sysctls.items():
        now = value if same_boot else host.read("/proc/sys/" + key)
        if now is not None:
            known.sysctls.setdefault(key, now)
    if same_boot:
        known.qdiscs = sorted({*known.qdiscs, *pending.qdiscs})
    record.write(host, known)


def _settle(host: Host, pending: Pending) -> None:
    """The record as it was; after another boot, as laying what was has made it."""
    known = pending.record()
    if pending.boot != hairpin_journal.boot_id(host):
        now = record.read(host)
        kept = {key: value for key, value in now.sysctls.items() if key in known.sysctls}
        known.sysctls = {key: value for key, value in kept.items() if host.read("/proc/sys/" + key) != value}
        known.qdiscs = [netdev for netdev in now.qdiscs if netdev in known.qdiscs]
    record.write(host, known)


def _is_firm(host: Host, item: Change) -> bool:
    """Whether nobody but the revert would put this right."""
    if item.old is None or item.new is None:
        return item.new is None or item.kind in (*ON_DISK, objects.LINK, objects.UNIT)
    if item.kind == objects.LINK:
        # Its carrier starts a profile, and nothing else does; what was down may be up by now.
        carrier = host.read(f"/sys/class/net/{item.new.body['netdev']}/carrier") == "1"
        return bool(item.old.body["settings"] != item.new.body["settings"] or (carrier and item.new.body["active"]))
    if item.kind == objects.UNIT:
        return bool(item.old.body["enabled"] != item.new.body["enabled"])
    return item.kind in ON_DISK
