"""What the cabling finds, the doctor says too, on rings that nobody planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import examine, wiring
from tests.unit.cabling.surveys import parse, surveys

WIRINGS = yaml.safe_load((Path(__file__).parents[1] / "cabling" / "wirings.yml").read_text(encoding="utf-8"))
RING = "a.p0-b.p1 b.p0-c.p1 c.p0-d.p1 d.p0-a.p1"
HOSTS = ["a", "b", "c", "d"]


def said(taken: dict[str, Any], hosts: list[str], layout: str | None = None) -> list[str]:
    """Lines on the wiring alone."""
    examined = {host: {"survey": taken[host]} if host in taken else {"obstacle": "unreachable"} for host in hosts}
    variables = {"sparkring_layout": layout} if layout else {}
    patient = examine.Patient("home", hosts, examined, variables)
    return [line for one in examine.diagnose(patient, ["cabling", "topology"]).findings for line in one.lines()]


@pytest.mark.parametrize("case", WIRINGS, ids=[case["name"] for case in WIRINGS])
def test_a_wrong_wiring_is_named(case: dict[str, Any]) -> None:
    """What only a plan of ours minds is a fault where a layout is declared, and else a warning."""
    taken = surveys(case["hosts"], parse(case["cables"]))
    kind = "pair" if len(case["hosts"]) == 2 else "cycle"
    declared = said(taken, case["hosts"], "pair" if kind == "pair" else f"cycle-{len(case['hosts'])}")
    assert declared[: len(case["says"])] == case["says"] or set(case["says"]) <= set(declared)
    softened = [
        line.replace("FAIL", "WARN", 1) if any(name in line for name in wiring.OURS) else line for line in case["says"]
    ]
    assert sorted(said(taken, case["hosts"])) == sorted(softened)


def harmed(harm: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    taken = surveys(HOSTS, parse(RING))
    harm(taken)
    return taken


def shared_name(taken: dict[str, Any]) -> None:
    for host in "bc":
        taken[host]["hostname"] = "spark"
    taken["a"]["ipv6_neighbours"] = []
    for row in taken["a"]["lldp"]:
        if row["chassis_name"] == "b":
            row.update(chassis_name="spark", chassis_id="unknown", port_id=row["port_descr"])


def disagree(taken: dict[str, Any]) -> None:
    taken["a"] = surveys(HOSTS, parse("a.p0-b.p0 b.p1-c.p1 c.p0-d.p1 d.p0-a.p1"))["a"]


def switch(taken: dict[str, Any]) -> None:
    rows = [row for host in HOSTS for row in list(taken[host]["lldp"])]
    for host in HOSTS:
        taken[host]["lldp"] = [{**row, "netdev": near["netdev"]} for row in rows for near in taken[host]["lldp"]]


def two_far_ports(taken: dict[str, Any]) -> None:
    near = taken["a"]["lldp"][0]["netdev"]
    taken["a"]["lldp"] += [{**row, "netdev": near} for row in taken["b"]["lldp"] if row["chassis_name"] == "c"]


def deaf(host: str, port: int) -> Callable[[dict[str, Any]], None]:
    def harm(taken: dict[str, Any]) -> None:
        taken[host] = surveys(HOSTS, parse(RING), deaf=[(host, port)])[host]

    return harm


def both_deaf(taken: dict[str, Any]) -> None:
    deaf("a", 0)(taken)
    deaf("b", 1)(taken)


CASES: dict[str, tuple[dict[str, Any], list[str], str | None, str]] = {
    "cabling.name_shared": (harmed(shared_name), HOSTS, None, "a p0 sees spark, and b and c all go by that name."),
    "cabling.ends_disagree": (harmed(disagree), HOSTS, None, "a p0 sees b p0, but b p0 sees c p1."),
    "topology.ambiguous": (harmed(switch), HOSTS, None, "so a switch lies between them."),
    "cabling.several_far_ports": (harmed(two_far_ports), HOSTS, None, "a p0 sees more than one far port: "),
    "cabling.unknown_neighbour": (
        {host: surveys(HOSTS, parse(RING))[host] for host in "abc"},
        HOSTS[:3],
        None,
        "a p1 ↔ d enP2p1s0f0np0, d enp1s0f0np0, which is no host of the survey.",
    ),
    "cabling.one_sided": (harmed(deaf("b", 1)), HOSTS, None, "a p0 sees b p1, but b p1 does not see a p0."),
    "cabling.unseen": (harmed(both_deaf), HOSTS, None, "a p0 has a carrier, but sees no neighbour"),
    "cabling.cable_unseen": (harmed(both_deaf), HOSTS, "cycle-4", "a p0 ↔ b p1 has a carrier"),
    "cabling.order_differs": (
        harmed(len),
        ["a", "c", "b", "d"],
        "cycle-4",
        "a p0 ↔ b p1, and the declared order wants a p0 ↔ c p1.",
    ),
    "cabling.layout_differs": (
        harmed(len),
        ["a", "c", "b", "d"],
        "path-4",
        "a p0 ↔ b p1, and the declared order wants",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_ports_see_is_judged(name: str) -> None:
    taken, hosts, layout, sentence = CASES[name]
    lines = said(taken, hosts, layout)
    assert any(line.split()[1] == name and sentence in line for line in lines), lines
    assert all(len(line) <= 240 for line in lines)


def test_every_kind_has_a_case() -> None:
    told = {line.split()[1] for case in WIRINGS for line in case["says"] if not line.startswith(" ")}
    assert set(wiring.KINDS) - told - set(CASES) == {"cabling.outside_group"}


def test_hosts_of_another_ring_are_unknown_to_this_one() -> None:
    """The doctor looks at one ring at a time, so a plug in another ring is a neighbour that was not surveyed."""
    taken = harmed(len)
    examined = {host: {"survey": taken[host]} for host in HOSTS}
    lines = [one.id for one in examine.diagnose(examine.Patient("home", HOSTS[:3], examined)).findings]
    assert "cabling.unknown_neighbour" in lines


@pytest.mark.parametrize("layout", ["cycle-4", None, "switched"])
def test_a_right_ring_is_silent(layout: str | None) -> None:
    assert said(harmed(len), HOSTS, layout) == []


def test_a_switched_ring_may_see_a_switch() -> None:
    assert said(harmed(switch), HOSTS, "switched") == []


def test_addresses_tell_of_cables_that_nobody_sees() -> None:
    taken = harmed(both_deaf)
    for host, address in (("a", "198.18.0.1/24"), ("b", "198.18.0.2/24")):
        wanted = "enp1s0f0np0" if host == "a" else "enp1s0f1np1"
        next(link for link in taken[host]["links"] if link["netdev"] == wanted)["addresses"] = [address]
    assert said(taken, HOSTS) == []


def test_far_ends_on_a_host_without_rdma_are_no_strangers() -> None:
    taken = harmed(lambda surveyed: surveyed["d"].update(rdma=[]))
    assert not [line for line in said(taken, HOSTS) if "unknown_neighbour" in line]
