"""Who may change a host, when a change is kept, and what is said when it is not."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import (
    apply,
    change,
    fabric,
    hairpin_journal,
    host,
    lock,
    markers,
    revert,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests.cut_kernel import MANAGEMENT, CutKernel, difference
from tests.fake_kernel import Refusal

from . import changes, ring

LINK = ring.plan()["links"][0]
CW = ring.NETDEV["cw_primary"]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    changes.quick(monkeypatch)
    monkeypatch.setattr(change.time, "strftime", lambda form, at: "12:03:04 UTC")


@pytest.fixture
def kernel(tmp_path: Path) -> CutKernel:
    return changes.bare(tmp_path / "host")


@pytest.fixture
def started(kernel: CutKernel) -> CutKernel:
    """A host that is changed and waits."""
    assert changes.set_up(kernel).pending
    kernel.log.clear()
    return kernel


def refused(kernel: CutKernel, work: Any, *words: Any, **more: Any) -> str:
    with pytest.raises(HostError) as raised:
        work(kernel, *words, **more)
    return str(raised.value)


# Who ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [False, True])
def test_a_second_operator_is_refused_by_name(started: CutKernel, check: bool) -> None:
    changes.SECONDS[0] += 60
    assert refused(started, changes.set_up, run=changes.OTHER, check=check) == (
        "root@desk has changed this host since 12:03:04 UTC and has not confirmed it: let that run finish, or wait"
        " until the host goes back to what it was in 120 s, then run again"
    )
    with pytest.raises(change.PendingRefused) as raised:
        fabric.remove(started.host(), ring.host_plan(), check, changes.OTHER)
    assert (raised.value.pending.operator, raised.value.pending.run) == ("root@desk", "100/1")
    assert refused(started, changes.keep, run=changes.OTHER).startswith("root@desk has changed this host")
    assert started.changing() == []


def test_another_run_of_the_same_operator_is_refused_while_the_first_lives(started: CutKernel) -> None:
    second = changes.Run("root@desk", "200/2", 180, b"program")
    assert refused(started, changes.set_up, run=second).startswith("root@desk has changed this host since")


def test_whoever_comes_after_the_time_is_over_goes_on(started: CutKernel) -> None:
    """So that a host which cannot go back, since its disk is full or a tool fails, is nobody's prisoner."""
    changes.SECONDS[0] += 181
    assert changes.set_up(started, run=changes.OTHER, check=True).pending
    assert changes.set_up(started, run=changes.OTHER).pending
    changes.keep(started, run=changes.OTHER)
    assert change.read(started.host()) is None


def test_one_that_is_at_work_is_named(kernel: CutKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "LOCK_SECONDS", 0)
    with lock.hold(kernel.host(), "mesh-setup of ann@laptop"):
        assert refused(kernel, changes.set_up) == (
            f"mesh-setup of ann@laptop (process {os.getpid()}) is at work on this host:"
            " wait for it to end, then run again"
        )
        assert changes.set_up(kernel, check=True).changes


@pytest.mark.parametrize("what", ["set up", "remove", "confirm", "revert"])
def test_whatever_changes_a_host_holds_the_lock(kernel: CutKernel, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    if what != "set up":
        changes.set_up(kernel)
    held: list[bool] = []

    def event(_text: str) -> None:
        with pytest.raises(HostError), lock.hold(kernel.host(), "test", wait=0):
            pass
        held.append(True)

    monkeypatch.setattr(kernel, "event", event)
    if what == "set up":
        changes.set_up(kernel)
    elif what == "remove":
        fabric.remove(kernel.host(), ring.host_plan(), False, changes.RUN)
    elif what == "confirm":
        changes.keep(kernel)
    else:
        changes.SECONDS[0] += 181
        kernel.revert_unit()
    assert len(held) > 3


# When ---------------------------------------------------------------------------------------------


def test_the_time_begins_anew_when_the_work_is_done(kernel: CutKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """An apply may take longer than it may stay unconfirmed: the revert waits for it, then looks again."""
    make = apply.make

    def slow(*given: Any) -> None:
        changes.SECONDS[0] += 500
        make(*given)

    monkeypatch.setattr(apply, "make", slow)
    changes.set_up(kernel)
    assert revert.run(kernel.host()) == []
    changes.SECONDS[0] += 179
    assert revert.run(kernel.host()) == [] and change.read(kernel.host()) is not None
    changes.keep(kernel)
    assert revert.run(kernel.host()) == []


def test_no_change_nothing_armed(started: CutKernel) -> None:
    changes.keep(started)
    started.log.clear()
    assert not changes.set_up(started).pending and started.changing() == []
    assert marks.REVERT_TIMER not in started.running


def test_a_pending_change_is_announced_though_nothing_differs(started: CutKernel) -> None:
    seen = changes.set_up(started, check=True)
    assert (seen.changes, seen.pending, started.changing()) == ([], True, [])


def test_proof_alone_keeps_nothing(started: CutKernel) -> None:
    changes.keep(started, check=True)
    assert change.read(started.host()) is not None and marks.REVERT_TIMER in started.running


def test_a_full_packet_goes_to_each_neighbour(started: CutKernel) -> None:
    changes.keep(started)
    pings = {line.removeprefix("read: ") for line in started.log if line.startswith("read: ping")}
    assert pings == {
        f"ping -n -q -c 1 -W 1 -M do -s 8972 -I {link['netdev']} {link['peer_address']}"
        for link in ring.plan()["links"]
    }


def test_a_neighbour_that_does_not_answer_is_named(started: CutKernel) -> None:
    started.unreachable.add(LINK["peer_address"])
    changes.SECONDS[0] += 80
    assert refused(started, changes.keep) == (
        f"spark1 does not answer 9000 bytes at {LINK['peer_address']} through {CW}; unless the run is repeated, this"
        " host goes back to what it was in 100 s"
    )
    assert change.read(started.host()) is not None


def test_a_neighbour_may_take_its_time(started: CutKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    started.unreachable.add(LINK["peer_address"])
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 5:
            started.unreachable.clear()

    from ansible_collections.sparkring.cluster.plugins.module_utils.node import confirm

    confirm.confirm(started.host(), ring.host_plan(), changes.RUN, False, sleep)
    assert len(waited) == 5 and change.read(started.host()) is None


def test_the_management_path_must_be_what_it_was(started: CutKernel) -> None:
    started.links[MANAGEMENT].addresses = ["192.0.2.11/24"]
    started.routes[:] = [route for route in started.routes if route["dst"] != "default"]
    assert refused(started, changes.keep) == (
        f"the management interface {MANAGEMENT} has lost its address 192.0.2.10/24; the default route via 192.0.2.1"
        f" dev {MANAGEMENT} is gone; unless the run is repeated, this host goes back to what it was in 180 s"
    )


def test_too_late(started: CutKernel) -> None:
    changes.SECONDS[0] += 181
    assert refused(started, changes.keep) == (
        "the time to confirm is over and spark0 goes back to what it was now: run again"
    )
    started.revert_unit()
    assert refused(started, changes.keep) == (
        "spark0 has no unconfirmed change, so it went back to what it was: run again"
    )


def test_a_removal_is_kept_when_nothing_is_left(started: CutKernel) -> None:
    changes.keep(started)
    fabric.remove(started.host(), ring.host_plan(), False, changes.RUN)
    started.rules.append(f"-A FORWARD -i {CW} -o {CW} -m comment --comment {marks.RULE_COMMENT} -j ACCEPT")
    assert refused(started, changes.keep).startswith(f"forward/{CW}>{CW} is still here; unless the run is repeated")
    started.rules.pop()
    changes.keep(started)
    assert not (started.root / marks.CONFIG_DIR.lstrip("/")).exists()


# What goes wrong ----------------------------------------------------------------------------------


def test_a_failed_apply_says_what_becomes_of_it(kernel: CutKernel) -> None:
    kernel.set_carrier(CW, False)
    assert refused(kernel, changes.set_up) == (
        f"{CW} has no carrier: check its cable and that the host at its other end is on; unless the run is repeated,"
        " this host goes back to what it was in 180 s"
    )
    kernel.set_carrier(CW, True)
    changes.set_up(kernel)
    changes.keep(kernel)


class Full:
    """A disk on which nothing fits any more after so many files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, files: int) -> None:
        self.left, self.met = files, False
        self.fsync = os.fsync
        monkeypatch.setattr(host.os, "fsync", self)

    def __call__(self, handle: int) -> None:
        path = os.readlink(f"/proc/self/fd/{handle}")
        if os.path.isfile(path) and marks.RUN_DIR not in path:
            if not self.left:
                self.met = True
                raise OSError(errno.ENOSPC, "No space left on device")
            self.left -= 1
        self.fsync(handle)


@pytest.mark.parametrize("files", range(12))
def test_a_full_disk(kernel: CutKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    before = kernel.standing()
    with monkeypatch.context() as patched:
        disk = Full(patched, files)
        said = ""
        try:
            changes.set_up(kernel)
        except HostError as error:
            said = str(error)
        assert bool(said) == disk.met == (files < 11)
        if not said:
            return
        assert said.startswith("No space left for /")
        if files < 4:
            assert difference(kernel.standing(), before, "unarmed") == "" and "goes back" not in said
        else:
            assert said.endswith("unless the run is repeated, this host goes back to what it was in 180 s")
    again = kernel.copy(tmp_path / "again")
    changes.set_up(again)
    changes.keep(again)
    changes.SECONDS[0] += 181
    kernel.revert_unit()
    assert difference(kernel.standing(), before, "reverted") == ""


def test_a_revert_on_a_full_disk_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = changes.laid(changes.bare(tmp_path), changes.old_plan())
    before = kernel.standing()
    changes.set_up(kernel)
    changes.SECONDS[0] += 181
    with monkeypatch.context() as patched:
        Full(patched, 1)
        with pytest.raises(HostError, match="No space left for "):
            kernel.revert_unit()
    assert change.read(kernel.host()) is not None
    kernel.revert_unit()
    assert difference(kernel.standing(), before, "reverted") == ""


def test_a_revert_waits_for_networkmanager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its profiles are neither there nor gone while it is silent."""
    kernel = changes.laid(changes.bare(tmp_path), changes.old_plan())
    before = kernel.standing()
    changes.set_up(kernel)
    changes.SECONDS[0] += 181
    with monkeypatch.context() as patched:
        silence(kernel, patched)
        assert refused(kernel, CutKernel.revert_unit) == SILENT
    assert change.read(kernel.host()) is not None
    kernel.revert_unit()
    assert difference(kernel.standing(), before, "reverted") == ""


def test_a_removal_waits_for_networkmanager(kernel: CutKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    changes.laid(kernel)
    before = kernel.standing()
    with monkeypatch.context() as patched:
        silence(kernel, patched)
        assert refused(kernel, lambda host: fabric.remove(host.host(), ring.host_plan(), False, changes.RUN)) == SILENT
    assert difference(kernel.standing(), before, "refused") == ""
    fabric.remove(kernel.host(), ring.host_plan(), False, changes.RUN)
    with monkeypatch.context() as patched:
        silence(kernel, patched)
        assert refused(kernel, changes.keep).startswith(SILENT)
    changes.keep(kernel)


SILENT = "NetworkManager does not answer here, and its profiles cannot be judged: start it"


def silence(kernel: CutKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """NetworkManager is stopped."""

    def refuse(words: list[str]) -> str:
        raise Refusal("Error: NetworkManager is not running.")

    monkeypatch.setattr(kernel, "_nmcli", refuse)


def test_a_link_without_carrier_does_not_hold_up_a_revert(tmp_path: Path) -> None:
    kernel = changes.laid(changes.bare(tmp_path), changes.old_plan())
    changes.set_up(kernel)
    changes.SECONDS[0] += 181
    kernel.set_carrier(CW, False)
    kernel._down(CW)
    told = kernel.revert_unit()
    assert change.read(kernel.host()) is None
    assert told[-1].startswith("left to the fabric unit: ") and f"{CW} has no carrier" in told[-1]
    assert "systemctl restart --no-block sparkring-node-fabric.service" in kernel.log
    kernel.set_carrier(CW, True)
    kernel._up(LINK["profile_uuid"])
    kernel._start(marks.FABRIC_UNIT)
    assert changes.set_up(kernel, changes.old_plan(), check=True).changes == []


def test_a_link_that_was_down_before_may_be_up_by_now(tmp_path: Path) -> None:
    kernel = changes.laid(changes.bare(tmp_path), changes.old_plan())
    kernel.set_carrier(CW, False)
    kernel._down(CW)
    assert "has no carrier" in refused(kernel, changes.set_up)
    kernel.set_carrier(CW, True)
    kernel._up(LINK["profile_uuid"])
    changes.SECONDS[0] += 181
    kernel.revert_unit()
    assert change.read(kernel.host()) is None
    assert changes.set_up(kernel, changes.old_plan(), check=True).changes == []


def test_a_link_that_could_come_up_and_does_not_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = changes.laid(changes.bare(tmp_path), changes.old_plan())
    before = kernel.standing()
    changes.set_up(kernel)
    changes.SECONDS[0] += 181
    with monkeypatch.context() as patched:
        patched.setattr(kernel, "_up", lambda item: (_ for _ in ()).throw(Refusal("Error: busy", 4)))
        with pytest.raises(HostError, match=r"could not bring up its profile .*; not yet put back: .*link/cw_primary"):
            kernel.revert_unit()
    kernel.revert_unit()
    assert difference(kernel.standing(), before, "reverted") == ""


def test_what_cannot_be_taken_away_is_tried_again(started: CutKernel) -> None:
    changes.SECONDS[0] += 181
    delete = started._iptables
    started._iptables = lambda words: delete(words) if "-D" not in words else 1 / 0  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        started.revert_unit()
    del started._iptables
    started.revert_unit()
    assert change.read(started.host()) is None and started.rules == []


def test_the_marker_that_was_built_comes_back(tmp_path: Path) -> None:
    """A revert has no compiler's time, and perhaps not the source of before."""
    kernel = changes.bare(tmp_path)
    plan = HostPlan.from_plain(ring.plan("mlx5"))
    fabric.setup(kernel.host(), plan, ring.PROGRAM, "the old source", False)
    before = kernel.standing()
    fabric.setup(kernel.host(), plan, ring.PROGRAM, "the new source", False, (), changes.RUN)
    assert kernel.host().read(marks.MARKER_PATH) == "built from the new source"
    changes.SECONDS[0] += 181
    kernel.revert_unit()
    assert difference(kernel.standing(), before, "reverted") == ""
    fabric.remove(kernel.host(), plan, False, changes.RUN)
    changes.SECONDS[0] += 181
    kernel.revert_unit()
    assert difference(kernel.standing(), before, "removal reverted") == ""
    assert markers.is_the_built_binary(kernel.host())


def test_the_journal_of_restarts_survives_a_reverted_removal(started: CutKernel) -> None:
    changes.keep(started)
    started.file(hairpin_journal.PATH, "{}")
    fabric.remove(started.host(), ring.host_plan(), False, changes.RUN)
    started.boot()
    assert started.host().read(hairpin_journal.PATH) == "{}"


def test_an_unreadable_document_is_said(started: CutKernel) -> None:
    started.file(marks.CHANGE_PATH, '{"schema": "sparkring.change/9"}')
    assert refused(started, changes.set_up) == (
        "/etc/sparkring-node/change.json cannot be read (its schema is sparkring.change/9, known is"
        " sparkring.change/1): delete it, then run mesh-setup or remove"
    )


def test_a_boot_into_an_unfinished_change_lays_nothing_of_it(kernel: CutKernel) -> None:
    """Between the boot and the revert the host marks, forwards and routes nothing that was not confirmed."""
    changes.set_up(kernel)
    kernel.boots += 1
    kernel.reboot()
    kernel.file("proc/sys/kernel/random/boot_id", f"boot-{kernel.boots}")
    assert fabric.restore(kernel.host(), kernel.plan(), 0.0) is False
    assert (kernel.rules, kernel.qdiscs, kernel.neighbours) == ([], {}, [])
