"""Every lane is tried; a relayed one holds only when its relays counted it."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.node import lanes
from ansible_collections.sparkring.cluster.plugins.module_utils.node.responder import Responder

from . import ring
from .conftest import Bench

THERE, BACK = ring.THERE.ingress, ring.BACK.ingress
RELAYED = {
    "lane/spark0>spark2/0": ("rocespark0cw", THERE, BACK),
    "lane/spark2>spark0/0": ("rocespark2ccw", BACK, THERE),
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(lanes, "CONNECT_SECONDS", 0.5)


def verify(bench: Bench, **plans: Any) -> dict[str, dict[str, Any]]:
    chosen = {host: plans.get(host, ring.host_plan(host)) for host in ring.HOSTS}
    return {result["lane"]: result for result in lanes.verify(chosen, ring.KEY, bench.port)}


def healthy(bench: Bench) -> None:
    for device, there, back in RELAYED.values():
        bench.effect(device, packets={there: 200, back: 13})


def test_every_lane_of_a_healthy_ring_holds(bench: Bench, responders: dict[str, Responder]) -> None:
    healthy(bench)
    # spark0's lane to its neighbour leaves the same device as its relayed lane; its write counts nothing there.
    results = verify(bench)
    assert list(results) == [
        "lane/spark0>spark1/0",
        "lane/spark0>spark2/0",
        "lane/spark1>spark0/0",
        "lane/spark1>spark2/0",
        "lane/spark2>spark0/0",
        "lane/spark2>spark1/0",
    ]
    assert [result["ok"] for result in results.values()] == [True] * 6
    assert results["lane/spark0>spark2/0"] == {
        "id": "pair.rdma.write",
        "subject": "lane/spark0>spark2/0",
        "lane": "lane/spark0>spark2/0",
        "from": "spark0",
        "to": "spark2",
        "index": 0,
        "relays": ["spark1"],
        "ok": True,
        "gbps": 97.654321,
        "relay_packets": {"spark1": 200},
        "return_packets": {"spark1": 13},
        "forwarded": {"spark1": 0},
        "expected": (
            "200 writes of 4096 bytes rocespark0cw > rocespark2ccw, each counted by spark1, none forwarded by IP"
        ),
        "found": "200 writes at 97.7 Gb/s, spark1 counted 200, spark1 counted 13 back",
        "fix": "",
    }
    direct = results["lane/spark1>spark0/0"]
    assert (direct["relays"], direct["relay_packets"], direct["gbps"]) == ([], {}, 97.654321)


def test_the_responders_end_with_the_lanes(bench: Bench, responders: dict[str, Responder]) -> None:
    healthy(bench)
    verify(bench)
    deadline = time.monotonic() + 5
    while not all(responder.ended() for responder in responders.values()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_each_write_uses_the_planned_devices_and_the_management_network(
    bench: Bench, responders: dict[str, Responder]
) -> None:
    healthy(bench)
    verify(bench)
    calls = bench.calls()
    assert len(calls) == 12
    # The next lane's receiving end may start first.
    calls = [call for call in calls if "18621" in call]
    head = ["--gid-index", "3", "--size", "4096", "--iters", "200", "--CPU-freq", "--report_gbits"]
    tail = ["--output=bandwidth", "--port", "18621", "--source_ip"]
    assert calls[0] == ["--ib-dev", "rocespark2ccw", *head, *tail, "127.0.18.3"]
    assert calls[1] == ["--ib-dev", "rocespark0cw", *head, *tail, "127.0.18.1", "127.0.18.3"]


def test_a_receiving_end_that_waited_long_is_started_anew(
    bench: Bench, responders: dict[str, Responder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started ahead, ends by itself in time, and a slow lane came before."""
    healthy(bench)
    monkeypatch.setattr(lanes, "SERVER_SECONDS", lanes.WRITE_SECONDS)
    assert all(result["ok"] for result in verify(bench).values())
    ends = [call for call in bench.calls() if call[-2] == "--source_ip"]
    assert len(ends) == 2 * 6


@pytest.mark.parametrize(
    ("packets", "found"),
    [
        ({THERE: 199, BACK: 13}, "spark1 counted 199, spark1 counted 13 back"),
        ({THERE: 200}, "spark1 counted 200, spark1 counted 0 back"),
        ({BACK: 200}, "spark1 counted 0, spark1 counted 200 back"),
    ],
)
def test_a_relayed_lane_fails_when_a_relay_did_not_count_it(
    bench: Bench, responders: dict[str, Responder], packets: dict[str, int], found: str
) -> None:
    healthy(bench)
    bench.effect("rocespark0cw", packets=packets)
    result = verify(bench)["lane/spark0>spark2/0"]
    assert not result["ok"]
    assert result["found"] == f"200 writes at 97.7 Gb/s, {found}"
    assert result["fix"] == (
        "see that sparkring-node-marker@rocespark0cw.service runs on spark0 and "
        "sparkring-node-marker@rocespark2ccw.service on spark2, then run mesh-setup for the filters of spark1"
    )


def test_counters_that_lag_are_waited_for(
    bench: Bench, responders: dict[str, Responder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lanes, "SETTLE_SECONDS", 5.0)

    def pause(_seconds: float) -> None:
        for netdev in (THERE, BACK):
            path = bench.state / "packets" / netdev
            path.write_text(str(int(path.read_text()) + 150))

    monkeypatch.setattr(lanes, "sleep", pause)
    bench.effect("rocespark0cw", packets={THERE: 100})
    bench.effect("rocespark2ccw", packets={BACK: 200, THERE: 1})
    result = verify(bench)["lane/spark0>spark2/0"]
    assert result["ok"]
    assert result["relay_packets"] == {"spark1": 250}


def test_a_lane_is_tried_again_when_other_traffic_was_forwarded(bench: Bench, responders: dict[str, Responder]) -> None:
    healthy(bench)
    bench.effect("rocespark2ccw", packets={BACK: 200, THERE: 9}, forwarded=[4, 0])
    result = verify(bench)["lane/spark2>spark0/0"]
    assert result["ok"]
    assert result["forwarded"] == {"spark1": 0}
    assert len([call for call in bench.calls() if "rocespark2ccw" in call and call[-1] == "127.0.18.1"]) == 2


def test_a_lane_that_the_kernel_forwarded_fails_after_three_tries(
    bench: Bench, responders: dict[str, Responder]
) -> None:
    healthy(bench)
    bench.effect("rocespark2ccw", packets={BACK: 200, THERE: 9}, forwarded=[200, 200, 200, 200])
    result = verify(bench)["lane/spark2>spark0/0"]
    assert not result["ok"]
    assert result["found"].endswith("spark1 forwarded 200 by IP")
    assert result["fix"] == "stop other traffic that spark1 forwards, then verify again"
    assert len([call for call in bench.calls() if "rocespark2ccw" in call and call[-1] == "127.0.18.1"]) == 3


def test_a_write_that_fails_names_the_lane_and_the_reason(bench: Bench, responders: dict[str, Responder]) -> None:
    healthy(bench)
    bench.effect("rocespark1ccw", fail="Failed status 12: wr_id 0 syndrom 0x81")
    results = verify(bench)
    result = results.pop("lane/spark1>spark0/0")
    assert (result["ok"], result["gbps"]) == (False, None)
    assert result["found"] == (
        "spark1: ib_write_bw on lane/spark1>spark0/0 ended with 1: Failed status 12: wr_id 0 syndrom 0x81"
    )
    assert "spark1 spark1ccw and spark0 spark0cw" in result["fix"]
    assert all(other["ok"] for other in results.values())


def test_a_missing_relay_filter_is_named(bench: Bench, responders: dict[str, Responder]) -> None:
    healthy(bench)
    (bench.state / "packets" / BACK).unlink()
    result = verify(bench)["lane/spark2>spark0/0"]
    assert not result["ok"]
    assert result["found"] == f"spark1 has no filter/{BACK}/0x88b5"


def test_a_server_that_does_not_listen_is_named(bench: Bench, responders: dict[str, Responder]) -> None:
    healthy(bench)
    bench.effect("rocespark1cw", deaf=True)
    result = verify(bench)["lane/spark2>spark1/0"]
    assert result["found"] == (
        "spark1: ib_write_bw did not listen on lane/spark1>spark2/0: Couldn't listen to port 18625"
    )


def test_a_missing_tool_is_named(
    bench: Bench, responders: dict[str, Responder], monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy(bench)
    monkeypatch.setenv("PATH", str(bench.state))
    result = verify(bench)["lane/spark0>spark1/0"]
    assert (result["found"], result["fix"]) == (
        "spark1: ib_write_bw is missing",
        "run prepare: it installs the tools",
    )


def test_a_missing_gid_is_named(bench: Bench, responders: dict[str, Responder]) -> None:
    healthy(bench)
    bench.host.path("/sys/class/infiniband/rocespark0cw/ports/1/gid_attrs/types/3").unlink()
    result = verify(bench)["lane/spark1>spark0/0"]
    assert result["found"] == "spark0: rocespark0cw has no RoCE v2 GID for 198.18.0.1"


def test_a_host_without_responder_fails_its_own_lanes_only(bench: Bench, responders: dict[str, Responder]) -> None:
    silent = dataclasses.replace(
        ring.host_plan("spark2"),
        management=dataclasses.replace(ring.host_plan("spark2").management, address="127.0.18.9"),
    )
    results = verify(bench, spark2=silent)
    assert [name for name, result in results.items() if result["ok"]] == [
        "lane/spark0>spark1/0",
        "lane/spark1>spark0/0",
    ]
    failed = results["lane/spark0>spark2/0"]
    assert failed["found"].startswith(f"the responder of spark2 (127.0.18.9 port {bench.port}) does not answer: ")
    assert failed["fix"] == ("let the ring's hosts reach TCP ports 18619-18639 of each other on the management network")


def test_a_lane_without_its_reverse_is_refused(bench: Bench, responders: dict[str, Responder]) -> None:
    one_way = dataclasses.replace(ring.host_plan("spark2"), lanes=[])
    result = verify(bench, spark2=one_way)["lane/spark0>spark2/0"]
    assert not result["ok"]
    assert result["found"] == "spark2 has no lane back from rocespark2ccw"
    assert all("127.0.18.3" not in call for call in bench.calls())


def test_lane_ports_are_the_contract_s() -> None:
    assert (marks.RESPONDER_PORT, list(marks.LANE_PORTS)) == (18619, list(range(18620, 18640)))
