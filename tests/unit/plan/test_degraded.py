"""A ring that lost a cable or a host: the line that is left, what is said of it, and the way back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import (
    degraded,
    drawing,
    inventory,
    planner,
    runs,
    summary,
)
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.degraded import Lost
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import Inventory
from tests import walker
from tests.rings import LAYOUTS, make_bindings, make_inventory, make_survey, size


def losses(given: Inventory) -> list[Lost]:
    cables = [cable.index for cable in given.shape.cables]
    return [*(Lost(cables=[index]) for index in cables), *(Lost(hosts=[host.name]) for host in given.hosts)]


CASES = [(layout, lost) for layout in LAYOUTS for lost in losses(make_inventory(layout))]


def left(layout: str, lost: Lost) -> list[list[str]]:
    """Pieces of two hosts or more, worked out apart from the planner: neighbours along the ring, cut where lost."""
    count = size(layout)
    names = [f"spark{place}" for place in range(count)]
    closed = layout.startswith("cycle")
    joined = {
        place
        for place in range(count if closed else count - 1)
        if place not in lost.cables and not {names[place], names[(place + 1) % count]} & set(lost.hosts)
    }
    pieces, start = [], [place for place in joined if (place - 1) % count not in joined or (not closed and place == 0)]
    for first in start:
        piece = [names[first]]
        while first in joined:
            first = (first + 1) % count
            piece.append(names[first])
        pieces.append(piece)
    return pieces


@pytest.mark.parametrize(("layout", "lost"), CASES, ids=lambda value: str(value))
def test_one_loss_in_every_layout(layout: str, lost: Lost) -> None:
    given = make_inventory(layout, sparkring_allow_research=True)
    bound = make_bindings(given, ["mlx5", "virtual"])
    pieces = left(layout, lost)
    if not pieces:
        with pytest.raises(RingError, match=r"no two hosts are joined by a cable; repair that, then run mesh-setup\.$"):
            planner.plan(given, bound, lost)
        return
    whole, plan = planner.plan(given, bound), planner.plan(given, bound, lost)
    assert list(walker.faults(documents.to_plain(plan))) == []
    assert plan.degraded is not None
    longest = max(len(piece) for piece in pieces)
    assert plan.degraded.line in [piece for piece in pieces if len(piece) == longest]
    assert plan.degraded.like == ("pair" if longest == 2 else f"path-{longest}")
    assert sorted(plan.hosts) == sorted(plan.degraded.line)
    assert sorted([*plan.degraded.out, *plan.degraded.line]) == sorted(whole.hosts)
    assert set(lost.hosts) <= set(plan.degraded.out)
    for name, host in plan.hosts.items():
        assert host.position == whole.hosts[name].position
        assert host.layout == plan.degraded.like
        assert set(host.links) <= set(whole.hosts[name].links)
    assert set(plan.cables) < set(whole.cables)
    like = make_inventory(plan.degraded.like, sparkring_allow_research=True)
    assert plan.counts == planner.plan(like, make_bindings(like)).counts
    assert RingPlan.from_plain(json.loads(documents.to_text(plan))) == plan
    page = summary.markdown(plan)
    assert all(sentence in page for sentence in plan.degraded.sentences)
    assert "degraded" in drawing.svg(plan)


def test_of_two_pieces_alike_the_one_at_the_head() -> None:
    given = make_inventory("path-4")
    plan = planner.plan(given, None, Lost(cables=[1]))
    assert plan.degraded is not None and plan.degraded.line == ["spark0", "spark1"]


def test_what_the_line_can_carry() -> None:
    plan = planner.plan(make_inventory("cycle-8"), None, Lost(hosts=["spark0"]))
    assert plan.degraded is not None
    assert plan.degraded.sentences == [
        "Ring ring is degraded: spark0 is lost.",
        "What is left is the line spark1 ↔ spark2 ↔ spark3 ↔ spark4 ↔ spark5 ↔ spark6 ↔ spark7, planned like path-7 "
        "with unchanged addresses.",
        "It has 84 lanes (whole: 112), at most 5 relays between two hosts (whole: 3), and windows from 32 KiB "
        "(whole: 64 KiB).",
        "Out of the line is spark0: a model on 8 ranks does not fit; sizes up to 7 do.",
        "The head spark0 is out of the line; spark1 stands first in it.",
    ]
    assert plan.blockers[1:] == [
        "Ring ring needs 5 relays between its ends, and more than 3 are research: set sparkring_allow_research to "
        "accept that."
    ]


# Runs ------------------------------------------------------------------------------------------


def surveys(*dark: tuple[int, int]) -> dict[str, Any]:
    """Surveys of a four-cycle; ``dark`` are (position, link) without carrier."""
    found = {}
    for position in range(4):
        found[f"spark{position}"] = make_survey(position)
        for index, link in enumerate(found[f"spark{position}"]["links"]):
            link["carrier"] = (position, index) not in dark
    return found


RING = make_inventory("cycle-4", "home")


def bind(folder: Path, seen: dict[str, Any], partial: bool = False) -> dict[str, Any]:
    outcome = runs.bind([RING], seen, folder, "create", partial)
    outcome.write()
    return dict(outcome.documents["lost"])


def plan(folder: Path, asked: Any = None, seen: dict[str, Any] | None = None, mode: str = "create") -> runs.Outcome:
    outcome = runs.plan([RING], folder, mode, losses=runs.Losses(asked, seen))
    if mode != "check":
        outcome.write()
    return outcome


def line(outcome: runs.Outcome) -> list[str]:
    found = outcome.documents["rings"]["home"]["degraded"]
    return list(found["line"]) if found else []


def test_there_and_back(tmp_path: Path) -> None:
    lost = bind(tmp_path, surveys())
    assert lost == {"home": {"cables": [], "hosts": [], "reasons": []}}
    plan(tmp_path, None, lost)
    whole = (tmp_path / "home/ring.json").read_text()

    lost = bind(tmp_path, surveys((2, 0), (3, 2)))
    assert lost["home"] == {
        "cables": [2],
        "hosts": [],
        "reasons": ["cable 2 (spark2 p0 ↔ spark3 p1) has no carrier on enp1s0f0np0 of spark2, enp1s0f1np1 of spark3"],
    }
    outcome = plan(tmp_path, "auto", lost)
    assert line(outcome) == ["spark3", "spark0", "spark1", "spark2"]
    assert outcome.lines[0] == "Ring home is degraded: cable 2 (spark2 p0 ↔ spark3 p1) is lost."
    assert outcome.lines[-1] == f"Seen: {lost['home']['reasons'][0]}."
    assert not plan(tmp_path, "auto", lost).changed
    assert line(plan(tmp_path, mode="check")) == ["spark3", "spark0", "spark1", "spark2"]

    with pytest.raises(RingError) as refused:
        plan(tmp_path, None, lost)
    assert str(refused.value) == (
        "Ring home is planned without what was lost, and it is not whole yet: "
        f"{lost['home']['reasons'][0]}; repair that, or run mesh-setup with -e degraded=auto."
    )

    outcome = plan(tmp_path, None, bind(tmp_path, surveys()))
    assert outcome.changed and outcome.diff()
    assert outcome.lines == ["Ring home is whole again: what its plan did without is planned with the rest."]
    assert (tmp_path / "home/ring.json").read_text() == whole


def test_a_host_that_does_not_answer(tmp_path: Path) -> None:
    plan(tmp_path, None, bind(tmp_path, surveys()))
    seen: dict[str, Any] = {**surveys((0, 0), (2, 2)), "spark1": None}
    with pytest.raises(RingError, match=r"^Ring home: spark1 was not surveyed; run this for the whole ring\.$"):
        bind(tmp_path, seen)
    lost = bind(tmp_path, seen, partial=True)
    assert lost["home"] == {"cables": [], "hosts": ["spark1"], "reasons": ["spark1 does not answer"]}
    outcome = plan(tmp_path, "auto", lost)
    assert line(outcome) == ["spark2", "spark3", "spark0"]
    assert "spark1" not in outcome.documents["plans"]
    assert not (tmp_path / "home/hosts/spark1.json").exists()
    with pytest.raises(RingError) as refused:
        plan(tmp_path, {"cables": [2]}, lost)
    assert str(refused.value) == (
        "Ring home: spark1 does not answer and degraded does not name it; add it, or use degraded=auto."
    )
    assert line(plan(tmp_path, {"hosts": ["spark1"]}, lost)) == ["spark2", "spark3", "spark0"]


def test_a_first_run_needs_bindings_of_the_lost_host(tmp_path: Path) -> None:
    with pytest.raises(RingError, match=r"^Ring home: spark1 was not surveyed; run this for the whole ring\.$"):
        bind(tmp_path, {**surveys(), "spark1": None}, partial=True)


def test_other_differences_are_still_refused(tmp_path: Path) -> None:
    plan(tmp_path, None, bind(tmp_path, surveys()))
    path = tmp_path / "home/ring.json"
    edited = json.loads(path.read_text())
    edited["hosts"]["spark0"]["links"][0]["mtu"] = 1500
    path.write_text(documents.to_text(edited))
    with pytest.raises(RingError, match=r"hosts spark0 link/cw_primary mtu: 1500 is now 9000\); run plan to accept it"):
        plan(tmp_path, {"cables": [2]})


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("auto", "degraded=auto needs a survey of the hosts: give it to mesh-setup, or name what is lost."),
        (
            "cable 2",
            "Ring home: degraded is cable 2, which says nothing; write auto, or {cables: [2]} or {hosts: [name]}.",
        ),
        ({"cables": [4]}, "Ring home: degraded names cable 4; the cables are 0, 1, 2 and 3."),
        ({"hosts": ["x"]}, "Ring home: degraded names host x; the hosts are spark0, spark1, spark2 and spark3."),
        (
            {"hosts": ["spark0", "spark2"]},
            "Ring home: without spark0 and spark2 no two hosts are joined by a cable; repair that, then run "
            "mesh-setup.",
        ),
    ],
)
def test_what_cannot_be_done_without(asked: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(RingError) as refused:
        plan(tmp_path, asked)
    assert str(refused.value) == message


def test_one_ring_at_a_time(tmp_path: Path) -> None:
    other = make_inventory("pair", "lab", ["a", "b"], sparkring_supernet="10.0.0.0/21")
    with pytest.raises(RingError, match=r"^degraded names what one ring lost, but the run has several rings"):
        runs.plan([RING, other], tmp_path, "create", losses=runs.Losses({"cables": [0]}))


def test_a_switched_ring_has_no_line() -> None:
    hosts = [(f"s{place}", {"sparkring_endpoints": {"cw_primary": f"10.9.0.{place + 1}/24"}}) for place in range(3)]
    given = inventory.read("home", {"sparkring_layout": "switched"}, hosts)
    with pytest.raises(RingError, match=r"^Ring home: a switched ring is not planned without what is lost; take"):
        degraded.left(given, Lost(hosts=["s1"]))
