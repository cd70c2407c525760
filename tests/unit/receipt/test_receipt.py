"""A receipt says what was verified, and fails for what was not."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.plugin_utils.receipt import verdict, words
from ansible_collections.sparkring.cluster.plugins.plugin_utils.receipt.model import Receipt

NOW = datetime(2026, 12, 1, 2, 40, 11, tzinfo=UTC)
SURVEY = {
    "kernel": {"release": "6.17.0-1029-nvidia", "os": "Ubuntu 24.04.4 LTS", "machine": "aarch64"},
    "devlink": {
        "0000:01:00.0": {
            "info": {"info": {"pci/0000:01:00.0": {"versions": {"running": {"fw.version": "28.45.4028"}}}}},
        }
    },
}
FILTER = {
    "id": "filter/enp1s0f1np1/0x88b5",
    "netdev": "enp1s0f1np1",
    "tag": "0x88b5",
    "preference": 41,
    "handle": 1,
    "set_mac": "02:00:00:00:00:01",
    "set_tag": "0x0800",
    "egress": "enp1s0f0np0",
    "in_nic": True,
}


def plan(host: str, position: int, driver: str = "virtual") -> dict[str, Any]:
    lists = "links routes sysctls forward_rules mesh_routes neighbours qdiscs filters marker_rules units lanes shares"
    return {
        "schema": documents.HOST_PLAN,
        "ring": "bench",
        "layout": "pair",
        "host": host,
        "position": position,
        "plan_digest": "sha256:00",
        "driver": driver,
        "identity": "",
        "management": {"netdev": "eth0", "address": f"10.0.0.{position + 1}", "prefix": 24},
        "hairpin": {"needed": False, "queue_size": 8192, "num_queues": 4},
        "peers": [],
        "checks": [{"id": "link.mtu", "subject": "enp1s0f0np0", "expected": "9000"}],
        **{name: [] for name in lists.split()},
    }


def check(**changes: Any) -> dict[str, Any]:
    return {
        "id": "link.mtu",
        "subject": "enp1s0f0np0",
        "ok": True,
        "expected": "9000",
        "found": "9000",
        "fix": "",
        **changes,
    }


def lane(source: str, target: str, index: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "id": "pair.rdma.write",
        "subject": f"lane/{source}>{target}/{index}",
        "lane": f"lane/{source}>{target}/{index}",
        "from": source,
        "to": target,
        "index": index,
        "relays": [],
        "ok": True,
        "gbps": 0.0512345,
        "relay_packets": {},
        "return_packets": {},
        "forwarded": {},
        "expected": "200 writes of 4096 bytes a > b",
        "found": "200 writes at 0.0512 Gb/s",
        "fix": "",
        **changes,
    }


class Run:
    """One verification of a pair, good until something in it is changed."""

    def __init__(self, driver: str = "virtual") -> None:
        self.plans = {"spark1": plan("spark1", 1, driver), "spark0": plan("spark0", 0, driver)}
        self.checks = {"spark0": [check()], "spark1": [check()]}
        self.lanes = [lane("spark0", "spark1"), lane("spark1", "spark0")]
        self.surveys: dict[str, Any] = {}

    def receipt(self) -> Receipt:
        return verdict.make_receipt(
            self.plans, self.checks, self.lanes, self.surveys, collection="0.1.0", ansible_core="2.19.0", now=NOW
        )


def test_a_good_run(tmp_path: Path) -> None:
    receipt = Run().receipt()
    assert receipt.ok
    assert receipt.summary == "Ring bench: all 2 checks and 2 lanes (0 relayed) of 2 hosts hold."
    assert (receipt.hosts, receipt.evidence) == (["spark0", "spark1"], "rehearsed")
    assert receipt.limitations == [
        "Software relays and markers stand in for the NIC: nothing here shows what the hardware does.",
        "Each lane carried one short write alone: that shows its path, not its speed or loss under load.",
    ]
    path = verdict.write_receipt(receipt, tmp_path)
    assert path == tmp_path / "bench/receipts/2026-12-01T024011Z-verify.json"
    written = json.loads(path.read_text())
    assert (written["schema"], written["verb"], written["made"]) == (
        documents.RECEIPT,
        "verify",
        "2026-12-01T02:40:11Z",
    )
    assert written["lanes"][0]["from"] == "spark0"
    assert Receipt.model_validate(written) == receipt


def test_the_terminal_shows_who_reaches_whom() -> None:
    run = Run()
    run.lanes = [
        lane("spark0", "spark1"),
        lane("spark0", "spark1", 1, relays=["spark2", "spark3"], gbps=109.4),
        lane("spark1", "spark0", ok=False, gbps=None, expected="e", found="f", fix="do it"),
    ]
    assert words.lines(run.receipt()) == [
        "bench: pair, 2 hosts, evidence: rehearsed",
        "from \\ to  spark0  spark1",
        "spark0     ·       ✓0.0512 ✓109+2",
        "spark1     ✗       ·",
        "each lane: ✓ holds or ✗ does not, Gb/s, +relays",
        "spark1 pair.rdma.write lane/spark1>spark0/0: expected e, found f. To fix: do it",
        "Ring bench: 1 of 2 checks and 3 lanes (1 relayed) of 2 hosts do not hold: pair.rdma.write on spark1.",
    ]


def test_a_failed_check_fails_the_receipt() -> None:
    run = Run()
    run.checks["spark1"] = [check(ok=False, found="1500", fix="run mesh-setup"), check(subject="x", ok=False)]
    receipt = run.receipt()
    assert not receipt.ok
    assert receipt.summary == (
        "Ring bench: 2 of 3 checks and 2 lanes (0 relayed) of 2 hosts do not hold: link.mtu on spark1 (2 times)."
    )
    assert words.lines(receipt)[-3] == (
        "spark1 link.mtu enp1s0f0np0: expected 9000, found 1500. To fix: run mesh-setup"
    )


def test_a_cable_without_carrier_is_named_alone() -> None:
    run = Run()
    dark = {"id": "link.carrier", "ok": False, "expected": "up", "fix": "check the cable"}
    run.checks = {
        "spark0": [check(**dark, subject="link/cw_primary", found="no carrier on cable 0 to spark1")],
        "spark1": [
            check(**dark, subject="link/ccw_primary", found="no carrier on cable 0 to spark0"),
            check(**dark, subject="link/ccw_secondary", found="no carrier on cable 0 to spark0"),
            check(ok=False, found="1500", fix="run mesh-setup"),
        ],
    }
    assert words.lines(run.receipt())[-4:] == [
        "spark0: no carrier on cable 0 to spark1. To fix: check the cable.",
        "spark1: no carrier on cable 0 to spark0. To fix: check the cable.",
        "2 more checks and lanes do not hold; the receipt has them all.",
        "Ring bench: 5 of 5 checks and 2 lanes (0 relayed) of 2 hosts do not hold: "
        "spark0 has no carrier on cable 0 to spark1, spark1 has no carrier on cable 0 to spark0.",
    ]


def test_a_check_that_nobody_answered_fails_the_receipt() -> None:
    run = Run()
    run.checks["spark1"] = []
    receipt = run.receipt()
    assert not receipt.ok
    assert [(item.host, item.found) for item in receipt.checks if not item.ok] == [("spark1", "not checked")]


def test_a_lane_that_was_not_tried_fails_the_receipt() -> None:
    run = Run()
    ends = ({"netdev": name, "rdma_device": name, "address": "198.18.0.1"} for name in ("near", "far"))
    run.plans["spark0"]["lanes"].append(
        {
            "id": "lane/spark0>spark1/0",
            "peer": "spark1",
            "index": 0,
            "function": "primary",
            "source": next(ends),
            "target": next(ends),
            "relays": [],
            "window": None,
        }
    )
    assert run.receipt().ok
    run.lanes.pop(0)
    assert words.lines(run.receipt())[-2] == (
        "spark0 pair.rdma.write lane/spark0>spark1/0: expected an RDMA write, found not checked. "
        "To fix: run verify again for the whole ring"
    )


def test_nothing_checked_is_no_receipt() -> None:
    run = Run()
    run.checks, run.lanes = {}, []
    with pytest.raises(verdict.ReceiptError, match=r"^No check of ring bench was run, so nothing is verified"):
        run.receipt()


def test_plans_that_differ_are_no_ring() -> None:
    run = Run()
    run.plans["spark1"]["plan_digest"] = "sha256:01"
    with pytest.raises(verdict.ReceiptError, match=r"^spark1 and spark0 have different plans"):
        run.receipt()


def hardware() -> Run:
    run = Run("mlx5")
    run.surveys = {"spark0": copy.deepcopy(SURVEY), "spark1": copy.deepcopy(SURVEY)}
    run.plans["spark1"]["filters"] = [FILTER]
    run.checks["spark1"].append(check(id="mesh.relay.in_hw", subject=FILTER["id"]))
    return run


def test_hardware_evidence_needs_every_proof() -> None:
    receipt = hardware().receipt()
    assert receipt.evidence == "hardware"
    assert receipt.versions.hosts["spark0"].model_dump() == {
        "driver": "mlx5",
        "kernel": "6.17.0-1029-nvidia",
        "os": "Ubuntu 24.04.4 LTS",
        "machine": "aarch64",
        "firmware": ["28.45.4028"],
    }


@pytest.mark.parametrize("missing", ["survey", "firmware", "filter", "failed filter", "one host virtual"])
def test_hardware_evidence_is_refused_without_one(missing: str) -> None:
    run = hardware()
    if missing == "survey":
        del run.surveys["spark1"]
    elif missing == "firmware":
        run.surveys["spark0"]["devlink"] = {}
    elif missing == "filter":
        run.checks["spark1"].pop()
    elif missing == "failed filter":
        run.checks["spark1"][-1]["ok"] = False
    else:
        run.plans["spark0"]["driver"] = "virtual"
    assert run.receipt().evidence == ("rehearsed" if missing == "one host virtual" else "none")


def test_the_version_comes_from_the_collection(tmp_path: Path) -> None:
    (tmp_path / "galaxy.yml").write_text("namespace: sparkring\nversion: 1.2.3\n")
    assert verdict.collection_version(tmp_path) == "1.2.3"
    (tmp_path / "MANIFEST.json").write_text('{"collection_info": {"version": "1.2.4"}}')
    assert verdict.collection_version(tmp_path) == "1.2.4"
