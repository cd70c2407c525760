"""Make the host equal to its plan, put it back at boot, or take all of it away."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ..contract import host_plan
from . import apply, identity, lock, markers, objects, observe, profiles, takeover
from .change import REMOVE, SET_UP, Run, admit, leave, under_way, undone
from .commands import HostError
from .diff import Change, compare
from .host import Host
from .objects import Item
from .observe import State

SETTLE_SECONDS = 1.5
RESTORE_SECONDS = 60.0
RESTORE_POLL_SECONDS = 2.0
LOCK_SECONDS = 180.0
"""A run that was killed on the controller may still be at work here, until its apply ends."""


@dataclass(frozen=True)
class Outcome:
    """What was changed, or would be; ``before`` and ``after`` hold the lines of those objects.

    ``pending``: a change waits to be confirmed.
    """

    changes: list[dict[str, str]]
    before: str
    after: str
    pending: bool = False


def _outcome(changes: list[Change], pending: bool, taken: Sequence[takeover.Other] = ()) -> Outcome:
    before = "".join(change.old.line() + "\n" for change in changes if change.old is not None)
    after = "".join(change.new.line() + "\n" for change in changes if change.new is not None)
    plain = [item.plain() for item in taken] + [change.plain() for change in changes]
    return Outcome(plain, takeover.lines(taken) + before, after, pending)


def _turn(host: Host, what: str, run: Run | None, check: bool) -> contextlib.AbstractContextManager[None]:
    """Looking needs no turn; changing does."""
    if check:
        return contextlib.nullcontext()
    return lock.hold(host, f"{what} of {run.operator}" if run else what, LOCK_SECONDS)


def setup(
    host: Host,
    plan: host_plan.HostPlan,
    program: bytes,
    marker_source: str | None,
    check: bool,
    take_over: Collection[str] = (),
    run: Run | None = None,
) -> Outcome:
    """Lay everything of the plan; ``check`` only says what would be changed.

    ``take_over`` are ids of the reference tool's objects that go before ours are laid. With a ``run``
    the host goes back to what it was unless that run confirms the change.

    Raises HostError before the first change when this is the wrong host, another run's change is pending
    or something foreign stands in the way, and after the last one when the host still differs from the plan.
    """
    from . import management  # it needs much that a restore at boot does not

    with _turn(host, SET_UP, run, check):
        refuse_wrong_identity(host, plan)
        pending = admit(host, run)
        state = observe.look(host, plan)
        state.granted = pending.addresses() if pending else set()
        others = takeover.found(host, state)
        taken = takeover.forget(state, others, take_over)
        found = management.refusals(host, state, plan) + observe.refusals(host, state, plan)
        if found and (listed := takeover.words(others, take_over)):
            found.append(listed)
        if markers.in_nic(plan.driver) and plan.marker_rules:
            if marker_source is None:
                found.append("the source of the marker was not given")
            elif host.find_tool("cc") is None:
                found.append("the C compiler cc is missing: run prepare")
        if found:
            raise HostError("; ".join(found))
        source = marker_source if markers.in_nic(plan.driver) else None
        changes = compare(objects.desired(plan, state.chain(), program, source), state.items)
        work = bool(changes or taken or pending)
        if work and not check:
            reference = takeover.held(host, taken)
            with under_way(host, run, SET_UP, plan, state, reference, pending):
                takeover.take(host, taken)
                if changes:
                    apply.make(host, plan, state, changes, source)
                    _prove(host, plan, lambda seen: objects.desired(plan, seen.chain(), program, source))
        return _outcome(changes, pending is not None if check else work and run is not None, taken)


def remove(host: Host, plan: host_plan.HostPlan, check: bool, run: Run | None = None) -> Outcome:
    """Take everything of ours away and put kernel settings back to what they were; ``run`` as in ``setup``."""
    with _turn(host, REMOVE, run, check):
        pending = admit(host, run)
        state = observe.look(host, plan)
        if state.plan is not None and state.plan.get("ring") != plan.ring:
            raise HostError(f"this host belongs to ring {state.plan.get('ring')}, not {plan.ring}")
        if state.items:
            profiles.refuse_silence(state.network_manager, plan.links)
        changes = compare([], state.items)
        work = bool(changes or pending)
        if work and not check:
            with under_way(host, run, REMOVE, plan, state, [], pending):
                apply.make(host, plan, state, changes, None)
                _prove(host, plan, lambda seen: [])
        waits = work and run is not None
        if not check and not waits:
            leave(host)
        return _outcome(changes, pending is not None if check else waits)


def restore(
    host: Host,
    plan: host_plan.HostPlan,
    wait: float = RESTORE_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Lay what a reboot takes away, as far as the links allow; profiles and files are there already.

    Routes and neighbours of a link need its address: links are waited for, and what can be laid is
    laid meanwhile. Raises HostError naming the links that did not come, or what else failed. False:
    nothing more is laid, since the host goes back from an unconfirmed change and that lays what was, or
    since another plan has come: it does not hold the lock, which a run that starts this unit has.
    """
    if undone(host):
        return False
    refuse_wrong_identity(host, plan)
    waited = 0.0
    served: list[str] | None = None
    problems: list[str] = []
    while True:
        if _replaced(host, plan):
            return False
        absent = _absent_links(host, plan)
        if absent != served:
            problems, served = _restore_without(host, plan, absent), absent
        if not absent or waited >= wait:
            break
        sleep(RESTORE_POLL_SECONDS)
        waited += RESTORE_POLL_SECONDS
    problems += [f"{netdev} has no address: check its cable and the host at its other end" for netdev in served or []]
    if problems:
        raise HostError("; ".join(problems))
    return True


def _replaced(host: Host, plan: host_plan.HostPlan) -> bool:
    """Whether another plan lies on the disk by now."""
    stored = observe.stored_plan(host)
    return stored is not None and stored.get("plan_digest") != plan.plan_digest


def _absent_links(host: Host, plan: host_plan.HostPlan) -> list[str]:
    links = {entry["ifname"]: entry for entry in host.runner.json(["ip", "-j", "-d", "addr", "show"])}
    return [
        link.netdev for link in plan.links if link.address not in observe.ipv4_addresses(links.get(link.netdev, {}))
    ]


def _restore_without(host: Host, plan: host_plan.HostPlan, absent: list[str]) -> list[str]:
    state = observe.look(host, plan, whole=False)
    wanted = [item for item in objects.desired(plan, state.chain(), None, None) if item.netdev not in absent]
    return apply.bring(host, plan, state, [item for item in compare(wanted, state.items) if item.new is not None])


def refuse_wrong_identity(host: Host, plan: host_plan.HostPlan) -> None:
    """Raises HostError when this is not the host of the plan."""
    found = identity.of(host)
    if found != plan.identity:
        raise HostError(f"this is not {plan.host}: its identity is {found or 'unknown'}, planned is {plan.identity}")


def _prove(host: Host, plan: host_plan.HostPlan, wanted: Callable[[State], list[Item]]) -> None:
    """Look again: after applying, nothing may differ. One pause lets daemons settle."""
    for pause in (SETTLE_SECONDS, 0.0):
        state = observe.look(host, plan)
        left = compare(wanted(state), state.items)
        if not left:
            return
        if pause:
            time.sleep(pause)
    differences = "; ".join(f"{change.id} ({change.reason})" for change in left)
    raise HostError(f"after applying, the host still differs from the plan: {differences}")
