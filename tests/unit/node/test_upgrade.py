"""A host whose plan and units an earlier version laid is still understood, and brought up to date whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, markers, profiles, reconcile
from tests.fake_kernel import FakeKernel, Link

from . import ring

EARLIER = Path(__file__).resolve().parents[2] / "fixtures" / "node" / "host-plan-1.json"
"""Host spark1 of a four-cycle of a virtual ring, as the version without repair planned it."""


@pytest.fixture
def plan() -> dict[str, Any]:
    value: dict[str, Any] = json.loads(EARLIER.read_text())
    assert marks.RECONCILE_TIMER not in value["units"]
    return value


@pytest.fixture
def kernel(tmp_path: Path, plan: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    """A host on which the earlier version laid its plan."""
    monkeypatch.setattr(fabric, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr(profiles, "IDLE_SECONDS", 0)
    monkeypatch.setattr(fabric, "refuse_wrong_identity", lambda _host, _plan: None)
    links = {link["netdev"]: Link(link["mac"]) for link in plan["links"]}
    made = FakeKernel(tmp_path, {**links, plan["management"]["netdev"]: Link("52:54:00:00:00:99")})
    fabric.setup(made.host(), HostPlan.from_plain(plan), b"the earlier program", None, False)
    made.log.clear()
    return made


def test_boot_and_markers_work_with_the_earlier_plan(kernel: FakeKernel, plan: dict[str, Any]) -> None:
    kernel.reboot()
    assert kernel.start_units() == []
    read = HostPlan.from_plain(plan)
    assert reconcile.differences(kernel.host(), read) == []
    for rule in plan["marker_rules"]:
        assert markers.planned(kernel.host(), rule["rdma_device"])[1]


def test_repair_works_with_the_earlier_plan(kernel: FakeKernel, plan: dict[str, Any]) -> None:
    kernel.neighbours.clear()
    lines, problems = reconcile.run(kernel.host(), lambda: HostPlan.from_plain(plan), lambda: 1000.0)
    assert problems == [] and lines == [f"put back {item['id']}: missing" for item in plan["neighbours"]]


def test_the_next_setup_changes_only_what_the_version_changed(kernel: FakeKernel, plan: dict[str, Any]) -> None:
    later = {**plan, "units": [*plan["units"], marks.RECONCILE_TIMER]}
    outcome = fabric.setup(kernel.host(), HostPlan.from_plain(later), ring.PROGRAM, None, False)
    assert {change["id"] for change in outcome.changes} == {
        f"file{marks.PLAN_PATH}",
        f"file{marks.PROGRAM_PATH}",
        f"file{marks.UNIT_DIR}/{marks.RECONCILE_UNIT}",
        f"file{marks.UNIT_DIR}/{marks.RECONCILE_TIMER}",
        f"unit/{marks.RECONCILE_TIMER}",
    }


def test_a_plan_of_a_later_schema_is_refused_by_name(plan: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^schema: sparkring\.host-plan/1 is needed, not sparkring\.host-plan/2$"):
        HostPlan.from_plain({**plan, "schema": "sparkring.host-plan/2"})
