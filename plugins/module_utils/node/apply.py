"""Take objects away and lay them: how the changes between a host and its plan are made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..contract import host_plan, marks
from . import forward, markers, objects, profiles, record, tc, units
from .commands import HostError
from .diff import ADD, Change
from .host import Host
from .observe import State


def bring(host: Host, plan: host_plan.HostPlan, state: State, changes: list[Change]) -> list[str]:
    """Make as many of the changes as can be made; what failed."""
    problems: list[str] = []
    _take(host, plan, state, changes, problems)
    _lay(host, plan, state, changes, None, problems)
    return problems


def make(host: Host, plan: host_plan.HostPlan, state: State, changes: list[Change], marker_source: str | None) -> None:
    """Make all changes; raises HostError at the first that cannot be made."""
    _take(host, plan, state, changes, None)
    _lay(host, plan, state, changes, marker_source, None)


IN_PLACE = (objects.FILE, objects.BINARY, objects.LINK, objects.QDISC, objects.SYSCTL, objects.MARKER, objects.UNIT)
"""Kinds that are put right where they are; the others are taken away and laid anew."""


def _steps(steps: list[Callable[[], None]], problems: list[str] | None) -> None:
    """Do one after the other. With a list for ``problems``, one that fails does not stop the others."""
    for step in steps:
        try:
            step()
        except HostError as error:
            if problems is None:
                raise
            problems.append(str(error))


def _take(
    host: Host, plan: host_plan.HostPlan, state: State, changes: list[Change], problems: list[str] | None
) -> None:
    """Take objects away, the latest laid first; ``problems`` as in ``_steps``."""

    def gone(kind: str) -> list[dict[str, Any]]:
        return [
            change.old.body
            for change in changes
            if change.kind == kind and change.old is not None and (change.new is None or kind not in IN_PLACE)
        ]

    keep_going = problems is not None
    lines = [f"neigh del {body['address']} dev {body['netdev']}" for body in gone(objects.NEIGHBOUR)]
    lines += [_route_line("del", body) for body in gone(objects.ROUTE)]
    filters = [tc.delete_filter(body) for body in gone(objects.FILTER)]
    steps: list[Callable[[], None]] = [
        lambda: units.take(host, [body["name"] for body in gone(objects.UNIT)]),
        lambda: _take_markers(host, plan, state, gone(objects.MARKER)),
        lambda: host.runner.batch("tc", filters, keep_going),
        lambda: host.runner.batch("ip", lines, keep_going),
        lambda: forward.take(host, gone(objects.FORWARD)),
        lambda: _take_sysctls(host, state.record, gone(objects.SYSCTL)),
        *(functools.partial(_take_qdisc, host, state.record, body["netdev"]) for body in gone(objects.QDISC)),
        lambda: profiles.take(host, [body["uuid"] for body in gone(objects.LINK)]),
        lambda: _take_files(host, gone(objects.BINARY), gone(objects.FILE)),
        lambda: record.write(host, state.record),
    ]
    _steps(steps, problems)


def _take_sysctls(host: Host, kept: record.Record, gone: list[dict[str, Any]]) -> None:
    for body in gone:
        host.write_setting("/proc/sys/" + body["key"], kept.sysctls.pop(body["key"]))


def _take_qdisc(host: Host, kept: record.Record, netdev: str) -> None:
    host.runner.run(["tc", "qdisc", "del", "dev", netdev, "clsact"])
    kept.qdiscs.remove(netdev)


def _take_files(host: Host, binaries: list[dict[str, Any]], files: list[dict[str, Any]]) -> None:
    for body in [*binaries, *files]:
        host.remove(body["path"])
    if any(body["path"].startswith(marks.UNIT_DIR) for body in files):
        units.forget(host)


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
    """Lay objects in order; ``problems`` as in ``_steps``."""

    def new(kind: str) -> list[dict[str, Any]]:
        return [change.new.body for change in changes if change.kind == kind and change.new is not None]

    def stale(kind: str) -> list[dict[str, Any]]:
        return [change.old.body for change in changes if change.kind == kind and change.new and change.old]

    keep_going = problems is not None
    qdiscs = [f"qdisc add dev {body['netdev']} clsact" for body in new(objects.QDISC)]
    filters = [tc.add_filter(body) for body in new(objects.FILTER)]
    _remember(host, state, changes)
    steps: list[Callable[[], None]] = [
        lambda: _lay_files(host, new(objects.FILE), stale(objects.FILE), new(objects.BINARY), marker_source),
        lambda: profiles.lay(host, [body["uuid"] for body in stale(objects.LINK)], new(objects.LINK)),
        lambda: host.runner.batch("tc", qdiscs, keep_going),
        lambda: _lay_sysctls(host, new(objects.SYSCTL)),
        lambda: forward.lay(host, new(objects.FORWARD)),
    ]
    lines: dict[str, list[str]] = {}
    for body in new(objects.ROUTE):
        lines.setdefault(body["netdev"], []).append(_route_line("add", body))
    for body in new(objects.NEIGHBOUR):
        line = f"neigh replace {body['address']} lladdr {body['mac']} dev {body['netdev']} nud permanent"
        lines.setdefault(body["netdev"], []).append(f"{line} proto {marks.ROUTE_PROTOCOL}")
    steps += [functools.partial(host.runner.batch, "ip", lines[netdev], keep_going) for netdev in sorted(lines)]
    steps += [
        lambda: host.runner.batch("tc", filters, keep_going),
        lambda: units.lay(
            host, [body["name"] for body in new(objects.UNIT)], _markers_to_restart(plan, state, changes)
        ),
    ]
    _steps(steps, problems)


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
