"""Object counts, lanes and windows are those of facts fabric 5.5, written down here from the fact sheet."""

from __future__ import annotations

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import layouts, planner
from tests.rings import LAYOUTS, make_bindings, make_inventory

KIB = 1024
# layout: mesh routes = neighbours = marker rules by host, filters by host, markers by host, relays, busiest, window
TABLE = {
    "pair": ([0, 0], [0, 0], [0, 0], 0, 0, None),
    "cycle-3": ([0] * 3, [0] * 3, [0] * 3, 0, 0, None),
    "cycle-4": ([4] * 4, [4] * 4, [4] * 4, 1, 1, 128),
    "cycle-5": ([4] * 5, [4] * 5, [4] * 5, 1, 1, 128),
    "cycle-6": ([8] * 6, [8] * 6, [4] * 6, 2, 3, 128),
    "cycle-7": ([8] * 7, [8] * 7, [4] * 7, 2, 3, 128),
    "cycle-8": ([12] * 8, [12] * 8, [4] * 8, 3, 6, 64),
    "path-3": ([2, 0, 2], [0, 4, 0], [2, 0, 2], 1, 1, 128),
    "path-4": ([4, 2, 2, 4], [0, 6, 6, 0], [2] * 4, 2, 2, 128),
    "path-5": ([6, 4, 4, 4, 6], [0, 8, 8, 8, 0], [2, 2, 4, 2, 2], 3, 4, 96),
    "path-6": ([8, 6, 6, 6, 6, 8], [0, 10, 10, 10, 10, 0], [2, 2, 4, 4, 2, 2], 4, 6, 64),
}
TOTALS = {"path-7": (60, 60, 20, 9, 32), "path-8": (84, 84, 24, 12, 32)}


def plan_of(layout: str) -> RingPlan:
    given = make_inventory(layout)
    return planner.plan(given, make_bindings(given))


@pytest.mark.parametrize("layout", TABLE)
def test_objects_by_host(layout: str) -> None:
    routes, filters, markers, relays, busiest, window = TABLE[layout]
    plan = plan_of(layout)
    hosts = list(plan.hosts.values())
    assert [len(host.mesh_routes) for host in hosts] == routes
    assert [len(host.neighbours) for host in hosts] == routes
    assert [len(host.marker_rules) for host in hosts] == routes
    assert [len(host.filters) for host in hosts] == filters
    assert [len(host.units) for host in hosts] == [
        2 + host.hairpin.needed + count for host, count in zip(hosts, markers, strict=True)
    ]
    assert plan.counts.relays_max == relays == max(len(lane.relays) for host in hosts for lane in host.lanes)
    assert plan.counts.queue_lanes_max == busiest
    assert plan.counts.window_min == (window and window * KIB)


@pytest.mark.parametrize("layout", TOTALS)
def test_objects_of_long_paths(layout: str) -> None:
    counts = plan_of(layout).counts
    window = (counts.window_min or 0) // KIB
    found = (counts.mesh_routes, counts.filters, counts.markers, counts.queue_lanes_max, window)
    assert found == TOTALS[layout]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_baseline(layout: str) -> None:
    plan = plan_of(layout)
    size = len(plan.hosts)
    for host in plan.hosts.values():
        inner = len(host.links) == 4
        if layout.startswith("path"):
            assert len(host.routes) == 2 * (size - 3 if inner else size - 2)
        else:
            assert len(host.routes) == (0 if layout == "pair" else 2 * (size - 2))
        assert len(host.forward_rules) == (4 if inner else 0)
        assert len(host.sysctls) == (8 if inner else 0)
        assert host.hairpin.needed == bool(host.filters) == (inner and layout not in ("pair", "cycle-3"))


def test_cycle_8_has_three_windows() -> None:
    windows = {lane.window for host in plan_of("cycle-8").hosts.values() for lane in host.lanes}
    assert windows == {None, 64 * KIB, 96 * KIB, 128 * KIB}


def test_opposite_lanes_take_both_sides() -> None:
    """Lane 0 is primary on the path that leaves the lower position's p0, lane 1 secondary on the other."""
    lanes = [lane for lane in plan_of("cycle-4").hosts["spark0"].lanes if lane.peer == "spark2"]
    assert [(lane.function, lane.source.netdev, lane.relays[0].host) for lane in lanes] == [
        ("primary", "enp1s0f0np0", "spark1"),
        ("secondary", "enP2p1s0f1np1", "spark3"),
    ]
    back = [lane for lane in plan_of("cycle-4").hosts["spark2"].lanes if lane.peer == "spark0"]
    assert [(lane.function, lane.source.netdev, lane.relays[0].host) for lane in back] == [
        ("primary", "enp1s0f1np1", "spark1"),
        ("secondary", "enP2p1s0f0np0", "spark3"),
    ]


def test_shares_by_hand() -> None:
    """Path 4, host 1, leftwards in: origin 0 has lanes to 2 and 3 there; the return queue has 2 and 3 with one each."""
    queues = {queue.id: queue for queue in plan_of("path-4").queues}
    assert queues["queue/spark1/enp1s0f1np1>enp1s0f0np0"].shares == {"spark0": 384 * KIB}
    assert queues["queue/spark1/enp1s0f0np0>enp1s0f1np1"].shares == {"spark2": 192 * KIB, "spark3": 192 * KIB}
    assert queues["queue/spark2/enp1s0f1np1>enp1s0f0np0"].shares == {"spark0": 192 * KIB, "spark1": 192 * KIB}


def test_an_origin_with_a_route_and_no_lane_gets_one_chunk() -> None:
    """Cycle 4: 0 and 2 use primary by host 1 and secondary by host 3; the other functions are routes only."""
    queues = {queue.id: queue for queue in plan_of("cycle-4").queues}
    assert queues["queue/spark1/enp1s0f1np1>enp1s0f0np0"].shares == {"spark0": 384 * KIB}
    assert queues["queue/spark1/enP2p1s0f1np1>enP2p1s0f0np0"].shares == {"spark0": 32 * KIB}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_research_is_labelled_and_needs_a_flag(layout: str) -> None:
    plan = plan_of(layout)
    assert plan.research == (layout in ("path-6", "path-7", "path-8"))
    assert bool(plan.blockers) == plan.research
    given = make_inventory(layout, sparkring_allow_research=True)
    allowed = planner.plan(given, make_bindings(given))
    assert allowed.research == plan.research and not allowed.blockers


def test_addresses_of_cycle_4() -> None:
    """Facts fabric 3: rank r has cw 198.18.(2r).1 and ccw 198.18.(2(r-1 mod 4)).2."""
    plan = plan_of("cycle-4")
    for rank, host in enumerate(plan.hosts.values()):
        before = 2 * ((rank - 1) % 4)
        assert [link.address for link in host.links] == [
            f"198.18.{2 * rank}.1/24",
            f"198.18.{2 * rank + 1}.1/24",
            f"198.18.{before}.2/24",
            f"198.18.{before + 1}.2/24",
        ]
    assert plan.supernet == "198.18.0.0/21"
    assert plan_of("cycle-5").supernet == "198.18.0.0/20"


def test_layout_names() -> None:
    assert len(layouts.NAMES) == 14
    assert layouts.layout("cycle-9") is None
