"""Make the host equal to its plan, put it back at boot, or take all of it away."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..contract import host_plan, marks
from . import forward, identity, lock, markers, objects, observe, profiles, record, takeover, tc, units
from .change import REMOVE, SET_UP, Run, admit, leave, under_way, undone
from .commands import HostError
from .diff import ADD, Change, compare
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
                    _apply(host, plan, state, changes, source)
                    _prove(host, plan, lambda seen: objects.desired(plan, seen.chain(), program, source))
        return _outcome(changes, pending is not None if check else work and run is not None, taken)


def remove(host: Host, plan: host_plan.HostPlan, check: bool, run: Run | None = None) -> Outcome:
    """Take everything of ours away and put kernel settings back to what they were; ``run`` as in ``setup``."""
    with _turn(host, REMOVE, run, check):
        pending = admit(host, run)
        state = observe.look(host, plan)
        if state.plan is not None and state.plan.get("ring") != plan.ring:
            raise HostError(f"this host belongs to ring {state.plan.get('ring')}, not {plan.ring}")
        changes = compare([], state.items)
        work = bool(changes or pending)
        if work and not check:
            with under_way(host, run, REMOVE, plan, state, [], pending):
                _apply(host, plan, state, changes, None)
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
    nothing was laid, since the host goes back from an unconfirmed change and that lays what was.
    """
    if undone(host):
        return False
    refuse_wrong_identity(host, plan)
    waited = 0.0
    served: list[str] | None = None
    problems: list[str] = []
    while True:
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


def _absent_links(host: Host, plan: host_plan.HostPlan) -> list[str]:
    links = {entry["ifname"]: entry for entry in host.runner.json(["ip", "-j", "-d", "addr", "show"])}
    return [
        link.netdev for link in plan.links if link.address not in observe.ipv4_addresses(links.get(link.netdev, {}))
    ]


def _restore_without(host: Host, plan: host_plan.HostPlan, absent: list[str]) -> list[str]:
    state = observe.look(host, plan, whole=False)
    wanted = [item for item in objects.desired(plan, state.chain(), None, None) if item.netdev not in absent]
    return bring(host, plan, state, [item for item in compare(wanted, state.items) if item.new is not None])


def bring(host: Host, plan: host_plan.HostPlan, state: State, changes: list[Change]) -> list[str]:
    """Make as many of the changes as can be made; what failed."""
    problems: list[str] = []
    try:
        _take(host, plan, state, changes)
    except HostError as error:
        problems.append(str(error))
    _lay(host, plan, state, changes, None, problems)
    return problems


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


def _apply(
    host: Host, plan: host_plan.HostPlan, state: State, changes: list[Change], marker_source: str | None
) -> None:
    _take(host, plan, state, changes)
    _lay(host, plan, state, changes, marker_source, None)


IN_PLACE = (objects.FILE, objects.BINARY, objects.LINK, objects.QDISC, objects.SYSCTL, objects.MARKER, objects.UNIT)
"""Kinds that are put right where they are; the others are taken away and laid anew."""


def _take(host: Host, plan: host_plan.HostPlan, state: State, changes: list[Change]) -> None:
    """Take objects away, the latest laid first."""

    def gone(kind: str) -> list[dict[str, Any]]:
        return [
            change.old.body
            for change in changes
            if change.kind == kind and change.old is not None and (change.new is None or kind not in IN_PLACE)
        ]

    kept = state.record
    units.take(host, [body["name"] for body in gone(objects.UNIT)])
    _take_markers(host, plan, state, gone(objects.MARKER))
    host.runner.batch("tc", [tc.delete_filter(body) for body in gone(objects.FILTER)])
    lines = [f"neigh del {body['address']} dev {body['netdev']}" for body in gone(objects.NEIGHBOUR)]
    host.runner.batch("ip", lines + [_route_line("del", body) for body in gone(objects.ROUTE)])
    forward.take(host, gone(objects.FORWARD))
    for body in gone(objects.SYSCTL):
        host.write_setting("/proc/sys/" + body["key"], kept.sysctls.pop(body["key"]))
    for body in gone(objects.QDISC):
        host.runner.run(["tc", "qdisc", "del", "dev", body["netdev"], "clsact"])
        kept.qdiscs.remove(body["netdev"])
    profiles.take(host, [body["uuid"] for body in gone(objects.LINK)])
    files = gone(objects.FILE)
    for body in [*gone(objects.BINARY), *files]:
        host.remove(body["path"])
    if any(body["path"].startswith(marks.UNIT_DIR) for body in files):
        units.forget(host)
    record.write(host, kept)


def _take_markers(host: Host, plan: host_plan.HostPlan, state: State, gone: list[dict[str, Any]]) -> None:
    """Remove software rules that no unit holds any more; those of a stopped unit are gone already."""
    if markers.in_nic(plan.driver):
        return
    netdevs = {link.rdma_device: link.netdev for link in plan.links}
    destinations: dict[str, set[str]] = {}
    for body in gone:
        destinations.setdefault(netdevs.get(body["device"], body["device"]), set()).add(body["destination"])
    for netdev in sorted(state.clsact & set(destinations)):
        markers.take_software(host, netdev, destinations[netdev])


def _route_line(verb: str, body: dict[str, Any]) -> str:
    words = ["route", verb, str(body["kind"]), str(body["destination"])]
    for option, name in (("via", "via"), ("dev", "netdev"), ("src", "source"), ("metric", "metric")):
        if body[name] not in (None, ""):
            words += [option, str(body[name])]
    if body["scope"] is not None:
        words += ["scope", str(body["scope"])]
    if body["table"] != "main":
        words += ["table", str(body["table"])]
    return " ".join([*words, "proto", str(marks.ROUTE_PROTOCOL)])


def _lay(
    host: Host,
    plan: host_plan.HostPlan,
    state: State,
    changes: list[Change],
    marker_source: str | None,
    problems: list[str] | None,
) -> None:
    """Lay objects in order. With a list for ``problems``, one failed step does not stop the others."""

    def new(kind: str) -> list[dict[str, Any]]:
        return [change.new.body for change in changes if change.kind == kind and change.new is not None]

    def stale(kind: str) -> list[dict[str, Any]]:
        return [change.old.body for change in changes if change.kind == kind and change.new and change.old]

    _remember(host, state, changes)
    steps: list[Callable[[], None]] = [
        lambda: _lay_files(host, new(objects.FILE), stale(objects.FILE), new(objects.BINARY), marker_source),
        lambda: profiles.lay(host, [body["uuid"] for body in stale(objects.LINK)], new(objects.LINK)),
        lambda: host.runner.batch("tc", [f"qdisc add dev {body['netdev']} clsact" for body in new(objects.QDISC)]),
        lambda: _lay_sysctls(host, new(objects.SYSCTL)),
        lambda: forward.lay(host, new(objects.FORWARD)),
    ]
    lines: dict[str, list[str]] = {}
    for body in new(objects.ROUTE):
        lines.setdefault(body["netdev"], []).append(_route_line("add", body))
    for body in new(objects.NEIGHBOUR):
        line = f"neigh replace {body['address']} lladdr {body['mac']} dev {body['netdev']} nud permanent"
        lines.setdefault(body["netdev"], []).append(f"{line} proto {marks.ROUTE_PROTOCOL}")
    steps += [functools.partial(host.runner.batch, "ip", lines[netdev]) for netdev in sorted(lines)]
    steps += [
        lambda: host.runner.batch("tc", [tc.add_filter(body) for body in new(objects.FILTER)]),
        lambda: units.lay(
            host, [body["name"] for body in new(objects.UNIT)], _markers_to_restart(plan, state, changes)
        ),
    ]
    for step in steps:
        try:
            step()
        except HostError as error:
            if problems is None:
                raise
            problems.append(str(error))


def _remember(host: Host, state: State, changes: list[Change]) -> None:
    """Record prior values and what is about to be added, before anything is changed."""
    for change in changes:
        if change.kind == objects.SYSCTL and change.old is not None and change.new is not None:
            state.record.sysctls.setdefault(change.old.body["key"], change.old.body["value"])
        elif change.kind == objects.QDISC and change.action == ADD and change.new is not None:
            state.record.qdiscs.append(change.new.body["netdev"])
    record.write(host, state.record)


def _lay_files(
    host: Host,
    files: list[dict[str, Any]],
    stale: list[dict[str, Any]],
    binaries: list[dict[str, Any]],
    marker_source: str | None,
) -> None:
    for body in files:
        host.write(body["path"], body["content"], int(body["mode"], 8))
    if binaries and marker_source is not None:
        markers.build(host, marker_source)
    if any(body["path"].startswith(marks.UNIT_DIR) for body in stale):
        units.forget(host)


def _lay_sysctls(host: Host, wanted: list[dict[str, Any]]) -> None:
    for body in wanted:
        host.write_setting("/proc/sys/" + body["key"], body["value"])


def _markers_to_restart(plan: host_plan.HostPlan, state: State, changes: list[Change]) -> list[str]:
    """Active marker units that stay and whose rules or program change; others are started or left alone."""
    devices = {
        item.body["device"]
        for change in changes
        for item in (change.old, change.new)
        if item is not None and change.kind == objects.MARKER
    }
    if any(change.kind == objects.BINARY for change in changes):
        devices = {rule.rdma_device for rule in plan.marker_rules}
    stopped = {
        change.old.body["name"] for change in changes if change.kind == objects.UNIT and change.old and not change.new
    }
    active = {item.body["name"] for item in state.items if item.kind == objects.UNIT and item.body["active"]}
    return sorted(unit for unit in active - stopped if units.is_marker(unit) and units.marker_device(unit) in devices)
