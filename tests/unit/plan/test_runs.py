"""What a run reads, refuses and writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import inventory, planner, runs
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from tests.rings import make_inventory, make_survey

VARIABLES = {f"spark{place}": {"sparkring_layout": "cycle-4"} for place in range(4)}
GROUPS = [("home", list(VARIABLES))]


def surveys(count: int = 4) -> dict[str, Any]:
    return {f"spark{position}": make_survey(position) for position in range(count)}


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_offline_then_bound(tmp_path: Path) -> None:
    rings = [make_inventory("cycle-4", "home")]
    offline = runs.plan(rings, tmp_path, "create")
    assert offline.changed and not files(tmp_path)
    offline.write()
    assert set(files(tmp_path)) == {
        *(f"home/{name}" for name in ("ring.json", "README.md", "ring.svg")),
        *(f"home/hosts/spark{place}.json" for place in range(4)),
    }
    plan = offline.documents["rings"]["home"]
    assert not plan["bound"]
    assert plan["blockers"] == ["Ring home is not bound to hardware: run bind, then plan."]
    assert {link["mac"] for host in plan["hosts"].values() for link in host["links"]} == {""}
    assert not runs.plan(rings, tmp_path, "create").changed

    runs.bind(rings, surveys(), tmp_path, "create").write()
    with pytest.raises(RingError, match=r"^Ring home: the plan in .* differs \(blockers: .*run plan to accept it\.$"):
        runs.plan(rings, tmp_path, "create")
    bound = runs.plan(rings, tmp_path, "replace")
    bound.write()
    assert bound.documents["rings"]["home"]["bound"] and bound.documents["rings"]["home"]["blockers"] == []
    assert bound.documents["plans"] == bound.documents["rings"]["home"]["hosts"]
    assert json.loads(files(tmp_path)["home/hosts/spark2.json"]) == bound.documents["plans"]["spark2"]
    assert not runs.plan(rings, tmp_path, "check").changed
    assert not runs.bind(rings, surveys(), tmp_path, "check").changed


@pytest.mark.parametrize("layout", ["cycle-4", "path-6"])
def test_only_an_applicable_plan_when_asked(layout: str, tmp_path: Path) -> None:
    ring = make_inventory(layout, "home")
    runs.bind([ring], surveys(6), tmp_path, "create").write()
    if layout == "cycle-4":
        assert runs.plan([ring], tmp_path, "create", applicable=True).changed
        with pytest.raises(RingError, match=r"^Ring home is not bound to hardware: run bind, then plan\.$"):
            runs.plan([ring], tmp_path / "elsewhere", "create", applicable=True)
    else:
        with pytest.raises(
            RingError, match=r"^Ring home needs 4 relays .* set sparkring_allow_research to accept that\.$"
        ):
            runs.plan([ring], tmp_path, "create", applicable=True)


def test_twice_the_same_bytes(tmp_path: Path) -> None:
    rings = [make_inventory("cycle-6", "home")]
    runs.plan(rings, tmp_path / "a", "create").write()
    runs.plan(rings, tmp_path / "b", "create").write()
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_check_needs_documents(tmp_path: Path) -> None:
    rings = [make_inventory("pair", "home")]
    with pytest.raises(RingError, match=r"^Ring home: there is no plan in .*/home; run plan\.$"):
        runs.plan(rings, tmp_path, "check")
    with pytest.raises(RingError, match=r"^Ring home: there are no bindings in .*/home; run bind\.$"):
        runs.bind(rings, surveys(2), tmp_path, "check")


def test_a_host_that_left_loses_its_file(tmp_path: Path) -> None:
    runs.plan([make_inventory("cycle-4", "home")], tmp_path, "create").write()
    smaller = runs.plan([make_inventory("cycle-3", "home")], tmp_path, "replace")
    assert {"before_header", "after_header", "before", "after"} == set(smaller.diff()[0])
    assert [Path(entry["after_header"]).name for entry in smaller.diff() if not entry["after"]] == ["spark3.json"]
    smaller.write()
    assert "home/hosts/spark3.json" not in files(tmp_path)


def test_a_view_alone_is_drawn_again(tmp_path: Path) -> None:
    rings = [make_inventory("pair", "home")]
    runs.plan(rings, tmp_path, "create").write()
    before = files(tmp_path)
    (tmp_path / "home/README.md").unlink()
    (tmp_path / "home/ring.svg").write_text("scribble")
    again = runs.plan(rings, tmp_path, "create")
    assert again.changed and again.diff() == []
    again.write()
    assert files(tmp_path) == before


def test_one_bad_ring_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab/bindings.json").write_text("{")
    rings = [
        make_inventory("pair", "home"),
        make_inventory("pair", "lab", ["a", "b"], sparkring_supernet="10.0.0.0/21"),
    ]
    with pytest.raises(RingError, match=r"lab/bindings.json is not JSON; restore it or delete it\.$"):
        runs.plan(rings, tmp_path, "replace")
    assert not (tmp_path / "home").exists()


def test_two_rings_are_planned_apart(tmp_path: Path) -> None:
    home = make_inventory("pair", "home")
    lab = make_inventory("cycle-3", "lab", ["a", "b", "c"], sparkring_supernet="10.0.0.0/21")
    outcome = runs.plan([home, lab], tmp_path, "create")
    assert outcome.documents["rings"]["lab"] == documents.to_plain(planner.plan(lab, None))
    assert set(outcome.documents["plans"]) == {"spark0", "spark1", "a", "b", "c"}


def test_plan_reads_back() -> None:
    plan = planner.plan(make_inventory("cycle-4"), None)
    assert RingPlan.from_plain(json.loads(documents.to_text(plan))) == plan
    with pytest.raises(ValueError, match=r"^schema: sparkring.plan/1 is needed, not x$"):
        RingPlan.from_plain({**documents.to_plain(plan), "schema": "x"})


@pytest.mark.parametrize(
    ("hosts", "chosen"),
    [
        (["localhost"], ["home", "lab"]),
        (["spark0", "spark1"], ["home"]),
        (["a", "b", "spark0", "spark1"], ["home", "lab"]),
    ],
)
def test_a_run_takes_the_rings_it_holds(hosts: list[str], chosen: list[str]) -> None:
    variables = {
        **{name: {"sparkring_layout": "pair"} for name in ("spark0", "spark1")},
        **{name: {"sparkring_layout": "pair", "sparkring_supernet": "10.0.0.0/21"} for name in ("a", "b")},
    }
    groups = [("home", ["spark0", "spark1"]), ("lab", ["a", "b"])]
    assert [ring.ring for ring in runs.choose(groups, variables, [], hosts)] == chosen


def test_inventory_directory(tmp_path: Path) -> None:
    for name in ("hosts.yml", "extra.ini", "README.md"):
        (tmp_path / name).touch()
    (tmp_path / "group_vars").mkdir()
    assert len(runs.choose(GROUPS, VARIABLES, [str(tmp_path), "spark0,"], list(VARIABLES))) == 1
    (tmp_path / "receipts").mkdir()
    with pytest.raises(
        RingError, match=r"holds receipts, which is not inventory; move it out or give -i .*hosts.yml\.$"
    ):
        runs.choose(GROUPS, VARIABLES, [str(tmp_path)], list(VARIABLES))


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"sparkring_allow_research": "perhaps"}, "allow_research is wrong"),
        ({"sparkring_layout": 4}, "layout is wrong"),
    ],
)
def test_wrong_kinds(variables: dict[str, Any], message: str) -> None:
    with pytest.raises(RingError, match=rf"^Ring home: {message} \(.*\); correct it in the inventory\.$"):
        inventory.read("home", {"sparkring_layout": "pair", **variables}, [("a", {}), ("b", {})])


def switched(**changes: dict[str, str]) -> inventory.Inventory:
    endpoints = {
        f"spark{place}": {"cw_primary": f"10.9.0.{place + 1}/24", "ccw_primary": f"10.9.1.{place + 1}/24"}
        for place in range(3)
    }
    hosts = [(name, {"sparkring_endpoints": changes.get(name, value)}) for name, value in endpoints.items()]
    return inventory.read("home", {"sparkring_layout": "switched"}, hosts)


def test_switched_lays_nothing_and_checks_all_pairs() -> None:
    plan = planner.plan(switched(), None)
    assert plan.supernet is None and plan.cables == [] and plan.queues == []
    for host in plan.hosts.values():
        laid = (host.links, host.routes, host.sysctls, host.forward_rules, host.mesh_routes, host.neighbours)
        assert not any((*laid, host.qdiscs, host.filters, host.marker_rules, host.units))
        assert len(host.lanes) == 4
        assert [check.subject for check in host.checks] == [
            f"10.9.{net}.{place + 1}" for net in (0, 1) for place in range(3) if place != host.position
        ]
    lane = plan.hosts["spark0"].lanes[3]
    assert (lane.id, lane.source.address, lane.target.address) == ("lane/spark0>spark2/1", "10.9.1.1", "10.9.1.3")


@pytest.mark.parametrize(
    ("endpoints", "message"),
    [
        ({}, "spark1 has no sparkring_endpoints; give role: address/prefix for each"),
        ({"left": "10.9.0.2/24"}, "spark1 has endpoint left; the roles are cw_primary"),
        ({"cw_primary": "here"}, "address here of spark1 cw_primary is wrong; write it like 192.0.2.1/24"),
        ({"cw_primary": "10.9.0.1/24"}, "spark0 cw_primary and spark1 cw_primary have the same address 10.9.0.1"),
        ({"cw_primary": "10.9.0.2/24"}, "the hosts' sparkring_endpoints have different roles; give all hosts the same"),
    ],
)
def test_switched_endpoints_refused(endpoints: dict[str, str], message: str) -> None:
    with pytest.raises(RingError, match="^Ring home: " + message):
        switched(spark1=endpoints)
