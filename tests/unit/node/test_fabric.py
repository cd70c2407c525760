"""Setting up, putting right, restoring and removing a whole host, on a simulated one."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, profiles
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests.fake_kernel import FakeKernel

from . import ring
from .damage import DAMAGE, MARKER, MIXED, UUID, edit, set_byte

CW, CCW = ring.NETDEV["cw_primary"], ring.NETDEV["ccw_primary"]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr(profiles, "IDLE_SECONDS", 0)


def apply(kernel: FakeKernel, plan: HostPlan | None = None, check: bool = False) -> fabric.Outcome:
    return fabric.setup(kernel.host(), plan or ring.host_plan(), ring.PROGRAM, None, check)


def ids(outcome: fabric.Outcome) -> list[str]:
    return [change["id"] for change in outcome.changes]


def planned_ids() -> list[str]:
    plan = ring.plan()
    kinds = (
        "links",
        "routes",
        "sysctls",
        "forward_rules",
        "mesh_routes",
        "neighbours",
        "qdiscs",
        "filters",
        "marker_rules",
    )
    names = [item["id"] for kind in kinds for item in plan[kind]] + ["unit/" + unit for unit in plan["units"]]
    files = (marks.FABRIC_UNIT, marks.MARKER_UNIT_TEMPLATE, marks.RECONCILE_UNIT, marks.RECONCILE_TIMER)
    units = [f"{marks.UNIT_DIR}/{name}" for name in files]
    return names + ["file" + path for path in (marks.PLAN_PATH, marks.PROGRAM_PATH, *units)]


def test_setup_lays_every_planned_object_and_nothing_twice(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    announced = apply(kernel, check=True)
    assert kernel.changing() == []
    assert sorted(ids(announced)) == sorted(planned_ids())
    done = apply(kernel)
    assert done == announced
    assert kernel.routes and len(kernel.filters) == 8 and len(kernel.rules) == 4
    kernel.log.clear()
    again = apply(kernel)
    assert again.changes == [] and (again.before, again.after) == ("", "")
    assert kernel.changing() == []


def test_profiles_that_do_not_start_by_themselves_are_started(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path, autoconnects=False)
    apply(kernel)
    assert len([line for line in kernel.log if "connection up" in line]) == 4
    kernel = ring.fake(tmp_path / "other")
    apply(kernel)
    assert [line for line in kernel.log if "connection up" in line] == []


@pytest.mark.parametrize("docker", [False, True])
@pytest.mark.parametrize("kept_masks", [False, True])
def test_removal_leaves_the_host_as_it_was(tmp_path: Path, docker: bool, kept_masks: bool) -> None:
    kernel = ring.fake(tmp_path, docker=docker, kept_masks=kept_masks)
    (tmp_path / "usr/local/lib").mkdir(parents=True)
    (tmp_path / "run").mkdir(parents=True)
    kernel.rules.append("-A FORWARD -i docker0 -j ACCEPT")
    before = copy.deepcopy(kernel.memory())
    apply(kernel)
    assert kernel.rules[0].startswith("-A DOCKER-USER" if docker else "-A FORWARD")
    announced = fabric.remove(kernel.host(), ring.host_plan(), check=True)
    removed = fabric.remove(kernel.host(), ring.host_plan(), check=False)
    assert announced == removed and sorted(ids(removed)) == sorted(planned_ids())
    assert {change["action"] for change in removed.changes} == {"remove"}
    assert kernel.memory() == before
    kernel.log.clear()
    assert fabric.remove(kernel.host(), ring.host_plan(), check=False).changes == []
    assert kernel.changing() == []


def test_removal_keeps_what_was_there_before(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    kernel.qdiscs[CW] = "clsact"
    kernel.file(f"proc/sys/net/ipv4/conf/{CW}/forwarding", "1")
    done = apply(kernel)
    assert f"qdisc/{CW}" not in ids(done) and f"sysctl/net/ipv4/conf/{CW}/forwarding" not in ids(done)
    fabric.remove(kernel.host(), ring.host_plan(), check=False)
    assert kernel.qdiscs == {CW: "clsact"}
    assert (tmp_path / f"proc/sys/net/ipv4/conf/{CW}/forwarding").read_text() == "1\n"
    assert (tmp_path / f"proc/sys/net/ipv4/conf/{CCW}/forwarding").read_text() == "0\n"
    assert (tmp_path / f"proc/sys/net/ipv4/conf/{CW}/rp_filter").read_text() == "2\n"


@pytest.mark.parametrize("kept_masks", [False, True])
@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_announced_and_put_right(tmp_path: Path, name: str, kept_masks: bool) -> None:
    harm, expected, action = DAMAGE[name]
    kernel = ring.fake(tmp_path, kept_masks=kept_masks)
    apply(kernel)
    sound = copy.deepcopy(kernel.memory())
    harm(kernel)
    announced = apply(kernel, check=True)
    assert sorted(ids(announced)) == sorted(expected)
    if name not in MIXED:
        assert {change["action"] for change in announced.changes} == {action}
    assert apply(kernel) == announced
    repaired = kernel.memory()
    repaired["rules"], sound["rules"] = sorted(repaired["rules"]), sorted(sound["rules"])
    assert repaired == sound
    assert apply(kernel).changes == []


def test_reason_names_the_field(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    set_byte(kernel, "ingress")
    planned = ring.mac(3, "cw_primary")
    assert apply(kernel, check=True).changes == [
        {
            "id": f"filter/{CW}/0x88b5",
            "action": "replace",
            "reason": f"set_mac is {planned.replace('54', '55', 1)}, planned {planned}",
        }
    ]


FOREIGN: dict[str, tuple[Any, str]] = {
    "route": (
        lambda k: k.routes.append(
            {"dst": "198.18.2.0/24", "gateway": "192.0.2.1", "dev": "enP7s7", "protocol": "static"}
        ),
        "a foreign route to 198.18.2.0/24 exists (via 192.0.2.1 dev enP7s7 proto static): remove it",
    ),
    "origin route of the reference tool": (
        lambda k: k.routes.append({"dst": "198.18.2.2", "dev": CW, "protocol": "82"}),
        f"a foreign route to 198.18.2.2/32 exists (dev {CW} proto 82): remove it",
    ),
    "neighbour": (
        lambda k: k.neighbours.append(
            {"dst": "198.18.2.2", "dev": CW, "lladdr": "52:54:00:00:00:99", "state": ["PERMANENT"]}
        ),
        f"a foreign permanent neighbour 198.18.2.2 exists on {CW}: remove it",
    ),
    "filter at our preference": (
        lambda k: (
            k.qdiscs.update({CW: "clsact"}),
            k.filters.append(
                {"dev": CW, "side": "ingress", "protocol": "all", "pref": 44, "kind": "matchall", "options": {}}
            ),
        ),
        f"{CW} has a foreign matchall filter at ingress preference 44: remove it",
    ),
    "filter for our tag": (
        lambda k: (
            k.qdiscs.update({CW: "clsact"}),
            k.filters.append(
                {
                    "dev": CW,
                    "side": "ingress",
                    "protocol": "[34997]",
                    "pref": 11,
                    "kind": "flower",
                    "options": {"handle": 1},
                }
            ),
        ),
        f"{CW} has another tool's filter for 0x88b5 at ingress preference 11: remove it",
    ),
    "egress filter at our preference": (
        lambda k: (
            k.qdiscs.update({CW: "clsact"}),
            k.filters.append(
                {"dev": CW, "side": "egress", "protocol": "all", "pref": 41, "kind": "matchall", "options": {}}
            ),
        ),
        f"{CW} has a foreign matchall filter at egress preference 41: remove it",
    ),
    "ingress qdisc": (lambda k: k.qdiscs.update({CW: "ingress"}), f"{CW} has a foreign ingress qdisc: remove it"),
    "active profile": (
        lambda k: k.add_profile("Wired: 1", CW, active=True),
        f"{CW} has the foreign NetworkManager profile 'Wired: 1': delete it (nmcli connection delete uuid "
        "6bd1a0e6-5a2a-5b02-8ef5-52ac3a2b2b3f)",
    ),
    "waiting profile": (
        lambda k: k.add_profile("netplan-fabric", CW),
        f"{CW} has the foreign NetworkManager profile 'netplan-fabric': delete it (nmcli connection delete uuid ",
    ),
    "address": (
        lambda k: k.links[CW].addresses.append("192.168.100.10/24"),
        f"{CW} has the foreign address 192.168.100.10/24: remove it",
    ),
    "unmanaged": (
        lambda k: k.unmanaged.append(CW),
        f"{CW} is not managed by NetworkManager: let NetworkManager manage it",
    ),
    "bond": (lambda k: setattr(k.links[CW], "master", "bond0"), f"{CW} belongs to bond0: take it out of there first"),
    "other MAC": (
        lambda k: setattr(k.links[CW], "mac", "52:54:00:99:00:01"),
        f"{CW} has MAC 52:54:00:99:00:01, planned is 52:54:00:00:00:01: run rebind",
    ),
    "no netdev": (lambda k: k.links.pop(CW), f"{CW} does not exist here: compare the survey with the bindings"),
    "other ring": (
        lambda k: k.file(marks.PLAN_PATH.lstrip("/"), json.dumps({**ring.plan(), "ring": "other"})),
        "this host belongs to ring other: remove that ring from it first",
    ),
    "other host": (
        lambda k: (k.root / f"sys/class/infiniband/{MARKER}/node_guid").write_text("5054:00ff:fe00:9999\n"),
        "this is not spark0: its identity is ",
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_things_are_refused_before_any_change(tmp_path: Path, name: str) -> None:
    place, sentence = FOREIGN[name]
    kernel = ring.fake(tmp_path)
    place(kernel)
    for check in (True, False):
        with pytest.raises(HostError) as raised:
            apply(kernel, check=check)
        assert str(raised.value).split("uuid ")[0] == sentence.split("uuid ")[0] or str(raised.value).startswith(
            sentence
        )
    assert kernel.changing() == []


def test_foreign_things_elsewhere_are_left_alone(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    kernel.qdiscs[CW] = "clsact"
    foreign_filter = {
        "dev": CW,
        "side": "ingress",
        "protocol": "ip",
        "pref": 7,
        "kind": "flower",
        "options": {"handle": 1},
    }
    kernel.filters.append(foreign_filter)
    foreign_route = {"dst": "10.9.0.0/16", "dev": CCW, "protocol": "static"}
    kernel.routes.append(foreign_route)
    kernel.rules.append("-A FORWARD -i docker0 -j DROP")
    kernel.add_profile("Wired connection 9", CW, autoconnect="no")
    apply(kernel)
    fabric.remove(kernel.host(), ring.host_plan(), check=False)
    assert kernel.filters == [foreign_filter]
    assert kernel.rules == ["-A FORWARD -i docker0 -j DROP"]
    assert len(kernel.profiles) == 1


def test_a_changed_plan_moves_only_what_differs(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    changed = ring.plan()
    changed["filters"].pop(0)
    changed["neighbours"][1]["mac"] = "52:54:00:77:00:01"
    gone_rule = changed["marker_rules"].pop()
    changed["units"].remove(marks.marker_unit(gone_rule["rdma_device"]))
    outcome = apply(kernel, HostPlan.from_plain(changed))
    assert [(change["action"], change["id"]) for change in outcome.changes] == [
        ("remove", f"unit/{marks.marker_unit(gone_rule['rdma_device'])}"),
        ("remove", gone_rule["id"]),
        ("remove", f"filter/{CW}/0x88b5"),
        ("replace", f"file{marks.PLAN_PATH}"),
        ("replace", "neighbour/198.18.3.2"),
    ]
    assert apply(kernel, HostPlan.from_plain(changed)).changes == []


def test_reboot_comes_back_without_setup(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path, docker=True)
    apply(kernel)
    before = copy.deepcopy(kernel.memory())
    kernel.reboot()
    assert kernel.routes and not kernel.filters
    assert kernel.start_units() == []
    assert kernel.memory() == before
    assert apply(kernel).changes == []


def test_reboot_with_one_neighbour_off_lays_the_rest_and_says_so(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    whole = len(kernel.routes)
    kernel.set_carrier(CW, False)
    kernel.reboot()
    assert kernel.start_units() == [
        f"Job for {marks.FABRIC_UNIT} failed: {CW} has no address: check its cable and the host at its other end"
    ]
    assert len(kernel.routes) == whole - 3 and len(kernel.filters) == 8 and len(kernel.neighbours) == 3
    kernel.set_carrier(CW, True)
    kernel._up(UUID)
    assert kernel.start_units() == []
    assert len(kernel.routes) == whole
    assert apply(kernel).changes == []


def test_restore_waits_for_a_late_link(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    kernel.set_carrier(CW, False)
    kernel.reboot()
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            kernel.set_carrier(CW, True)
            kernel._up(UUID)

    fabric.restore(kernel.host(), ring.host_plan(), 60.0, sleep)
    assert len(pauses) == 3
    assert {item["dst"] for item in kernel.routes} >= {"198.18.2.0/24", "198.18.2.2"}


def test_restore_puts_altered_objects_right(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    sound = copy.deepcopy(kernel.memory())
    edit(kernel.routes, {"prefsrc": "198.18.6.2"}, dst="198.18.2.2")
    edit(kernel.neighbours, {"lladdr": "52:54:00:09:09:09"}, dst="198.18.2.2")
    set_byte(kernel, "ingress")
    fabric.restore(kernel.host(), ring.host_plan(), 0.0)
    assert kernel.memory() == sound


def test_ids_are_the_plans_own(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    plan = ring.plan()
    named = ("routes", "mesh_routes", "neighbours", "filters", "sysctls", "qdiscs", "forward_rules", "marker_rules")
    for kind in named:
        for number, item in enumerate(plan[kind]):
            item["id"] = f"{kind}-{number}"
    assert apply(kernel, HostPlan.from_plain(plan)).changes
    assert apply(kernel, HostPlan.from_plain(plan)).changes == []


def test_restore_reports_a_foreign_route_and_lays_the_rest(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    kernel.reboot()
    kernel.routes.append({"dst": "198.18.2.0/24", "dev": CCW, "protocol": "static"})
    with pytest.raises(HostError, match=r"route add unicast 198\.18\.2\.0/24 .*File exists"):
        fabric.restore(kernel.host(), ring.host_plan(), 0.0)
    assert len(kernel.filters) == 4 and len(kernel.neighbours) == 4


def test_no_carrier_is_said_in_one_sentence(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    kernel.set_carrier(CW, False)
    with pytest.raises(HostError, match=rf"^{CW} has no carrier: check its cable"):
        apply(kernel)


def test_what_does_not_hold_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = ring.fake(tmp_path)
    monkeypatch.setattr(FakeKernel, "_change_neighbour", lambda self, verb, words: "")
    with pytest.raises(HostError, match=r"the host still differs from the plan: neighbour/198\.18\.2\.2 \(missing\)"):
        apply(kernel)


def test_two_rings_do_not_mix_at_removal(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    apply(kernel)
    other = HostPlan.from_plain({**ring.plan(), "ring": "other"})
    with pytest.raises(HostError, match=r"^this host belongs to ring lab, not other$"):
        fabric.remove(kernel.host(), other, check=False)
