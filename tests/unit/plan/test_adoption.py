"""Addresses of an existing ring are kept where they are valid, and named where they are not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import (
    adoption,
    bindings,
    layouts,
    planner,
    runs,
    store,
    summary,
)
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.degraded import Lost
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from tests import walker
from tests.conftest import REPOSITORY
from tests.rings import LAYOUTS, make_inventory, make_survey, size

CASES = yaml.safe_load((REPOSITORY / "tests/fixtures/adoption.yml").read_text(encoding="utf-8"))


def surveys(layout: str, address: Callable[[int, int, int], str]) -> dict[str, Any]:
    """Surveys whose ports have addresses; ``address`` is by cable, function and end."""
    shape = layouts.layout(layout)
    assert shape is not None
    found = {f"spark{position}": make_survey(position) for position in range(size(layout))}
    for survey in found.values():
        for link in survey["links"][:4]:
            link |= {"carrier": True, "addresses": []}
    for cable in shape.cables:
        for end, (position, port) in enumerate((cable.first, cable.second)):
            for function in (0, 1):
                link = found[f"spark{position}"]["links"][2 * port + function]
                link["addresses"] = [address(cable.index, function, end)]
    return found


def by_hand(cable: int, function: int, end: int) -> str:
    return f"172.30.{2 * cable + function}.{end + 1}/24"


def bind(folder: Path, layout: str, seen: dict[str, Any], adopt: bool | None = None) -> runs.Outcome:
    outcome = runs.bind([make_inventory(layout, "home")], seen, folder, "replace", adopt=adopt)
    outcome.write()
    return outcome


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_valid_ring_keeps_its_addresses(layout: str, tmp_path: Path) -> None:
    ring = make_inventory(layout, "home", sparkring_allow_research=True)
    seen = surveys(layout, by_hand)
    lines = bind(tmp_path, layout, seen, adopt=True).lines
    assert lines[0] == "Cable 0 (primary) keeps 172.30.0.1/24 ↔ 172.30.0.2/24."
    assert len(lines) == 2 * len(ring.shape.cables)
    plan = planner.plan(ring, store.read_bindings(tmp_path, "home"))
    assert list(walker.faults(documents.to_plain(plan))) == []
    assert plan.supernet is None
    for cable in plan.cables:
        assert cable.subnets.primary == f"172.30.{2 * cable.index}.0/24"
    assert all(link.adopted for host in plan.hosts.values() for link in host.links)
    assert "what sets them there stays as it is" in summary.markdown(plan)
    # Later binds keep what was adopted; a rebind of changed hardware too.
    standing = (tmp_path / "home/bindings.json").read_text()
    assert not runs.bind([ring], seen, tmp_path, "check").changed
    bind(tmp_path, layout, seen)
    assert (tmp_path / "home/bindings.json").read_text() == standing
    bind(tmp_path, layout, seen, adopt=False)
    assert all(
        endpoint["address"] is None
        for host in json.loads((tmp_path / "home/bindings.json").read_text())["hosts"].values()
        for endpoint in host["endpoints"].values()
    )


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from(["cycle-4", "path-5", "cycle-3"]))
def test_any_consistent_scheme(data: st.DataObject, layout: str) -> None:
    """Subnets of any prefix and ends of any number, scattered; still proved and walked."""
    shape = layouts.layout(layout)
    assert shape is not None
    chosen: dict[tuple[int, int, int], str] = {}
    for cable in range(len(shape.cables)):
        for function in (0, 1):
            prefix = data.draw(st.integers(24, 30))
            ends = data.draw(st.lists(st.integers(1, (1 << (32 - prefix)) - 2), min_size=2, max_size=2, unique=True))
            block = data.draw(st.integers(0, (1 << (prefix - 24)) - 1)) << (32 - prefix)
            for end in (0, 1):
                chosen[cable, function, end] = f"10.44.{17 * cable + 3 * function}.{block + ends[end]}/{prefix}"
    ring = make_inventory(layout, "home")
    seen = surveys(layout, lambda *key: chosen[key])
    bound, _lines = adoption.adopt(ring, bindings.bind(ring, seen), seen)
    for plan in (planner.plan(ring, bound), planner.plan(ring, bound, Lost(cables=[0]))):
        assert list(walker.faults(documents.to_plain(plan))) == []


def test_cables_without_addresses_stay_the_planners(tmp_path: Path) -> None:
    seen = surveys("cycle-4", by_hand)
    for host, port in (("spark0", 0), ("spark1", 1)):
        for function in (0, 1):
            seen[host]["links"][2 * port + function]["addresses"] = []
    bind(tmp_path, "cycle-4", seen, adopt=True)
    plan = planner.plan(make_inventory("cycle-4", "home"), store.read_bindings(tmp_path, "home"))
    assert list(walker.faults(documents.to_plain(plan))) == []
    assert [cable.subnets.primary for cable in plan.cables][:2] == ["198.18.0.0/24", "172.30.2.0/24"]
    assert plan.supernet == "198.18.0.0/21"


def test_what_a_profile_of_ours_gives_is_not_adopted(tmp_path: Path) -> None:
    seen = surveys("pair", by_hand)
    for survey in seen.values():
        survey["networkmanager"] = {
            "running": True,
            "devices": {},
            "profiles": [
                {"name": "sparkring-home-x", "active_on": link["netdev"], "settings": {}} for link in survey["links"]
            ],
        }
    assert bind(tmp_path, "pair", seen, adopt=True).lines == ["Ring home has no addresses to adopt: plan gives them."]


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_adopted(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    seen = surveys("cycle-4", by_hand)
    for entry in case["change"]:
        seen[entry["host"]]["links"][entry["link"]]["addresses"] = entry["addresses"]
    with pytest.raises(RingError) as refused:
        bind(tmp_path, "cycle-4", seen, adopt=True)
    assert str(refused.value) == case["message"]
    assert not list(tmp_path.iterdir())


def test_two_adopted_rings_share_no_subnet(tmp_path: Path) -> None:
    home = make_inventory("pair", "home")
    lab = make_inventory("pair", "lab", ["a", "b"], sparkring_supernet="10.0.0.0/21")
    seen = surveys("pair", by_hand)
    other = {name: {**seen[host], "identity": name} for name, host in (("a", "spark0"), ("b", "spark1"))}
    runs.bind([home, lab], {**seen, **other}, tmp_path, "create", adopt=True).write()
    with pytest.raises(RingError, match=r"^Rings home and lab share subnet 172.30.0.0/24; give one of them another"):
        runs.plan([home, lab], tmp_path, "create")
