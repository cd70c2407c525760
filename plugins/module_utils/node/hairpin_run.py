"""Bring the hairpin setting of this host's functions into effect, one function at a time.

A restart of a function's driver takes its link away for about eight seconds, and with it addresses,
routes, filters and markers. So nothing may be using RDMA, and what is begun is journalled before it
is begun: a host that hung does not try the same at its next boot.
"""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass
from typing import Any, Callable

from ..contract import hairpin_state, host_plan, marks
from . import change, fabric, gid, hairpin, hairpin_guards, hairpin_journal, lock, observe, profiles, units
from .commands import CommandFailed, HostError
from .hairpin import Function
from .host import Host

BOOT, LIVE = "boot", "live"
BUDGET_SECONDS = {BOOT: 120.0, LIVE: 280.0}
RELOAD_SECONDS = 30.0
RETURN_SECONDS = 20.0
ADDRESS_SECONDS = 30.0
NUDGE_SECONDS = 10.0
"""Limits (facts: fabric 6): all of it, one restart, the netdev's return, its addresses, and again after a nudge."""
WORST_SECONDS = {BOOT: RELOAD_SECONDS + RETURN_SECONDS}
WORST_SECONDS[LIVE] = WORST_SECONDS[BOOT] + ADDRESS_SECONDS + NUDGE_SECONDS
POLL_SECONDS = 0.5
DOWN_SECONDS = 8
OFF_WORD = "sparkring.hairpin=off"
"""On the kernel's command line it forbids restarts at boot."""


@dataclass(frozen=True)
class Clock:
    """The time that a run takes."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Outcome:
    """What was done, or would be: changes with id, action and reason, and lines to show."""

    changes: list[dict[str, str]]
    lines: list[str]


def bring(host: Host, plan: host_plan.HostPlan, mode: str, check: bool = False, clock: Clock = Clock()) -> Outcome:
    """Bring every function into effect; ``check`` only says what would be done.

    Raises HostError before the first change when a restart is forbidden now, and after it when a
    function did not end in effect or its addresses or the fabric did not come back.
    """
    if not hairpin.needed(plan):
        return Outcome([], [f"{plan.host}: no hairpin setting needed"])
    if mode == LIVE and not check:
        with lock.hold(host, "a hairpin run"):
            pending = change.admit(host, None)
            if pending is not None:
                raise HostError(
                    f"an unconfirmed change is pending and this host {pending.sentence(host)}: run again then"
                )
            return _bring(host, plan, mode, check, clock)
    return _bring(host, plan, mode, check, clock)


def _bring(host: Host, plan: host_plan.HostPlan, mode: str, check: bool, clock: Clock) -> Outcome:
    if mode == BOOT:
        if OFF_WORD in (host.read("/proc/cmdline") or "").split():
            return Outcome([], [f"{plan.host}: switched off by {OFF_WORD} on the kernel's command line"])
        if change.undone(host):
            return Outcome([], [f"{plan.host}: goes back from an unconfirmed change, so nothing is restarted"])
        ending = hairpin_journal.suspended(host)
        if ending:
            raise HostError(f"no restarts at boot, since {ending}: run {hairpin_state.COMMAND}")
    run = _Run(host, plan, mode, clock)
    if mode == BOOT:
        run.await_hardware()
    functions = hairpin.look(host, plan)
    work = [item for item in functions if item.judgement.state != hairpin_state.IN_EFFECT]
    settle = mode == LIVE and bool(hairpin_journal.suspended(host))
    outcome = _outcome(plan, functions, settle, check)
    if work:
        run.refuse(functions)
        if not check:
            run.all(work)
    if settle and not check:
        _settle(host)
    return outcome


def _outcome(plan: host_plan.HostPlan, functions: list[Function], settle: bool, check: bool) -> Outcome:
    changes, lines = [], []
    for item in functions:
        state = item.judgement.state
        line = f"{plan.host} {item.link.netdev} ({item.link.role}): {item.judgement}"
        if state != hairpin_state.IN_EFFECT:
            restart = state in hairpin_state.RESTART
            deed = f"restart its driver, link down about {DOWN_SECONDS} s" if restart else "switch hw-tc-offload on"
            line += f": would {deed}" if check else f", now {hairpin_state.IN_EFFECT}"
            changes.append({"id": f"hairpin/{item.link.role}", "action": "replace", "reason": str(item.judgement)})
        lines.append(line)
    if settle:
        changes.append({"id": "hairpin/journal", "action": "replace", "reason": "an earlier restart is not resolved"})
    return Outcome(changes, lines)


def _settle(host: Host) -> None:
    """Close what is open in the journal: every function was seen in effect after it."""
    entries = hairpin_journal.read(host) or {}
    done = {name: dataclasses.replace(entry, state=hairpin_journal.DONE) for name, entry in entries.items()}
    hairpin_journal.write(host, done)


class _Run:
    """One run over the functions of one host."""

    def __init__(self, host: Host, plan: host_plan.HostPlan, mode: str, clock: Clock) -> None:
        self.host, self.plan, self.mode, self.clock = host, plan, mode, clock
        self.begun = clock.now()
        self.restarted = False

    def until(self, seconds: float, good: Callable[[], bool]) -> bool:
        """Wait for something; whether it came."""
        end = self.clock.now() + seconds
        while not good():
            if self.clock.now() >= end:
                return False
            self.clock.sleep(POLL_SECONDS)
        return True

    def await_hardware(self) -> None:
        """At boot the driver may still be loading; what does not come is named by the guards."""
        self.until(RETURN_SECONDS, lambda: not any(hairpin_guards.absent(self.host, link) for link in self.plan.links))

    def refuse(self, functions: list[Function]) -> None:
        """Raise HostError with all that forbids a restart now."""
        unknown = [item for item in functions if item.judgement.state == hairpin_state.UNKNOWN]
        found = hairpin_guards.wrong_hardware(self.host, self.plan, functions)
        if not found:
            found = [f"the hairpin setting is {words}: settle that first" for words in hairpin.grouped(unknown)]
        if not found:
            found = hairpin_guards.refusals(self.host, self.plan, self.mode == LIVE)
        if found:
            raise HostError("; ".join(found))

    def all(self, work: list[Function]) -> None:
        """One function after the other; the first that fails ends the run, and the fabric is laid again either way."""
        problems: list[str] = []
        awaited = self._addresses() if self.mode == LIVE else {}
        try:
            for number, item in enumerate(work):
                if self.clock.now() - self.begun > BUDGET_SECONDS[self.mode] - WORST_SECONDS[self.mode]:
                    left = ", ".join(one.link.netdev for one in work[number:])
                    raise HostError(f"the time of this run is over before {left}: run {hairpin_state.COMMAND} again")
                self.one(item)
                self.await_addresses(item.link, awaited.get(item.link.netdev, set()))
        except HostError as error:
            problems.append(str(error))
        if self.restarted and self.mode == LIVE:
            problems += self.lay_again()
        if problems:
            raise HostError("; ".join(problems))

    def one(self, item: Function) -> None:
        """Bring one function into effect."""
        if item.judgement.state in hairpin_state.RESTART:
            entry = self._entry(item)
            hairpin_journal.note(self.host, item.bdf, entry)
            self.restarted = True
            try:
                self._restart(item)
                item = self._offload(hairpin.look_at(self.host, self.plan, item.link))
                if item.judgement.state != hairpin_state.IN_EFFECT:
                    raise HostError(f"after the restart of its driver, {item.link.netdev} is {item.judgement}")
            except _Refused as error:
                self._close(item, entry, hairpin_journal.REFUSED, str(error))
                raise
            except HostError as error:
                self._close(item, entry, hairpin_journal.FAILED, str(error))
                raise
            self._close(item, entry, hairpin_journal.DONE, "")
        else:
            item = self._offload(item)
            if item.judgement.state != hairpin_state.IN_EFFECT:
                raise HostError(f"after switching hw-tc-offload on, {item.link.netdev} is {item.judgement}")

    def _entry(self, item: Function) -> hairpin_journal.Entry:
        counted = item.setting["driver_restarts"]
        info = item.seen["info"] if isinstance(item.seen["info"], dict) else {}
        running = info.get("versions", {}).get("running", {})
        return hairpin_journal.Entry(
            state=hairpin_journal.STARTED,
            boot=hairpin_journal.boot_id(self.host),
            mode=self.mode,
            netdev=item.link.netdev,
            restarts=-1 if counted is None else counted,
            queue_size=item.setting["queue_size"] or 0,
            num_queues=item.setting["num_queues"] or 0,
            firmware=str(running.get("fw.version") or running.get("fw") or ""),
            at=hairpin_journal.now(),
        )

    def _close(self, item: Function, entry: hairpin_journal.Entry, state: str, sentence: str) -> None:
        hairpin_journal.note(self.host, item.bdf, dataclasses.replace(entry, state=state, sentence=sentence))

    def _set(self, item: Function, name: str, value: int) -> None:
        handle = "pci/" + item.bdf
        command = ["devlink", "dev", "param", "set", handle, "name", name, "value", str(value), "cmode", "driverinit"]
        self.host.runner.run(command)

    def _restart(self, item: Function) -> None:
        """Set the values and restart the driver; raises _Refused where nothing was changed by it."""
        netdev = item.link.netdev
        prior: dict[str, int | None] = {}
        try:
            for name, value, found in (
                ("hairpin_num_queues", self.plan.hairpin.num_queues, item.setting["num_queues"]),
                ("hairpin_queue_size", self.plan.hairpin.queue_size, item.setting["queue_size"]),
            ):
                if found != value:
                    self._set(item, name, value)
                    prior[name] = found
        except CommandFailed as error:
            self._put_back(item, prior, str(error))
        command = ["devlink", "dev", "reload", "pci/" + item.bdf, "action", "driver_reinit"]
        done = self.host.runner.outlasting(command, RELOAD_SECONDS)
        if done.status == 124:
            # No further question to devlink: it would wait behind the restart that hangs.
            raise HostError(
                f"the restart of the driver of {netdev} did not end within {RELOAD_SECONDS:g} s:"
                f" power-cycle {self.plan.host}, then run {hairpin_state.COMMAND}"
            )
        said = "; ".join((done.errors or done.output).strip().splitlines()[:2]) or f"exit {done.status}"
        after = self._counted(item)
        if after["restart_failed"]:
            raise HostError(f"the restart of the driver of {netdev} failed ({said}): run {hairpin_state.COMMAND} again")
        if after["driver_restarts"] is None:
            raise HostError(
                f"after the restart of the driver of {netdev}, devlink does not answer: power-cycle the host"
            )
        if after["driver_restarts"] <= (item.setting["driver_restarts"] or 0):
            if done.status != 0:
                self._put_back(item, prior, said)
            raise HostError(f"the driver of {netdev} says that it was restarted, and its count did not rise")
        # It was restarted, whatever devlink said of it.
        if not self.until(RETURN_SECONDS, lambda: not hairpin_guards.absent(self.host, item.link)):
            raise HostError(f"{netdev} did not return: {hairpin_guards.absent(self.host, item.link)}")

    def _counted(self, item: Function) -> dict[str, Any]:
        """What devlink counts once it answers."""
        seen: list[Function] = []

        def answers() -> bool:
            seen.append(hairpin.look_at(self.host, self.plan, item.link))
            setting = seen[-1].setting
            return setting["driver_restarts"] is not None or bool(setting["restart_failed"])

        self.until(RETURN_SECONDS, answers)
        return seen[-1].setting

    def _put_back(self, item: Function, prior: dict[str, int | None], said: str) -> None:
        """Set the values that were there before, then raise: _Refused if they are, HostError if they are not."""
        for name, value in prior.items():
            if value is not None:
                self._set(item, name, value)
        raise _Refused(f"the driver of {item.link.netdev} refused a restart ({said}): its values are what they were")

    def _offload(self, item: Function) -> Function:
        """Switch offload on where that is all that is missing, and look again."""
        if item.judgement.state != hairpin_state.OFFLOAD_OFF:
            return item
        self.host.runner.run(["ethtool", "-K", item.link.netdev, "hw-tc-offload", "on"])
        return hairpin.look_at(self.host, self.plan, item.link)

    # What comes back afterwards ---------------------------------------------------------------

    def _held(self) -> dict[str, set[str]]:
        entries = self.host.runner.json(["ip", "-j", "-d", "addr", "show"])
        return {entry["ifname"]: set(observe.ipv4_addresses(entry)) for entry in entries}

    def _addresses(self) -> dict[str, set[str]]:
        """Addresses to wait for by netdev: what links with a carrier hold, and what our profiles give them.

        A neighbour that was restarted just now may still be taking such a link's address away.
        """
        held = self._held()
        profiled = {profile.uuid for profile in profiles.observe(self.host).profiles}
        found = {}
        for link in self.plan.links:
            addresses = held.get(link.netdev, set()) | ({link.address} if link.profile_uuid in profiled else set())
            if self.host.read(f"/sys/class/net/{link.netdev}/carrier") == "1":
                found[link.netdev] = addresses
        return found

    def await_addresses(self, link: host_plan.Link, wanted: set[str]) -> None:
        """Wait for the addresses and their GIDs, with one nudge to NetworkManager."""

        def there() -> bool:
            return wanted <= self._held().get(link.netdev, set()) & self._announced(link)

        if not wanted or self.until(ADDRESS_SECONDS, there):
            return
        command = ["nmcli", "--wait", f"{NUDGE_SECONDS:g}", "device", "connect", link.netdev]
        self.host.runner.execute(command, None, NUDGE_SECONDS + 5)
        if not self.until(NUDGE_SECONDS, there):
            missing = ", ".join(sorted(wanted - self._held().get(link.netdev, set()))) or "its GID"
            raise HostError(
                f"{link.netdev} is {hairpin_state.IN_EFFECT} and did not get {missing} back: check its cable and the"
                " host at its other end, then run mesh-setup"
            )

    def _announced(self, link: host_plan.Link) -> set[str]:
        """Addresses of the netdev for which the RDMA device has a RoCE v2 GID."""
        mapped = gid.by_address(self.host, link.rdma_device, link.netdev)
        return {address for address in self._held().get(link.netdev, set()) if address.partition("/")[0] in mapped}

    def lay_again(self) -> list[str]:
        """Routes, neighbours, filters and markers of the plan that lies on this host; what did not come back."""
        starting = units.enabled(self.host)
        if marks.FABRIC_UNIT not in starting:
            return []
        starting = [name for name in starting if name not in (marks.HAIRPIN_UNIT, marks.FABRIC_UNIT)]
        problems = []
        try:
            stored = host_plan.HostPlan.from_plain(json.loads(self.host.read(marks.PLAN_PATH) or ""))
            fabric.restore(self.host, stored, sleep=self.clock.sleep)
        except (HostError, ValueError) as error:
            problems.append(str(error))
        try:
            if starting:
                self.host.runner.run(["systemctl", "start", *starting], timeout=120)
        except HostError as error:
            problems.append(str(error))
        return problems


class _Refused(HostError):
    """The driver would not, and nothing was changed."""
