"""Put back what a host has lost of its plan: run every 30 seconds, one journal line for each object.

What stands on the plan file and this program cannot judge them; mesh-setup puts those two back.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..contract import host_plan, marks
from . import apply, fabric, gid, glance, lock, objects, observe, units
from .commands import HostError
from .diff import Change, compare
from .host import Host
from .objects import Item
from .observe import State

PERIOD_SECONDS = 30.0
LONGEST_SECONDS = 900.0
"""An object that is lost again and again is put back after 30, 60, 120 … seconds, and no later than this."""
LONGEST_DOUBLING = 10
FORGET_SECONDS = 3600.0
"""How long an object must hold before an earlier loss no longer counts."""


@dataclass
class Losses:
    """What was put back since the boot, kept between runs: by object id how often, and when last (monotonic)."""

    counts: dict[str, int] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    """Sentences about what is left alone, each said once."""
    waited: list[str] = field(default_factory=list)
    """Netdevs that were waited for at the last look: what comes back with them was not taken by anybody."""

    @classmethod
    def read(cls, host: Host, now: float) -> Losses:
        """What is remembered and not yet to be forgotten."""
        try:
            value = json.loads(host.read(marks.RECONCILE_STATE_PATH) or "{}")
            last = {str(name): float(when) for name, when in value["last"].items() if now - when < FORGET_SECONDS}
            counts = {name: int(value["counts"][name]) for name in last}
            return cls(counts, last, [str(line) for line in value["told"]], [str(name) for name in value["waited"]])
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def write(self, host: Host) -> None:
        """Keep it; no file where there is nothing to keep."""
        if self.last or self.told or self.waited:
            value = {"counts": self.counts, "last": self.last, "told": self.told, "waited": self.waited}
            host.write(marks.RECONCILE_STATE_PATH, json.dumps(value, sort_keys=True).encode() + b"\n", 0o644)
        elif host.read(marks.RECONCILE_STATE_PATH) is not None:
            host.remove(marks.RECONCILE_STATE_PATH)

    def pause(self, name: str) -> float:
        """Seconds after the last time before an object is put back again."""
        doublings = min(self.counts.get(name, 0) - 1, LONGEST_DOUBLING)
        return min(PERIOD_SECONDS * 2.0**doublings, LONGEST_SECONDS)

    def must_wait(self, name: str, now: float) -> bool:
        """Whether it is too early to put an object back again."""
        return name in self.last and now - self.last[name] < self.pause(name)

    def count(self, name: str, now: float) -> None:
        """An object is put back now."""
        self.counts[name] = self.counts.get(name, 0) + 1
        self.last[name] = now


def differences(host: Host, plan: host_plan.HostPlan) -> list[Change]:
    """All in which the host differs from its plan, links without a cable included."""
    state = observe.look(host, plan)
    return compare(_wanted(plan, state), [item for item in state.items if _judged(item)])


class Outcome(NamedTuple):
    """Lines for the journal, and what could not be put back."""

    lines: list[str]
    problems: list[str]


def run(
    host: Host, read_plan: Callable[[], host_plan.HostPlan], clock: Callable[[], float] = time.monotonic
) -> Outcome:
    """Look once and put back what is missing or altered.

    Does nothing while another run holds the host or has not ended its change, so the plan is read after that is known.
    """
    try:
        with lock.hold(host, "reconcile", 0.0):
            if host.read(marks.CHANGE_PATH) is not None:
                return Outcome([], [])
            return _run(host, read_plan(), clock())
    except lock.Held:
        return Outcome([], [])


def _run(host: Host, plan: host_plan.HostPlan, now: float) -> Outcome:
    fabric.refuse_wrong_identity(host, plan)
    losses = Losses.read(host, now)
    before = copy.deepcopy(losses)
    glanced = glance.take(host, plan)
    state = observe.look(host, plan)
    told = [f"left alone: {sentence}" for sentence in observe.foreign_objects(state, plan)]
    told += [f"left alone: {sentence}" for sentence in _foreign_addresses(plan, state)]
    again, held = _lost_gids(host, plan, state, losses, now)
    told += held
    lines = [line for line in told if line not in losses.told]
    losses.told = told
    problems: list[str] = []
    if again:
        losses.write(host)
        lines += _give_again(host, plan, again, problems)
        state = observe.look(host, plan)
    changes = _due(plan, state, losses, now)
    if changes:
        for change in changes:
            if _netdev(change) not in losses.waited:
                losses.count(change.id, now)
    losses.waited = sorted(_waiting(plan, state))
    if losses != before:
        losses.write(host)
    if changes:
        problems += _put_back(host, plan, state, changes)
        left = {change.id for change in _due(plan, observe.look(host, plan), Losses(), now)}
        lines += [_line(change, losses) for change in changes if change.id not in left]
        problems += [f"{change.id} is not back ({change.reason})" for change in changes if change.id in left]
    elif not again and not told and not compare(_wanted(plan, state), _present(plan, state)):
        glance.remember(host, glanced)
    return Outcome(lines, problems)


def _netdev(change: Change) -> str | None:
    """The netdev that a changed object hangs on, or that it is the link of."""
    item = change.new or change.old
    if item is None:
        return None
    return item.body["netdev"] if item.kind == objects.LINK else item.netdev


def _line(change: Change, losses: Losses) -> str:
    verb = "took away" if change.new is None else "put back"
    count = losses.counts.get(change.id, 0)
    often = f"; lost {count} times, so not again within {losses.pause(change.id):.0f} s" if count > 1 else ""
    return f"{verb} {change.id}: {change.reason}{often}"


def _wanted(plan: host_plan.HostPlan, state: State) -> list[Item]:
    return [item for item in objects.desired(plan, state.chain(), b"", None) if _judged(item)]


def _present(plan: host_plan.HostPlan, state: State) -> list[Item]:
    """What is there. Addresses that others have added to a link of ours are not ours to take."""
    planned = {link.netdev: link.address for link in plan.links}
    items = []
    for item in state.items:
        address = planned.get(item.body.get("netdev", "")) if item.kind == objects.LINK else None
        if address is not None and address in item.body["addresses"]:
            item = dataclasses.replace(item, body={**item.body, "addresses": [address]})
        items.append(item)
    return [item for item in items if _judged(item)]


def _foreign_addresses(plan: host_plan.HostPlan, state: State) -> list[str]:
    """Sentences about addresses beside the planned ones."""
    found = []
    for link in plan.links:
        addresses = observe.ipv4_addresses(state.links.get(link.netdev, {}))
        if link.address in addresses:
            found += [f"{link.netdev} has the foreign address {one}" for one in addresses if one != link.address]
    return found


def _judged(item: Item) -> bool:
    """Whether this program can tell if the object is as planned: not the plan, itself, nor the compiled marker."""
    return item.kind != objects.BINARY and item.body.get("path") not in (marks.PLAN_PATH, marks.PROGRAM_PATH)


def _due(plan: host_plan.HostPlan, state: State, losses: Losses, now: float) -> list[Change]:
    """What is to be put back now: not what waits for a cable or an address, nor what was put back just now."""
    wanted, present = _wanted(plan, state), _present(plan, state)
    late = {change.id for change in compare(wanted, present) if losses.must_wait(change.id, now)}
    links = {item.id: item.body["netdev"] for item in [*wanted, *present] if item.kind == objects.LINK}
    waiting = _waiting(plan, state) | {netdev for name, netdev in links.items() if name in late}

    def due(item: Item) -> bool:
        netdev = item.body["netdev"] if item.kind == objects.LINK else item.netdev
        waits = netdev in waiting or (bool(waiting) and item.body.get("name") == marks.FABRIC_UNIT)
        return not waits and item.id not in late

    return compare([item for item in wanted if due(item)], [item for item in present if due(item)])


def _waiting(plan: host_plan.HostPlan, state: State) -> set[str]:
    """Netdevs without carrier, that NetworkManager is just starting, or that lack an adopted address.

    While NetworkManager does not answer, every link that it serves: that its profiles are gone cannot be told then.
    """
    waiting = set()
    silent = not state.network_manager.running
    for link in plan.links:
        entry = state.links.get(link.netdev, {})
        starting = state.network_manager.devices.get(link.netdev, "").startswith("connecting")
        adopted = link.adopted and link.address not in observe.ipv4_addresses(entry)
        # A link that somebody set down has no such flag, and is brought up again.
        if "NO-CARRIER" in entry.get("flags", []) or not entry or starting or adopted or (silent and not link.adopted):
            waiting.add(link.netdev)
    return waiting


def _put_back(host: Host, plan: host_plan.HostPlan, state: State, changes: list[Change]) -> list[str]:
    """What failed. Unit files go first, since systemd does not see by itself that one of a running unit is back."""
    files = [item for item in changes if item.kind == objects.FILE and item.new is not None]
    for item in files:
        body = item.new.body if item.new is not None else {}
        host.write(body["path"], body["content"], int(body["mode"], 8))
    if files:
        units.forget(host)
    return apply.bring(host, plan, state, [item for item in changes if item not in files])


def _give_again(host: Host, plan: host_plan.HostPlan, links: list[host_plan.Link], problems: list[str]) -> list[str]:
    """Take planned addresses away and give them again; what goes with them is laid by what follows."""
    lines = []
    for link in links:
        verbs = (f"address del {link.address}", f"address add {link.address} broadcast +")
        try:
            host.runner.batch("ip", [f"{verb} dev {link.netdev}" for verb in verbs])
            lines.append(f"gave {link.netdev} its address again, whose RoCE v2 GID was missing")
        except HostError as error:
            problems.append(str(error))
    return lines


def _lost_gids(
    host: Host, plan: host_plan.HostPlan, state: State, losses: Losses, now: float
) -> tuple[list[host_plan.Link], list[str]]:
    """Links whose planned address is there without its RoCE v2 GID, and sentences on those that are left so.

    The kernel makes a GID when an address comes, so giving the address again makes it; what uses the device must
    end first, since its queue pairs would lose their source (facts: fabric 3). An adopted address is its owner's. Where
    the GID does not come back, the address is given again more and more rarely, as any object.
    """
    again, told = [], []
    for link in plan.links:
        here = link.address in observe.ipv4_addresses(state.links.get(link.netdev, {}))
        if not here or not host.names(f"/sys/class/infiniband/{link.rdma_device}"):
            continue
        address = link.address.partition("/")[0]
        if address in gid.by_address(host, link.rdma_device, link.netdev):
            continue
        from . import hairpin_guards  # needed once in a blue moon

        missing = f"{link.rdma_device} has no RoCE v2 GID for {address}"
        users = hairpin_guards.rdma_holders(host, {link.rdma_device})
        if link.adopted:
            told.append(f"{missing}: take that address off {link.netdev} and give it again")
        elif users:
            told.append(f"{missing}, and {'; '.join(users)}")
        elif not losses.must_wait(f"gid/{link.netdev}", now):
            losses.count(f"gid/{link.netdev}", now)
            again.append(link)
    return again, told
