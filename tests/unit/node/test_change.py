"""A change that is cut short anywhere leaves the host in its old or its new plan, and the next run completes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.node import change, fabric, units
from tests.cut_kernel import CutKernel, cuts, difference

from . import changes, ring

REMAINS = (marks.CHANGE_PROGRAM_PATH, units.REVERT_TIMER_PATH, units.REVERT_PATH, units.REVERT_LINK)
Standing = dict[str, Any]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    changes.quick(monkeypatch)


@pytest.fixture(params=["bare", "older plan"])
def pattern(request: pytest.FixtureRequest, tmp_path: Path) -> CutKernel:
    """What the host is before the change."""
    kernel = changes.bare(tmp_path / "pattern")
    return kernel if request.param == "bare" else changes.laid(kernel, changes.old_plan())


def booted(kernel: CutKernel, root: Path) -> Standing:
    """What the host is after a boot without any change."""
    made = kernel.copy(root)
    made.boot()
    return made.standing()


def new(kernel: CutKernel, root: Path) -> CutKernel:
    """The host with the new plan, confirmed."""
    made = kernel.copy(root)
    changes.set_up(made)
    changes.keep(made)
    return made


def test_a_confirmed_change_is_what_a_plain_one_is(pattern: CutKernel, tmp_path: Path) -> None:
    kept = new(pattern, tmp_path / "kept")
    plain = changes.laid(pattern.copy(tmp_path / "plain"))
    assert kept.standing() == plain.standing()
    kept.log.clear()
    again = changes.set_up(kept)
    assert (again.changes, again.pending, kept.changing()) == ([], False, [])


def stands(kernel: CutKernel, wanted: Standing, where: str, booted: bool = True) -> None:
    """The host is as wanted. Beside it, where no change is pending, may lie what does nothing then.

    A boot takes the remains away when they are complete; incomplete ones go with the next change.
    """
    complete = all((kernel.root / path.lstrip("/")).is_file() for path in REMAINS)
    if change.read(kernel.host()) is None and not (booted and complete):
        for path in REMAINS:
            (kernel.root / path.lstrip("/")).unlink(missing_ok=True)
        change.leave_folders(kernel.host())
    assert difference(kernel.standing(), wanted, where) == ""


def time_is_over(kernel: CutKernel) -> list[str]:
    """What the unit says that the timer starts, if there is a timer; it is asked before the time is over too."""
    if marks.REVERT_TIMER not in kernel.running:
        return []
    if change.read(kernel.host()) is not None:
        assert kernel.revert_unit() == []
        assert marks.REVERT_TIMER in kernel.running
    changes.SECONDS[0] += changes.RUN.seconds + 1
    try:
        return kernel.revert_unit()
    finally:
        changes.SECONDS[0] = 1000.0


def test_power_is_cut_anywhere_in_an_apply(pattern: CutKernel, tmp_path: Path) -> None:
    old = booted(pattern, tmp_path / "old")
    goal = booted(new(pattern, tmp_path / "new"), tmp_path / "newer")
    number = 0
    for kernel, where in cuts(pattern, tmp_path / "cut", changes.set_up):
        kernel.boot()
        stands(kernel, old, where)
        changes.set_up(kernel)
        changes.keep(kernel)
        kernel.boot()
        stands(kernel, goal, where)
        number += 1
    assert number > 25


def test_the_program_is_killed_anywhere_and_the_time_runs_out(pattern: CutKernel, tmp_path: Path) -> None:
    before = pattern.standing()
    ends = set()
    for kernel, where in cuts(pattern, tmp_path / "cut", changes.set_up):
        ends.add(bool(time_is_over(kernel)))
        if change.read(kernel.host()) is None:
            stands(kernel, before, where, booted=False)
        else:
            # Killed between the document and its timer: nothing is changed yet, and a boot ends it.
            for path in (marks.CHANGE_PATH, *REMAINS):
                (kernel.root / path.lstrip("/")).unlink()
            change.leave_folders(kernel.host())
            assert difference(kernel.standing(), before, where) == ""
    assert ends == {True, False}


def test_the_program_is_killed_anywhere_and_run_again_at_once(pattern: CutKernel, tmp_path: Path) -> None:
    before = pattern.standing()
    goal = new(pattern, tmp_path / "new").standing()
    again = changes.Run(changes.RUN.operator, "200/2", 180, b"the program that undoes", changes.RUN.id)
    for kernel, where in cuts(pattern, tmp_path / "cut", changes.set_up):
        other = kernel.copy(tmp_path / "other")
        changes.set_up(kernel, run=again)
        changes.keep(kernel, run=again)
        stands(kernel, goal, where)
        # One that goes on and is not confirmed ends where the first began.
        changes.set_up(other, run=again)
        assert time_is_over(other)
        stands(other, before, where)


@pytest.mark.parametrize("rebooted", [False, True])
def test_a_revert_is_cut_anywhere(pattern: CutKernel, tmp_path: Path, rebooted: bool) -> None:
    old = booted(pattern, tmp_path / "old") if rebooted else pattern.standing()
    started = pattern.copy(tmp_path / "started")
    changes.set_up(started)
    changes.SECONDS[0] += changes.RUN.seconds + 1
    number = 0
    for kernel, where in cuts(started, tmp_path / "cut", CutKernel.revert_unit):
        if rebooted:
            kernel.boot()
        else:
            kernel.revert_unit()
        stands(kernel, old, where)
        number += 1
    assert number > 15


def test_a_confirmation_is_cut_anywhere(pattern: CutKernel, tmp_path: Path) -> None:
    old = booted(pattern, tmp_path / "old")
    kept = booted(new(pattern, tmp_path / "new"), tmp_path / "newer")
    started = pattern.copy(tmp_path / "started")
    changes.set_up(started)
    number = 0
    for kernel, where in cuts(started, tmp_path / "cut", changes.keep):
        confirmed = change.read(kernel.host()) is None
        kernel.boot()
        stands(kernel, kept if confirmed else old, where)
        number += 1
    assert number > 3


def test_a_removal_is_cut_anywhere(tmp_path: Path) -> None:
    pattern = changes.laid(changes.bare(tmp_path / "pattern"))

    def remove(kernel: CutKernel) -> None:
        fabric.remove(kernel.host(), ring.host_plan(), False, changes.RUN)

    whole = booted(pattern, tmp_path / "whole")
    nothing = booted(changes.bare(tmp_path / "bare"), tmp_path / "nothing")
    number = 0
    for kernel, where in cuts(pattern, tmp_path / "cut", remove):
        kernel.boot()
        stands(kernel, whole, where)
        remove(kernel)
        changes.keep(kernel)
        kernel.boot()
        stands(kernel, nothing, where)
        number += 1
    assert number > 15
