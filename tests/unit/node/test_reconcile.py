"""What a host puts back by itself, when it waits, and what it never touches."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import (
    fabric,
    glance,
    lock,
    objects,
    profiles,
    reconcile,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests.fake_kernel import FakeKernel, Refusal

from . import ring
from .damage import CCW, CW, DAMAGE, MARKER, MARKER_FILE, drop, edit

RP_FILTER = f"net/ipv4/conf/{CW}/rp_filter"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr(profiles, "IDLE_SECONDS", 0)


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    """A set-up host."""
    made = ring.fake(tmp_path)
    fabric.setup(made.host(), ring.host_plan(), ring.PROGRAM, None, False)
    made.log.clear()
    return made


def run(kernel: FakeKernel, now: float = 1000.0) -> list[str]:
    """Lines of a run without problems."""
    lines, problems = reconcile.run(kernel.host(), ring.host_plan, lambda: now)
    assert problems == []
    return lines


def ids(kernel: FakeKernel) -> list[str]:
    return [change.id for change in reconcile.differences(kernel.host(), ring.host_plan())]


def sound(kernel: FakeKernel) -> dict[str, Any]:
    """The host's memory without what a run remembers of losses, the rules in any order."""
    memory = copy.deepcopy(kernel.memory())
    for path in (marks.RECONCILE_STATE_PATH, marks.GLANCE_PATH):
        memory["files"].pop(path.lstrip("/"), None)
    memory["rules"].sort()
    return memory


def test_a_whole_host_is_left_alone_quickly(kernel: FakeKernel) -> None:
    before = sound(kernel)
    assert run(kernel) == []
    assert kernel.changing() == [] and sound(kernel) == before


@pytest.mark.parametrize("name", DAMAGE)
def test_a_glance_sees_every_loss(kernel: FakeKernel, name: str) -> None:
    assert not glance.unchanged(kernel.host())
    run(kernel)
    kernel.log.clear()
    assert glance.unchanged(kernel.host()) and len(kernel.log) <= 8
    DAMAGE[name][0](kernel)
    if name == "profile changed":
        kernel.file("etc/NetworkManager/system-connections/sparkring-lab-cw_primary.nmconnection", "[ipv6]")
    assert not glance.unchanged(kernel.host())


def test_a_glance_is_not_trusted_for_ever(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    run(kernel)
    monkeypatch.setattr(glance, "WHOLE_SECONDS", 0.0)
    assert not glance.unchanged(kernel.host())


def test_what_differs_from_the_plan_is_never_remembered_as_whole(kernel: FakeKernel) -> None:
    kernel.set_carrier(CW, False)
    kernel._down(CW)
    for now in (1000.0, 1030.0):
        run(kernel, now)
    assert not glance.unchanged(kernel.host())


def test_a_lost_gid_is_seen_by_a_glance(kernel: FakeKernel) -> None:
    run(kernel)
    lose_gid(kernel)
    assert not glance.unchanged(kernel.host())


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_lost_comes_back_and_nothing_else_is_touched(kernel: FakeKernel, name: str) -> None:
    harm, expected, _action = DAMAGE[name]
    before = sound(kernel)
    harm(kernel)
    assert sorted(ids(kernel)) == sorted(expected)
    lines = run(kernel)
    assert sorted(line.split(": ")[0].removeprefix("put back ").removeprefix("took away ") for line in lines) == sorted(
        expected
    )
    assert sound(kernel) == before
    kernel.log.clear()
    assert run(kernel, 1030.0) == [] and kernel.changing() == []


def test_every_kind_of_object_is_harmed_somewhere() -> None:
    kinds = {name.partition("/")[0] for _harm, names, _action in DAMAGE.values() for name in names}
    kinds = {objects.ROUTE if kind == "mesh-route" else kind for kind in kinds}
    # The compiled marker is no object of this program's: mesh-setup builds it.
    assert kinds == set(objects.ORDER) - {objects.BINARY}


def test_a_line_says_what_was_wrong(kernel: FakeKernel) -> None:
    kernel.file("proc/sys/" + RP_FILTER, "2")
    assert run(kernel) == [f"put back sysctl/{RP_FILTER}: value is 2, planned 0"]


def test_systemd_reads_a_unit_file_again(kernel: FakeKernel) -> None:
    (kernel.root / MARKER_FILE.lstrip("/")).unlink()
    run(kernel)
    assert "systemctl daemon-reload" in kernel.changing()


def test_who_fights_is_answered_more_and_more_rarely(kernel: FakeKernel) -> None:
    repaired = []
    for now in range(1000, 1000 + 7200, 30):
        kernel.file("proc/sys/" + RP_FILTER, "2")
        if run(kernel, float(now)):
            repaired.append(now - 1000)
    assert repaired[:7] == [0, 30, 90, 210, 450, 930, 1830]
    assert {later - earlier for earlier, later in itertools.pairwise(repaired[6:])} == {900}


def test_a_fight_of_weeks_is_still_fought(kernel: FakeKernel) -> None:
    losses = {"counts": {f"sysctl/{RP_FILTER}": 2000}, "last": {f"sysctl/{RP_FILTER}": 1000.0}}
    kernel.file(marks.RECONCILE_STATE_PATH, json.dumps({**losses, "told": [], "waited": []}))
    kernel.file("proc/sys/" + RP_FILTER, "2")
    assert run(kernel, 1899.0) == []
    assert run(kernel, 1900.0) == [
        f"put back sysctl/{RP_FILTER}: value is 2, planned 0; lost 2001 times, so not again within 900 s"
    ]


def test_the_second_loss_says_when_the_next_repair_may_be(kernel: FakeKernel) -> None:
    for now in (1000.0, 1030.0):
        kernel.file("proc/sys/" + RP_FILTER, "2")
        lines = run(kernel, now)
    assert lines == [f"put back sysctl/{RP_FILTER}: value is 2, planned 0; lost 2 times, so not again within 60 s"]


def test_an_hour_later_a_loss_is_the_first_again(kernel: FakeKernel) -> None:
    for now in (1000.0, 1030.0, 5000.0):
        kernel.file("proc/sys/" + RP_FILTER, "2")
        lines = run(kernel, now)
    assert lines == [f"put back sysctl/{RP_FILTER}: value is 2, planned 0"]


def test_what_was_not_lost_twice_does_not_wait_for_what_was(kernel: FakeKernel) -> None:
    for now in (1000.0, 1030.0):
        kernel.file("proc/sys/" + RP_FILTER, "2")
        run(kernel, now)
    kernel.file("proc/sys/" + RP_FILTER, "2")
    drop(kernel.neighbours, dst="198.18.2.2")
    assert run(kernel, 1060.0) == ["put back neighbour/198.18.2.2: missing"]


def test_a_link_without_a_cable_is_waited_for(kernel: FakeKernel) -> None:
    before = sound(kernel)
    kernel.set_carrier(CW, False)
    kernel._down(CW)
    kernel.running.discard(marks.FABRIC_UNIT)
    kernel.log.clear()
    lines = run(kernel)
    assert not any(CW in line or "198.18.2." in line or marks.FABRIC_UNIT in line for line in lines)
    assert "link/cw_primary" in ids(kernel)
    kernel.set_carrier(CW, True)
    run(kernel, 1060.0)
    run(kernel, 1090.0)
    assert sound(kernel) == before and ids(kernel) == []


def test_a_profile_that_is_just_starting_is_waited_for(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.links[CW].addresses.clear()
    real = kernel._nmcli

    def starting(words: list[str]) -> Any:
        said = real(words)
        return (
            said.replace(f"{CW}:connected", f"{CW}:connecting (getting IP configuration)")
            if "DEVICE,STATE" in words
            else said
        )

    monkeypatch.setattr(kernel, "_nmcli", starting)
    assert run(kernel) == [] and kernel.changing() == []


def test_foreign_objects_are_told_once_and_left(kernel: FakeKernel) -> None:
    edit(kernel.routes, {"protocol": "static"}, dst="198.18.2.0/24")
    kernel.rules.append("-A FORWARD -s 203.0.113.9/32 -j DROP")
    before = copy.deepcopy((kernel.routes, kernel.rules))
    lines, problems = reconcile.run(kernel.host(), ring.host_plan, lambda: 1000.0)
    assert len(lines) == 1 and lines[0].startswith("left alone: ") and "198.18.2.0/24" in lines[0]
    assert problems[-1] == "route/198.18.2.0/24 is not back (missing)"
    assert (kernel.routes, kernel.rules) == before
    assert run(kernel, 1010.0) == []
    assert (kernel.routes, kernel.rules) == before


def test_an_address_that_others_added_is_told_once_and_left(kernel: FakeKernel) -> None:
    kernel.links[CW].addresses.append("203.0.113.1/24")
    assert run(kernel) == [f"left alone: {CW} has the foreign address 203.0.113.1/24"]
    assert run(kernel, 1030.0) == [] and kernel.changing() == []
    assert "203.0.113.1/24" in kernel.links[CW].addresses


def test_links_that_only_flap_are_no_losses(kernel: FakeKernel) -> None:
    """What a cable takes with it comes back with it at once, however often it is pulled."""
    before = sound(kernel)
    for number in range(6):
        kernel.set_carrier(CW, False)
        kernel._down(CW)
        run(kernel, 1000.0 + 60 * number)
        kernel.set_carrier(CW, True)
        run(kernel, 1030.0 + 60 * number)
        run(kernel, 1045.0 + 60 * number)
        assert sound(kernel) == before, number


def test_links_wait_while_networkmanager_does_not_answer(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sound(kernel)
    kernel.file("proc/sys/net/ipv4/ip_forward", "0")
    silence(kernel, monkeypatch)
    lines = run(kernel)
    assert [line for line in lines if "link/" in line or "route/" in line] == []
    assert not any(line.startswith("nmcli") for line in kernel.changing())
    monkeypatch.undo()
    run(kernel, 1030.0)
    assert sound(kernel) == before


def silence(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """NetworkManager is stopped."""

    def refuse(words: list[str]) -> str:
        raise Refusal("Error: NetworkManager is not running.")

    monkeypatch.setattr(kernel, "_nmcli", refuse)


def test_nothing_is_done_amid_a_change_or_another_run(kernel: FakeKernel) -> None:
    kernel.file("proc/sys/" + RP_FILTER, "2")
    with lock.hold(kernel.host(), "mesh-setup of root@desk"):
        assert run(kernel) == []
    kernel.file(marks.CHANGE_PATH, "{}")
    assert run(kernel) == [] and kernel.changing() == []
    (kernel.root / marks.CHANGE_PATH.lstrip("/")).unlink()
    assert run(kernel) != []


def test_the_plan_is_read_once_the_host_is_held(kernel: FakeKernel) -> None:
    """A plan that was read earlier may be the one that another run has replaced meanwhile."""

    def held() -> HostPlan:
        with pytest.raises(lock.Held), lock.hold(kernel.host(), "another", 0.0):
            pass
        return ring.host_plan()

    assert reconcile.run(kernel.host(), held, lambda: 1000.0) == ([], [])


def test_the_wrong_host_is_left_alone(kernel: FakeKernel) -> None:
    drop(kernel.neighbours, dst="198.18.2.2")
    for guid in (kernel.root / "sys/class/infiniband").glob("*/node_guid"):
        guid.write_text("0000:0000:0000:0001\n")
    with pytest.raises(HostError, match=r"^this is not spark0"):
        run(kernel)
    assert kernel.changing() == []


def test_what_cannot_be_put_back_is_said_and_the_rest_is_back(kernel: FakeKernel) -> None:
    del kernel.links[CCW]
    drop(kernel.neighbours, dst="198.18.2.2")
    kernel.file("proc/sys/" + RP_FILTER, "2")
    lines = run(kernel)
    assert "put back neighbour/198.18.2.2: missing" in lines


def test_differences_of_a_bare_host_are_the_whole_plan(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    plan = ring.plan()
    kinds = ("links", "routes", "sysctls", "forward_rules", "mesh_routes", "neighbours", "filters", "marker_rules")
    assert {item["id"] for kind in kinds for item in plan[kind]} <= set(ids(kernel))


def test_a_missing_gid_comes_back_with_its_address(kernel: FakeKernel) -> None:
    before = sound(kernel)
    lose_gid(kernel)
    lines = run(kernel)
    assert lines[0] == f"gave {CW} its address again, whose RoCE v2 GID was missing"
    assert sound(kernel) == before


def test_a_gid_that_never_comes_is_tried_for_more_and_more_rarely(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Giving the address again takes routes with it for a moment, so what does not help is not done for ever."""
    lose_gid(kernel)
    monkeypatch.setattr(kernel, "announce", lambda netdev: None)
    tried = [now - 1000 for now in range(1000, 3000, 30) if any("gave" in line for line in run(kernel, float(now)))]
    assert tried == [0, 30, 90, 210, 450, 930, 1830]


def test_a_missing_gid_of_an_adopted_address_is_its_owners(kernel: FakeKernel) -> None:
    plan = ring.plan()
    next(link for link in plan["links"] if link["netdev"] == CW)["adopted"] = True
    lose_gid(kernel)
    told = reconcile.run(kernel.host(), lambda: HostPlan.from_plain(plan), lambda: 1000.0).lines
    sentence = f"{MARKER} has no RoCE v2 GID for 198.18.0.1: take that address off {CW} and give it again"
    assert sentence in told
    assert not any("address del" in line for line in kernel.log)


def test_a_missing_gid_waits_for_those_who_hold_the_device(kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    lose_gid(kernel)
    held = [{"ifname": f"{MARKER}/1", "pid": 812, "comm": "vllm", "type": "RC"}]
    monkeypatch.setattr(kernel, "_rdma", lambda words: held if words[-1] == "qp" else [], raising=False)
    sentence = f"{MARKER} has no RoCE v2 GID for 198.18.0.1, and process 812 (vllm) uses {MARKER}: stop it"
    assert run(kernel) == [sentence]
    assert run(kernel, 1030.0) == [] and kernel.changing() == []


def lose_gid(kernel: FakeKernel) -> None:
    """What a link drop does while a process holds the entry."""
    port = kernel.root / f"sys/class/infiniband/{MARKER}/ports/1"
    for entry in port.glob("gids/*"):
        entry.write_text("0000:0000:0000:0000:0000:0000:0000:0000\n")
    kernel.log.clear()


def test_a_damaged_memory_of_losses_is_no_obstacle(kernel: FakeKernel) -> None:
    for text in ("", "[]", "{", json.dumps({"last": 1})):
        kernel.file(marks.RECONCILE_STATE_PATH, text)
        kernel.file("proc/sys/" + RP_FILTER, "2")
        assert run(kernel) == [f"put back sysctl/{RP_FILTER}: value is 2, planned 0"]
