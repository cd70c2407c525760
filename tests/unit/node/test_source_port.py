"""The older source-port rule on a virtual host: an egress rule behind those for destinations."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import checks, fabric, markers, profiles

from . import ring

CW, DEVICE = ring.NETDEV["cw_primary"], ring.RDMA["cw_primary"]
RULE = {
    "id": f"marker/{DEVICE}/source-port/65535",
    "rdma_device": DEVICE,
    "netdev": CW,
    "destination": "source-port/65535",
    "tag": "0x88b5",
}


def plan(present: bool) -> HostPlan:
    made = ring.plan()
    made["marker_rules"] += [RULE] if present else []
    made["checks"] = [{"id": "mesh.source_port", "subject": RULE["id"], "expected": "0x88b5"}]
    return HostPlan.from_plain(made)


def test_laid_found_mended_and_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr(profiles, "IDLE_SECONDS", 0)
    kernel = ring.fake(tmp_path)
    fabric.setup(kernel.host(), plan(True), ring.PROGRAM, None, False)
    laid = [entry for entry in kernel.filters if entry["pref"] == 42]
    assert [(entry["dev"], entry["options"]["keys"]) for entry in laid] == [
        (CW, {"eth_type": "ipv4", "ip_proto": "udp", "src_port": "65535", "dst_port": 4791})
    ]
    assert fabric.setup(kernel.host(), plan(True), ring.PROGRAM, None, False).changes == []
    assert checks.answer(kernel.host(), plan(True))[0]["found"] == "0x88b5"

    kernel.filters.remove(laid[0])
    assert checks.answer(kernel.host(), plan(True))[0]["found"] == "missing"
    outcome = fabric.setup(kernel.host(), plan(True), ring.PROGRAM, None, False)
    assert [change["id"] for change in outcome.changes] == [RULE["id"]]

    outcome = fabric.setup(kernel.host(), plan(False), ring.PROGRAM, None, False)
    assert RULE["id"] in [change["id"] for change in outcome.changes]
    assert [entry for entry in kernel.filters if entry["pref"] == 42] == []
    assert len([entry for entry in kernel.filters if (entry["side"], entry["pref"]) == ("egress", 41)]) == len(
        ring.plan()["marker_rules"]
    )


def test_the_compiled_marker_gets_it_apart() -> None:
    rules = [markers.Rule(CW, "198.18.2.2", "0x88b5"), markers.Rule(CW, "source-port/65535", "0x88b5")]
    assert markers.compiled_command(DEVICE, rules)[3:] == [
        "--rule",
        "198.18.2.2=0x88b5",
        "--source-port",
        "65535=0x88b5",
    ]
