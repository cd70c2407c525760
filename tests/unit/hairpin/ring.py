"""Host 0 of a ring of four with a card, bare or set up."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import hairpin_state
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, hairpin, hairpin_run
from tests.fake_card import FakeCard, planned
from tests.unit.node import ring

CW, CW2, CCW, CCW2 = (ring.NETDEV[role] for role in ("cw_primary", "cw_secondary", "ccw_primary", "ccw_secondary"))
BDF = {CW: "0000:01:00.0", CW2: "0002:01:00.0", CCW: "0000:01:00.1", CCW2: "0002:01:00.1"}
SOURCE = "int main(void) { return 0; }\n"


def bare(root: Path, **options: Any) -> tuple[FakeCard, HostPlan]:
    """A host as it comes, and its plan."""
    made = FakeCard(root, ring.links(), **options)
    return made, planned(made, ring.plan("mlx5"))


def live(card: FakeCard, plan: HostPlan, check: bool = False) -> hairpin_run.Outcome:
    """What an operator runs."""
    return hairpin_run.bring(card.host(), plan, hairpin_run.LIVE, check, card.clock())


def boot(card: FakeCard, plan: HostPlan) -> hairpin_run.Outcome:
    """What the boot unit runs."""
    return hairpin_run.bring(card.host(), plan, hairpin_run.BOOT, False, card.clock())


def set_up(root: Path, **options: Any) -> tuple[FakeCard, HostPlan]:
    """A host with the setting in effect and the whole fabric laid."""
    made, plan = bare(root, **options)
    live(made, plan)
    fabric.setup(made.host(), plan, ring.PROGRAM, SOURCE, False)
    return made, plan


def stop_markers(card: FakeCard) -> None:
    """What an operator stops before a restart."""
    for name in sorted(card.running):
        if "marker@" in name:
            card._stop(name)


def states(card: FakeCard, plan: HostPlan) -> list[str]:
    """State of each function, in the plan's order."""
    return [item.judgement.state for item in hairpin.look(card.host(), plan)]


def in_effect(card: FakeCard, plan: HostPlan) -> bool:
    """Whether all is judged in effect."""
    return set(states(card, plan)) == {hairpin_state.IN_EFFECT}


def clean(root: Path) -> None:
    """Forget a host."""
    for path in (root, root.parent / (root.name + ".away")):
        shutil.rmtree(path, ignore_errors=True)
