"""Each check of a plan is answered, and a fault makes exactly the checks about it fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.drivers import DRIVERS
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import checks, fabric
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import checks as planned
from tests.fake_kernel import FakeKernel

from . import ring

CW = ring.NETDEV["cw_primary"]
RDMA = ring.RDMA["cw_primary"]


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    made = ring.fake(tmp_path)
    fabric.setup(made.host(), ring.host_plan(), ring.PROGRAM, None, False)
    for link in ring.host_plan().links:
        port = f"sys/class/infiniband/{link.rdma_device}/ports/1"
        high, low = (int(part) for part in link.address.split("/")[0].split(".")[2:])
        made.file(f"{port}/state", "4: ACTIVE")
        made.file(f"{port}/gids/0", "fe80:0000:0000:0000:5054:00ff:fe00:0001")
        made.file(f"{port}/gids/1", f"0000:0000:0000:0000:0000:ffff:c612:{high * 256 + low:04x}")
        made.file(f"{port}/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000")
        for index in range(2):
            made.file(f"{port}/gid_attrs/types/{index}", "RoCE v2")
            made.file(f"{port}/gid_attrs/ndevs/{index}", link.netdev)
    return made


ON_THE_CARD = {"link.speed", "mesh.relay.in_hw", "hairpin.in_effect"}


def whole_plan() -> HostPlan:
    """The plan with the checks that the planner derives from it."""
    plan = ring.host_plan()
    driver = DRIVERS["virtual"]
    found = [
        *planned.of_links(plan.links, driver),
        *planned.of_baseline(plan.routes, plan.sysctls, plan.forward_rules),
        *planned.of_mesh(plan.mesh_routes, plan.neighbours, plan.filters, plan.marker_rules, driver),
        *planned.of_pings(["198.18.0.2", "198.18.4.1"]),
    ]
    return HostPlan.from_plain({**ring.plan(), "checks": [vars(check) for check in found]})


def test_every_kind_of_check_that_is_planned_can_be_answered() -> None:
    asked = {check.id for check in whole_plan().checks} | ON_THE_CARD
    assert asked | {"mesh.source_port"} == set(checks.QUESTIONS)


def test_all_is_good_after_setup_and_nothing_is_changed(kernel: FakeKernel) -> None:
    plan = whole_plan()
    kernel.log.clear()
    results = checks.answer(kernel.host(), plan)
    assert [(result["id"], result["subject"]) for result in results] == [(c.id, c.subject) for c in plan.checks]
    assert [result for result in results if not result["ok"]] == []
    assert {result["fix"] for result in results} == {""}
    assert kernel.changing() == []
    assert sum("ping -n -c 1 -W 2 -M do -s 8972" in line for line in kernel.log) == 2


def cut_cable(kernel: FakeKernel) -> None:
    kernel.set_carrier(CW, False)
    kernel.unreachable.add("198.18.0.2")


FAULTS: dict[str, tuple[Any, dict[tuple[str, str], str]]] = {
    "cable": (
        cut_cable,
        {
            ("link.carrier", "link/cw_primary"): "no carrier on cable 0 to spark1",
            ("pair.ping", "198.18.0.2"): "no answer",
        },
    ),
    "mtu": (lambda k: setattr(k.links[CW], "mtu", 1500), {("link.mtu", "link/cw_primary"): "1500"}),
    "second address": (
        lambda k: k.links[CW].addresses.append("192.0.2.7/24"),
        {("link.address", "link/cw_primary"): "198.18.0.1/24,192.0.2.7/24"},
    ),
    "port": (
        lambda k: k.file(f"sys/class/infiniband/{RDMA}/ports/1/state", "1: DOWN"),
        {("rdma.state", "link/cw_primary"): "DOWN"},
    ),
    "gid of another netdev": (
        lambda k: k.file(f"sys/class/infiniband/{RDMA}/ports/1/gid_attrs/ndevs/1", "eth9"),
        {("gid.ipv4", "link/cw_primary"): "none"},
    ),
    "sysctl": (
        lambda k: k.file(f"proc/sys/net/ipv4/conf/{CW}/forwarding", "0"),
        {("sysctl.value", f"sysctl/net/ipv4/conf/{CW}/forwarding"): "0"},
    ),
    "blocked forward rule": (
        lambda k: k.rules.insert(0, f"-A FORWARD -i {CW} -j DROP"),
        {("forward.rule", f"forward/{CW}>{ring.NETDEV['ccw_primary']}"): f"behind '-A FORWARD -i {CW} -j DROP'"},
    ),
    "neighbour": (
        lambda k: next(n for n in k.neighbours if n["dst"] == "198.18.2.2").update(lladdr="52:54:00:99:99:99"),
        {
            (
                "neighbour.present",
                "neighbour/198.18.2.2",
            ): f"52:54:00:99:99:99 dev {CW} (mac is 52:54:00:99:99:99, planned {ring.mac(1, 'ccw_primary')})"
        },
    ),
    "filter narrowed": (
        lambda k: next(f for f in k.filters if (f["dev"], f["side"]) == (CW, "ingress"))["options"]["keys"].update(
            src_mac="x"
        ),
        {
            (
                "mesh.relay.filter",
                f"filter/{CW}/0x88b5",
            ): f"to {ring.mac(3, 'cw_primary')} as 0x0800 by {ring.NETDEV['ccw_primary']} (extra is src_mac, planned -)"
        },
    ),
    "marker": (
        lambda k: k.filters.remove(next(f for f in k.filters if (f["dev"], f["side"]) == (CW, "egress"))),
        {("mesh.marker", f"marker/{RDMA}/198.18.2.2"): "missing"},
    ),
    "route": (
        lambda k: k.routes.remove(next(r for r in k.routes if r["dst"] == "198.18.2.0/24")),
        {("route.present", "route/198.18.2.0/24"): "missing"},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_fails_the_checks_about_it_and_no_others(kernel: FakeKernel, name: str) -> None:
    harm, expected = FAULTS[name]
    harm(kernel)
    bad = [result for result in checks.answer(kernel.host(), whole_plan()) if not result["ok"]]
    assert {(result["id"], result["subject"]): result["found"] for result in bad} == expected
    assert all(result["fix"] for result in bad)


def test_an_unknown_check_fails_and_says_why(kernel: FakeKernel) -> None:
    odd = {"id": "link.colour", "subject": "link/cw_primary", "expected": "blue"}
    (result,) = checks.answer(kernel.host(), HostPlan.from_plain({**ring.plan(), "checks": [odd]}))
    assert not result["ok"] and result["found"] == "unknown to this version of the node library"
