"""One pass over a virtual ring: from bare hosts to a verified mesh, over a reboot, and back.

The tests build on one another, in the order of the file.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import survey
from ansible_collections.sparkring.cluster.plugins.plugin_utils.receipt.model import Receipt
from tests.virtual_ring import Ring

ring_pass = pytest.mark.ring
"""Part of the one pass that `make test` makes."""
PLANS = Path(__file__).resolve().parents[2] / ".lab" / "plans"


@pytest.fixture(scope="module")
def before(ring: Ring) -> dict[str, object]:
    """Surveys of the prepared hosts before setup."""
    ring.play("prepare")
    return {host: result["survey"] for host, result in ring.each("sparkring.cluster.survey").items()}


@ring_pass
def test_second_prepare_changes_nothing(ring: Ring, before: dict[str, object]) -> None:
    assert ring.play("prepare").changed() == []


@ring_pass
def test_setup_applies_what_check_announced(ring: Ring, before: dict[str, object]) -> None:
    announced = ring.play("mesh_setup", check=True).results("Show what the plan would change")
    run = ring.play("mesh_setup")
    applied = run.results("Lay the plan")
    assert {host: [change["id"] for change in result["changes"]] for host, result in applied.items()} == {
        host: [change["id"] for change in result["changes"]] for host, result in announced.items()
    }
    assert all(result["changes"] for result in applied.values())
    assert max(run.executions().values()) <= 10


@ring_pass
def test_receipt_proves_every_lane(ring: Ring) -> None:
    newest = max((PLANS / "lab" / "receipts").glob("*.json"))
    receipt = Receipt.model_validate_json(newest.read_text())
    assert receipt.ok
    assert receipt.evidence == "rehearsed"
    lanes = {(lane.source, lane.target, lane.index) for lane in receipt.lanes}
    assert lanes == {(a, b, index) for a in ring.hosts for b in ring.hosts if a != b for index in (0, 1)}
    planned = {
        lane["id"]: [relay["host"] for relay in lane["relays"]]
        for host in ring.hosts
        for lane in json.loads((PLANS / "lab" / "hosts" / f"{host}.json").read_text())["lanes"]
    }
    assert any(planned.values())
    assert {lane.lane: sorted(lane.relay_packets) for lane in receipt.lanes} == {
        lane: sorted(relays) for lane, relays in planned.items()
    }
    for lane in receipt.lanes:
        assert all(count >= 200 for count in lane.relay_packets.values())
        assert not any(lane.forwarded.values())


@ring_pass
def test_second_setup_changes_nothing(ring: Ring) -> None:
    assert ring.play("mesh_setup").changed() == []


@ring_pass
def test_a_rebooted_host_comes_back_by_itself(ring: Ring) -> None:
    ring.each("ansible.builtin.reboot", "reboot_timeout=300", pattern=ring.hosts[1])
    ring.play("verify")


def test_an_altered_filter_is_found_and_put_back(ring: Ring) -> None:
    plan = json.loads((PLANS / "lab" / "hosts" / f"{ring.hosts[1]}.json").read_text())
    relay = plan["filters"][0]
    command = (
        f"tc filter replace dev {relay['netdev']} ingress protocol {relay['tag']} pref {relay['preference']} "
        f"handle {relay['handle']} flower action pedit ex munge eth dst set 02:00:00:00:00:99 pipe "
        f"action pedit ex munge eth type set {relay['set_tag']} pipe "
        f"action mirred egress redirect dev {relay['egress']}"
    )
    ring.each("ansible.builtin.command", "/sbin/" + command, pattern=ring.hosts[1])
    failed = ring.play("verify", must=False)
    assert failed.rc != 0
    assert relay["id"] in failed.told()
    applied = ring.play("mesh_setup").results("Lay the plan")
    assert {
        host: [change["id"] for change in result.get("changes", [])]
        for host, result in applied.items()
        if result.get("changes")
    } == {ring.hosts[1]: [relay["id"]]}


def test_a_pulled_cable_is_named(ring: Ring) -> None:
    ring.lab(state="pulled", cable=1)
    try:
        told = ring.play("status", must=False).results("Say how the host stands")
    finally:
        ring.lab(state="plugged", cable=1)
    ends = (ring.hosts[1], ring.hosts[2])
    for host, other in (ends, ends[::-1]):
        assert f"{host}: no carrier on cable 1 to {other}." in "\n".join(told[host]["sparkring_lines"])


def test_removal_leaves_the_hosts_as_they_were(ring: Ring, before: dict[str, dict[str, object]]) -> None:
    ring.play("remove")
    after = {host: result["survey"] for host, result in ring.each("sparkring.cluster.survey").items()}
    assert {host: survey.stable(one) for host, one in after.items()} == {
        host: survey.stable(one) for host, one in before.items()
    }
