"""The older source-port rule: four-cycles alone, counted apart, its hazard said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner, runs, summary
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.degraded import Lost
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from tests import walker
from tests.rings import LAYOUTS, make_bindings, make_inventory

DEVICES = {
    "spark0": ["rocep1s0f0", "roceP2p1s0f1"],
    "spark1": ["rocep1s0f0", "roceP2p1s0f1"],
    "spark2": ["rocep1s0f1", "roceP2p1s0f0"],
    "spark3": ["rocep1s0f1", "roceP2p1s0f0"],
}
"""Positions 0 and 1 mark on cw_primary and ccw_secondary, 2 and 3 on the others (facts: fabric 5.5)."""
HAZARD = (
    "The older source-port rule tags every RDMA packet with UDP source port 65535 that leaves by "
    "rocep1s0f0 of spark0, roceP2p1s0f1 of spark0, rocep1s0f0 of spark1, roceP2p1s0f1 of spark1, "
    "rocep1s0f1 of spark2, roceP2p1s0f0 of spark2, rocep1s0f1 of spark3, roceP2p1s0f0 of spark3: a queue pair to a "
    "neighbour whose flow label gives that port (label & 0x3fff = 0x3fff) is relayed past the neighbour and times "
    "out, so nothing but the relayed lanes may use it."
)


def test_two_devices_of_every_host() -> None:
    ring = make_inventory("cycle-4", sparkring_source_port_rule=True)
    plan, without = (planner.plan(given, make_bindings(given)) for given in (ring, make_inventory("cycle-4")))
    for name, host in plan.hosts.items():
        rules = [rule for rule in host.marker_rules if rule.destination == "source-port/65535"]
        assert [rule.rdma_device for rule in rules] == DEVICES[name]
        assert {rule.tag for rule in rules} == {"0x88b5"}
        assert [check.subject for check in host.checks if check.id == "mesh.source_port"] == [rule.id for rule in rules]
        assert [rule for rule in host.marker_rules if rule not in rules] == without.hosts[name].marker_rules
        assert host.units == without.hosts[name].units
    assert (plan.counts.marker_rules, plan.counts.source_port_rules, plan.counts.markers) == (16, 8, 16)
    assert list(walker.faults(documents.to_plain(plan))) == []
    assert f"## Hazards\n\n- {HAZARD}\n" in summary.markdown(plan)
    assert "source" not in summary.markdown(without)


def test_the_hazard_is_said_with_the_plan(tmp_path: Path) -> None:
    ring = make_inventory("cycle-4", sparkring_source_port_rule=True)
    assert runs.plan([ring], tmp_path, "create").lines == [HAZARD]
    assert runs.plan([make_inventory("cycle-4")], tmp_path, "create").lines == []


def test_a_line_that_is_left_has_none() -> None:
    plan = planner.plan(make_inventory("cycle-4", sparkring_source_port_rule=True), None, Lost(cables=[1]))
    assert plan.counts.source_port_rules == 0 and plan.degraded is not None
    assert plan.degraded.sentences[-1] == (
        "It has no rule by UDP source port: a transport that needs that rule needs the whole ring."
    )


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "cycle-4"])
def test_on_no_other_layout(layout: str) -> None:
    with pytest.raises(RingError) as refused:
        make_inventory(layout, sparkring_source_port_rule=True)
    assert str(refused.value) == (
        f"Ring ring: sparkring_source_port_rule is for cycle-4 alone, and the layout is {layout}; unset it."
    )
