"""What the doctor of cables says of right and wrong wirings, and that its moves help."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.sparkring.cluster.plugins.plugin_utils.cabling import End, contradictions, discover

from .surveys import Plug, parse, surveys

CASES = yaml.safe_load(Path(__file__).with_name("wirings.yml").read_text(encoding="utf-8"))
RING = "a.p0-b.p1 b.p0-c.p1 c.p0-d.p1 d.p0-a.p1"
HOSTS = ["a", "b", "c", "d"]


def said(findings: Any) -> list[str]:
    return [line for finding in findings for line in finding.lines()]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_wrong_wirings_are_named(case: dict[str, Any]) -> None:
    found = discover(surveys(case["hosts"], parse(case["cables"])), case["hosts"])
    assert said(found.findings) == case["says"]
    assert found.layout is None


@pytest.mark.parametrize("lldp", [True, False])
def test_a_ring_in_arrow_notation(lldp: bool) -> None:
    weak = "" if lldp else " (by IPv6 neighbours, not confirmed by LLDP)"
    assert discover(surveys(HOSTS, parse(RING), lldp=lldp)).lines() == [
        f"a p0 ↔ b p1{weak}",
        f"a p1 ↔ d p0{weak}",
        f"b p0 ↔ c p1{weak}",
        f"c p0 ↔ d p1{weak}",
        "layout cycle-4, hosts in order: a, b, c, d",
    ]


def test_one_end_that_is_not_seen() -> None:
    found = discover(surveys(HOSTS, parse(RING), deaf=[("b", 1)]), HOSTS)
    assert [one.sentence for one in found.findings] == ["a p0 sees b p1, but b p1 does not see a p0."]
    assert [(one.id, one.severity) for one in contradictions(found, "cycle-4", HOSTS)] == [
        ("cabling.cable_unseen", "warn")
    ]


def test_a_neighbour_that_nobody_surveyed_and_one_outside_the_group() -> None:
    taken = surveys(HOSTS, parse(RING))
    three = {host: taken[host] for host in "abc"}
    assert [one.sentence for one in discover(three).findings] == [
        "a p1 ↔ d enP2p1s0f0np0, d enp1s0f0np0, which is no host of the survey.",
        "c p0 ↔ d enP2p1s0f1np1, d enp1s0f1np1, which is no host of the survey.",
    ]
    assert [one.sentence for one in discover(taken, ["a", "b", "c"]).findings] == [
        "a p1 ↔ d p0, and d is not of this ring.",
        "c p0 ↔ d p1, and d is not of this ring.",
    ]


def test_a_lost_host_that_still_speaks_contradicts_nothing() -> None:
    taken = surveys(HOSTS, parse(RING))
    del taken["d"]
    assert not [one for one in contradictions(discover(taken, HOSTS), "cycle-4", HOSTS) if one.severity == "fail"]


def test_a_name_that_two_hosts_have() -> None:
    taken = surveys(HOSTS, parse(RING))
    for host in "bc":
        taken[host]["hostname"] = "spark"
    taken["a"]["ipv6_neighbours"] = []
    for row in taken["a"]["lldp"]:
        if row["chassis_name"] == "b":
            row.update(chassis_name="spark", chassis_id="unknown", port_id=row["port_descr"])
    found = discover(taken).findings
    assert found[0].id == "cabling.name_shared"
    assert found[0].sentence == "a p0 sees spark, and b and c all go by that name."


def test_ends_that_disagree() -> None:
    taken = surveys(HOSTS, parse(RING))
    other = surveys(HOSTS, parse("a.p0-b.p0 b.p1-c.p1 c.p0-d.p1 d.p0-a.p1"))
    taken["a"] = other["a"]
    assert "a p0 sees b p0, but b p0 sees c p1." in [one.sentence for one in discover(taken).findings]


def test_a_switch_is_said_once() -> None:
    taken = surveys(HOSTS, parse(RING))
    for host in HOSTS:
        taken[host]["lldp"] += [
            {**row, "netdev": near["netdev"]}
            for other in HOSTS
            for row in taken[other]["lldp"]
            for near in taken[host]["lldp"]
        ]
    assert [one.id for one in discover(taken).findings] == ["topology.ambiguous"]


def test_two_names_of_one_machine() -> None:
    taken = surveys(HOSTS, parse(RING))
    taken["e"] = taken["a"]
    assert said(discover(taken).findings) == [
        "FAIL cabling.same_machine a and e are one machine by their RDMA node GUIDs.",
        "  To fix: correct ansible_host of one of them.",
    ]


def test_what_is_on_p1_of_a_pair_is_a_note() -> None:
    found = discover(surveys(["a", "b"], parse("a.p0-b.p0 a.p1-b.p1"), deaf=[("b", 1)]))
    assert found.layout == "pair"
    assert [one.severity for one in found.findings] == ["info"]


def test_another_order_is_mended_in_the_inventory() -> None:
    hosts = ["a", "c", "b", "d"]
    found = discover(surveys(HOSTS, parse(RING)), hosts)
    assert said(contradictions(found, "cycle-4", hosts)) == [
        "FAIL cabling.order_differs a p0 ↔ b p1, and the declared order wants a p0 ↔ c p1.",
        "  To fix: list the hosts in this order in the inventory: a, b, c, d; or move the cables.",
    ]


def test_a_line_for_a_ring_names_both_free_ends() -> None:
    found = discover(surveys(HOSTS, parse("a.p0-b.p1 b.p0-c.p1 c.p0-d.p1")), HOSTS)
    assert said(contradictions(found, "cycle-4", HOSTS)) == [
        "WARN cabling.open_line a p1 ↔ d p0 is missing: no link at a p1 and d p0.",
        "  To fix: plug a cable into a p1 and d p0.",
    ]


@st.composite
def rings(draw: st.DrawFn) -> tuple[list[str], str, list[tuple[Plug, Plug]]]:
    """Hosts in cable order, their layout, its cables."""
    size = draw(st.integers(2, 8))
    hosts = draw(st.permutations([f"h{number}" for number in range(size)]))
    if size == 2:
        return list(hosts), "pair", [((hosts[0], 0), (hosts[1], 0))]
    closed = draw(st.booleans())
    cables = [((hosts[i], 0), (hosts[(i + 1) % size], 1)) for i in range(size if closed else size - 1)]
    return list(hosts), f"{'cycle' if closed else 'path'}-{size}", cables


@settings(deadline=None, max_examples=60)
@given(rings(), st.randoms(use_true_random=False), st.booleans())
def test_a_right_wiring_is_found_in_any_order(ring: Any, luck: random.Random, lldp: bool) -> None:
    hosts, layout, cables = ring
    taken = surveys(hosts, cables, lldp=lldp)
    found = discover(taken, hosts)
    assert (found.layout, found.hosts, found.findings) == (layout, tuple(hosts), ())
    assert contradictions(found, layout, hosts) == []
    for survey in taken.values():
        for part in ("links", "rdma", "lldp", "ipv6_neighbours"):
            luck.shuffle(survey[part])
    names = list(taken)
    luck.shuffle(names)
    assert repr(discover({name: taken[name] for name in names})) == repr(discover(json.loads(json.dumps(taken))))


@settings(deadline=None, max_examples=150)
@given(rings(), st.data())
def test_one_wrong_move_is_found_and_the_named_moves_mend_it(ring: Any, data: st.DataObject) -> None:
    hosts, layout, cables = ring
    everywhere = [(host, port) for host in hosts for port in (0, 1)]
    one = data.draw(st.sampled_from([end for cable in cables for end in cable]))
    other = data.draw(st.sampled_from([end for end in everywhere if end != one]))
    wrong = _exchange(cables, one, other)
    head = discover(surveys(hosts, wrong), hosts)
    if head.layout is not None:
        assert head.layout.partition("-")[0] == layout.partition("-")[0]
        return
    assert head.findings
    if not head.moves:
        assert {finding.id for finding in head.findings} <= {"topology.in_pieces"}
        return
    for _round in range(2):
        found = discover(surveys(hosts, wrong), hosts)
        for move in found.moves:
            wrong = _exchange(wrong, _plug(move.one), _plug(move.other))
    assert discover(surveys(hosts, wrong), hosts).layout == layout


def _plug(end: End) -> Plug:
    return end.host, end.port


def _exchange(cables: Any, one: Plug, other: Plug) -> list[tuple[Plug, Plug]]:
    swapped = {one: other, other: one}
    return [(swapped.get(a, a), swapped.get(b, b)) for a, b in cables]
