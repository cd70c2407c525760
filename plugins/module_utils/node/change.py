"""A change that is under way: what the host was before it, who makes it, and until when it may stay unconfirmed.

It lies on the disk, with the program that undoes it and a unit that runs that program at boot, before anything is
changed; a timer runs the unit when the time is over. Removing the document is what keeps the change: everything else
of it that power loss may leave behind does nothing, and goes at the next boot or with the next change.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..contract import documents, host_plan, marks
from . import hairpin_journal, markers, objects, units
from .commands import HostError
from .host import Host
from .objects import Item
from .observe import State, ipv4_addresses
from .record import Record

SCHEMA = "sparkring.change/1"
SET_UP, REMOVE = "mesh-setup", "remove"
KEPT_FILES = (marks.MARKER_PATH, markers.BUILD_RECORD, hairpin_journal.PATH)
"""Files that belong to the snapshot and are no objects of a plan."""


@dataclass(frozen=True)
class Run:
    """One run of an operator: ``user@controller``, and what tells the run from others of that operator there.

    ``continues`` is an earlier run whose process is known to be gone. ``seconds`` is how long a change stays
    unconfirmed, ``program`` the node program that undoes it.
    """

    operator: str
    id: str
    seconds: int
    program: bytes
    continues: str | None = None


@dataclass(frozen=True)
class Pending:
    """The document. ``boot`` and ``deadline`` (of the monotonic clock) say when the host goes back by itself."""

    operator: str
    run: str
    what: str
    boot: str
    since: str
    deadline: float
    seconds: int
    plan: dict[str, Any]
    items: list[dict[str, Any]]
    sysctls: dict[str, str]
    qdiscs: list[str]
    files: dict[str, list[Any]]
    reference: list[dict[str, Any]]
    defaults: list[list[str]]
    management: list[str]
    schema: str = field(default=SCHEMA)

    def objects(self) -> list[Item]:
        """What was ours before the change, in the order of laying."""
        return sorted((_item(value) for value in self.items), key=lambda item: objects.ORDER.index(item.kind))

    def addresses(self) -> set[str]:
        """Addresses that our profiles gave before the change or give by it; a link may hold either in between."""
        before = [item.body["settings"]["ipv4.addresses"] for item in self.objects() if item.kind == objects.LINK]
        given = {part.strip() for held in before for part in held.split(",")}
        return given | {link.address for link in self.host_plan().links}

    def record(self) -> Record:
        """The runtime record before the change."""
        return Record(dict(self.sysctls), list(self.qdiscs))

    def host_plan(self) -> host_plan.HostPlan:
        """The plan that the change lays, or that was taken away by it."""
        return host_plan.HostPlan.from_plain(self.plan)

    def due(self, host: Host) -> bool:
        """Whether the host is to go back: the time is over, or it was started again since."""
        return self.boot != hairpin_journal.boot_id(host) or now() >= self.deadline

    def left(self, host: Host) -> int:
        """Seconds until the host goes back."""
        return 0 if self.due(host) else max(1, round(self.deadline - now()))

    def sentence(self, host: Host) -> str:
        """What happens to the change if nobody does anything."""
        left = self.left(host)
        return f"goes back to what it was {f'in {left} s' if left else 'now'}"


def now() -> float:
    """Seconds of the clock that deadlines are told by; it runs from boot and nobody sets it."""
    return time.monotonic()


class PendingRefused(HostError):
    """Somebody else's change is pending; ``pending`` says whose."""

    def __init__(self, message: str, pending: Pending) -> None:
        super().__init__(message)
        self.pending = pending


def read(host: Host) -> Pending | None:
    """The change that is under way, if any."""
    text = host.read(marks.CHANGE_PATH)
    if text is None:
        return None
    try:
        value = json.loads(text)
        if value["schema"] != SCHEMA:
            raise ValueError(f"its schema is {value['schema']}, known is {SCHEMA}")
        return Pending(**value)
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(
            f"{marks.CHANGE_PATH} cannot be read ({error}): delete it, then run mesh-setup or remove"
        ) from error


def undone(host: Host) -> bool:
    """Whether the host is going back, so that the plan on its disk counts for nothing now."""
    pending = read(host)
    return pending is not None and pending.due(host)


def admit(host: Host, run: Run | None) -> Pending | None:
    """The pending change, when this run may go on with it; raises PendingRefused when it is somebody else's.

    A change whose time is over belongs to nobody: whoever holds the lock may go on with it.
    """
    pending = read(host)
    if pending is None or pending.due(host):
        return pending
    if run is not None and pending.operator == run.operator and pending.run in (run.id, run.continues):
        return pending
    raise PendingRefused(
        f"{pending.operator} has changed this host since {pending.since} and has not confirmed it: let that run finish,"
        f" or wait until the host {pending.sentence(host)}, then run again",
        pending,
    )


def arm(
    host: Host,
    run: Run,
    what: str,
    plan: host_plan.HostPlan,
    state: State,
    reference: list[dict[str, Any]],
    pending: Pending | None,
) -> Pending:
    """Have the host go back by itself from now on. A pending change keeps what it knows of the host before it."""
    base = pending or _snapshot(host, run, what, plan, state)
    known = {entry["name"] for entry in base.reference}
    made = dataclasses.replace(
        base,
        operator=run.operator,
        run=run.id,
        what=what,
        plan=documents.to_plain(plan),
        reference=base.reference + [entry for entry in reference if entry["name"] not in known],
    )
    try:
        host.write(marks.CHANGE_PROGRAM_PATH, run.program, 0o755)
        units.lay_revert(host)
        armed = extend(host, made, run)
        units.start_revert_timer(host)
        return armed
    except HostError:
        if pending is None:
            clean(host)
        raise


def extend(host: Host, pending: Pending, run: Run) -> Pending:
    """The time begins anew."""
    made = dataclasses.replace(
        pending,
        boot=hairpin_journal.boot_id(host),
        deadline=now() + run.seconds,
        seconds=run.seconds,
    )
    host.write(marks.CHANGE_PATH, (json.dumps(dataclasses.asdict(made), sort_keys=True) + "\n").encode(), 0o600)
    return made


def clean(host: Host) -> None:
    """Nothing is under way any more; the document goes first, and with it all effect of the rest.

    What NetworkManager and systemctl have written is seen onto the disk before: they leave that to the kernel.
    """
    host.settle()
    host.remove(marks.CHANGE_PATH)
    units.stop_revert_timer(host)
    host.remove(marks.CHANGE_PROGRAM_PATH)
    units.take_revert(host)
    leave_folders(host)


def leave_folders(host: Host) -> None:
    """Remove our directories where they are empty."""
    for path in (marks.CONFIG_DIR, marks.LIB_DIR, f"{marks.UNIT_DIR}/{marks.FABRIC_UNIT}.wants"):
        host.remove_empty(path)


def leave(host: Host) -> None:
    """What else goes when nothing of a plan is left."""
    host.remove(markers.BUILD_RECORD)
    host.remove(hairpin_journal.PATH)
    for path in (marks.RECONCILE_STATE_PATH, marks.GLANCE_PATH):
        host.remove(path)
    host.remove_empty(marks.RUN_DIR)
    leave_folders(host)


def default_routes(routes: list[dict[str, Any]]) -> list[list[str]]:
    """Next hop and netdev of each default route."""
    found = {
        (str(route.get("gateway", "")), str(route.get("dev", "")))
        for route in routes
        if route.get("dst") == "default" and str(route.get("table", "main")) == "main"
    }
    return sorted(list(pair) for pair in found)


def _snapshot(host: Host, run: Run, what: str, plan: host_plan.HostPlan, state: State) -> Pending:
    files = {}
    for path in KEPT_FILES:
        content = host.read_bytes(path)
        if content is not None:
            mode = host.path(path).stat().st_mode & 0o7777
            files[path] = [f"{mode:04o}", base64.b64encode(content).decode()]
    return Pending(
        operator=run.operator,
        run=run.id,
        what=what,
        boot=hairpin_journal.boot_id(host),
        since=time.strftime("%H:%M:%S UTC", time.gmtime()),
        deadline=0.0,
        seconds=run.seconds,
        plan=documents.to_plain(plan),
        items=[_plain(item) for item in state.items if item.removable],
        sysctls=dict(state.record.sysctls),
        qdiscs=list(state.record.qdiscs),
        files=files,
        reference=[],
        defaults=default_routes(state.routes),
        management=ipv4_addresses(state.links.get(plan.management.netdev, {})),
    )


def put_files_back(host: Host, pending: Pending) -> None:
    """The files that belong to no object. A journal that is there tells of later events, and stays."""
    for path, (mode, content) in pending.files.items():
        data = base64.b64decode(content)
        found = host.read_bytes(path)
        if found != data and not (path == hairpin_journal.PATH and found is not None):
            host.write(path, data, int(mode, 8))
    if markers.BUILD_RECORD not in pending.files:
        host.remove(markers.BUILD_RECORD)


def _plain(item: Item) -> dict[str, Any]:
    body = dict(item.body)
    if item.kind == objects.FILE:
        body["content"] = base64.b64encode(body["content"]).decode()
    return {"id": item.id, "kind": item.kind, "body": body, "netdev": item.netdev}


def _item(value: dict[str, Any]) -> Item:
    body = dict(value["body"])
    if value["kind"] == objects.FILE:
        body["content"] = base64.b64decode(body["content"])
    if value["kind"] == objects.UNIT:
        # One that was failing is wanted all the same.
        body.update({"enabled": True, "active": True})
    if value["kind"] == objects.LINK and body["active"]:
        # What its profile gives; an address that someone added by hand goes whenever a profile is started.
        body["addresses"] = [part.strip() for part in body["settings"]["ipv4.addresses"].split(",") if part.strip()]
    return Item(value["id"], value["kind"], body, value["netdev"])


@contextlib.contextmanager
def under_way(
    host: Host,
    run: Run | None,
    what: str,
    plan: host_plan.HostPlan,
    state: State,
    reference: list[dict[str, Any]],
    pending: Pending | None,
) -> Iterator[None]:
    """What is done inside is undone by itself unless it is confirmed in time, which begins anew at the end."""
    if run is None:
        yield
        return
    armed = arm(host, run, what, plan, state, reference, pending)
    with named(host):
        yield
        extend(host, armed, run)


@contextlib.contextmanager
def named(host: Host) -> Iterator[None]:
    """Whatever fails inside says also what becomes of the change."""
    try:
        yield
    except HostError as error:
        pending = read(host)
        if pending is None:
            raise
        raise HostError(f"{error}; unless the run is repeated, this host {pending.sentence(host)}") from error
