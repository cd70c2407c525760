"""Power is cut, or the program killed, after every single command and write: nothing is lost, nothing is claimed.

After each cut the host ends with the setting in effect, or says in one sentence why not and a watched run mends it.
"""

from __future__ import annotations

import copy
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import hairpin_state
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, hairpin, hairpin_journal
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests import fake_card
from tests.fake_card import FakeCard, PowerCut
from tests.unit.node import ring

from .ring import BDF, CW, SOURCE, bare, boot, clean, in_effect, live, set_up, stop_markers


def honest(card: FakeCard, plan: HostPlan) -> None:
    """What is judged in effect is what the driver uses."""
    for item in hairpin.look(card.host(), plan):
        function = card.functions[item.bdf]
        if item.judgement.state == hairpin_state.IN_EFFECT:
            assert function.used == fake_card.WANTED and function.offload == "on"


def begun(card: FakeCard) -> set[str]:
    """Functions whose restart is not resolved."""
    return {name for name, entry in (hairpin_journal.read(card.host()) or {}).items() if entry.unresolved}


def mended(card: FakeCard, plan: HostPlan, whole: bool) -> None:
    """A watched run ends in effect; ``whole``: the fabric can be laid on it, and the next boot does it by itself."""
    stop_markers(card)
    live(card, plan)
    assert card.truly() and in_effect(card, plan) and hairpin_journal.suspended(card.host()) == ""
    if whole:
        fabric.setup(card.host(), plan, ring.PROGRAM, SOURCE, False)
        card.reboot()
        assert card.start_hairpin() == "" and card.truly()
        card.start_network()
        assert card.start_units() == []


def cut_everywhere(
    root: Path, made: tuple[FakeCard, HostPlan], work: Callable[[FakeCard, HostPlan], Any], ending: Callable[..., None]
) -> int:
    """Do the work on copies of a host, cut one event later each time; how many cuts there were before it was done."""
    pattern, plan = made
    for number in itertools.count():
        clean(root)
        shutil.copytree(pattern.root, root, symlinks=True)
        card = copy.deepcopy(pattern)
        card.root, card.events, card.cut_after = root, 0, number
        try:
            work(card, plan)
        except PowerCut:
            ending(card, plan, number)
        else:
            break
    return number


def rebooted(card: FakeCard, plan: HostPlan, number: int) -> None:
    """The host boots after a cut, and is then mended."""
    open_ends = begun(card)
    reloaded = {line.split()[3].removeprefix("pci/") for line in card.log if "reload" in line}
    done = {name for name, entry in (hairpin_journal.read(card.host()) or {}).items() if entry.state == "done"}
    assert reloaded <= open_ends | done
    card.reboot()
    assert begun(card) == open_ends
    honest(card, plan)
    said = card.start_hairpin()
    if open_ends:
        with pytest.raises(
            HostError, match=r"^no restarts at boot, since the driver restart of .*: run sparkring hairpin$"
        ):
            boot(card, plan)
        assert not card.truly() and begun(card) == open_ends
    else:
        assert said == ""
    card.start_network()
    mended(card, plan, number % 20 == 0)


def test_power_is_cut_in_a_first_run(tmp_path: Path) -> None:
    assert cut_everywhere(tmp_path / "host", bare(tmp_path / "bare"), live, rebooted) > 60


def test_power_is_cut_in_the_boot_unit(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path / "ready")
    card.reboot()
    card.log.clear()
    (card.root / hairpin_journal.PATH.lstrip("/")).unlink()
    assert cut_everywhere(tmp_path / "host", (card, plan), boot, rebooted) > 60


def test_power_is_cut_in_a_repair_of_a_ring_that_is_set_up(tmp_path: Path) -> None:
    card, plan = set_up(tmp_path / "ready")
    stop_markers(card)
    card.functions[BDF[CW]].probe()
    card.log.clear()
    assert cut_everywhere(tmp_path / "host", (card, plan), live, rebooted) > 30


def killed(card: FakeCard, plan: HostPlan, number: int) -> None:
    """The program is killed and the host lives on; then it is mended."""
    card.kill()
    honest(card, plan)
    if begun(card):
        with pytest.raises(HostError, match=r"run sparkring hairpin$"):
            fabric.setup(card.host(), plan, ring.PROGRAM, SOURCE, True)
    mended(card, plan, False)
    assert begun(card) == set()


@pytest.mark.parametrize("restarts", [0, 3])
def test_the_program_is_killed_and_nothing_is_claimed(tmp_path: Path, restarts: int) -> None:
    """Values that are set and not used look like those in use where the driver was restarted before."""
    card, plan = bare(tmp_path / "bare")
    for function in card.functions.values():
        function.restarts = restarts
    assert cut_everywhere(tmp_path / "host", (card, plan), live, killed) > 60


class Life(RuleBasedStateMachine):
    """Any order of watched runs, boots, cuts, kills, lost settings and moods of the driver."""

    root: Path

    @initialize()
    def bare(self) -> None:
        clean(self.root)
        self.card, self.plan = bare(self.root)
        self.open: set[str] = set()

    def _try(self, work: Callable[[FakeCard, HostPlan], Any], cut: int | None) -> None:
        before = begun(self.card)
        self.card.events, self.card.cut_after = 0, cut
        try:
            work(self.card, self.plan)
        except PowerCut:
            self.card.kill()
        except HostError as error:
            assert str(error) and "\n" not in str(error)
        else:
            self.card.cut_after = None
            assert self.card.truly()
            if work is live:
                assert begun(self.card) == set()
            return
        self.card.cut_after = None
        assert work is live or before <= begun(self.card)

    @rule(cut=st.none() | st.integers(0, 90))
    def watched(self, cut: int | None) -> None:
        self._try(live, cut)

    @rule(cut=st.none() | st.integers(0, 90))
    def rebooted(self, cut: int | None) -> None:
        before = begun(self.card)
        self.card.reboot()
        assert begun(self.card) == before
        self._try(boot, cut)
        if before:
            assert not self.card.truly()

    @rule(
        netdev=st.sampled_from(sorted(BDF)),
        how=st.sampled_from(
            [
                fake_card.GOOD,
                fake_card.ERRS_BUT_DONE,
                fake_card.REFUSES,
                fake_card.FAILS,
                fake_card.NO_RISE,
                fake_card.HANGS,
                fake_card.STAYS_AWAY,
                fake_card.RENAMED,
                fake_card.NO_ANSWER,
                fake_card.NO_OFFLOAD,
                "set hairpin_queue_size",
            ]
        ),
    )
    def mood(self, netdev: str, how: str) -> None:
        self.card.behaviour = {BDF[netdev]: how}

    @rule(netdev=st.sampled_from(sorted(BDF)))
    def lost(self, netdev: str) -> None:
        if netdev not in self.card.absent:
            self.card.functions[BDF[netdev]].probe()

    @rule(netdev=st.sampled_from(sorted(BDF)))
    def offload(self, netdev: str) -> None:
        self.card.functions[BDF[netdev]].offload = "off"

    @precondition(lambda self: hasattr(self, "card"))
    @invariant()
    def honest(self) -> None:
        honest(self.card, self.plan)

    def teardown(self) -> None:
        self.card.behaviour.clear()
        self.card.reboot()
        live(self.card, self.plan)
        assert self.card.truly() and hairpin_journal.suspended(self.card.host()) == ""


def test_any_life(tmp_path: Path) -> None:
    class Here(Life):
        root = tmp_path / "host"

    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        Here, settings=settings(max_examples=25, stateful_step_count=10, deadline=None, suppress_health_check=checks)
    )
