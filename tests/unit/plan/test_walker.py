"""The walker passes every plan, and catches every planted fault."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner
from tests import walker
from tests.rings import LAYOUTS, make_bindings, make_inventory

Plan = dict[str, Any]
Mutant = tuple[str, Plan]


def plan_of(layout: str, driver: str = "mlx5") -> Plan:
    given = make_inventory(layout)
    plain: Plan = documents.to_plain(planner.plan(given, make_bindings(given, [driver])))
    return plain


@pytest.mark.parametrize("driver", ["mlx5", "virtual"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_packet_arrives(layout: str, driver: str) -> None:
    assert list(walker.faults(plan_of(layout, driver))) == []


def off_by_one(tag: str) -> list[str]:
    value = int(tag, 16)
    return (
        ["0x88b5"] if value == 0x0800 else [f"0x{value + 1:04x}", "0x0800" if value == 0x88B5 else f"0x{value - 1:04x}"]
    )


def sibling(netdev: str) -> str:
    return netdev.replace("enP2p", "enp") if "P2" in netdev else netdev.replace("enp", "enP2p")


def opposite(netdev: str) -> str:
    return netdev.replace("f0np0", "f?np?").replace("f1np1", "f0np0").replace("f?np?", "f1np1")


# (list, field): what the field may wrongly become.
WRONG: dict[tuple[str, str], Callable[[str], list[str]]] = {
    ("routes", "via"): lambda value: [value.rpartition(".")[0] + ".9"],
    ("routes", "netdev"): lambda value: [sibling(value), opposite(value)],
    ("sysctls", "value"): lambda value: ["0" if value == "1" else "1"],
    ("forward_rules", "egress"): lambda value: [sibling(value), opposite(value)],
    ("mesh_routes", "netdev"): lambda value: [sibling(value)],
    ("mesh_routes", "source"): lambda value: [value.rpartition(".")[0] + ".7"],
    ("neighbours", "mac"): lambda value: [value[:-2] + "ee", value[:-2] + f"{(int(value[-1]) % 4) + 1:02x}"],
    ("neighbours", "netdev"): lambda value: [sibling(value)],
    ("filters", "tag"): off_by_one,
    ("filters", "set_tag"): off_by_one,
    ("filters", "set_mac"): lambda value: [value[:-2] + "ee", value[:-2] + f"{(int(value[-1]) % 4) + 1:02x}"],
    ("filters", "egress"): lambda value: [opposite(value)],
    ("marker_rules", "tag"): off_by_one,
    ("marker_rules", "rdma_device"): lambda value: [value + "x"],
}
REMOVED = ("routes", "sysctls", "forward_rules", "mesh_routes", "neighbours", "qdiscs", "filters", "marker_rules")


def mutants(plan: Plan) -> Iterator[Mutant]:
    """Every single object removed, and every single field of it wrong."""
    for name in plan["hosts"]:
        for part in REMOVED:
            for index, item in enumerate(plan["hosts"][name][part]):
                broken = copy.deepcopy(plan)
                del broken["hosts"][name][part][index]
                yield f"{name} without {item['id']}", broken
        for (part, field), wrong in WRONG.items():
            for index, item in enumerate(plan["hosts"][name][part]):
                for value in wrong(item[field]):
                    broken = copy.deepcopy(plan)
                    broken["hosts"][name][part][index][field] = value
                    yield f"{name} {item['id']} {field} {value}", broken


@pytest.mark.parametrize("layout", ["path-3", "cycle-4", "path-5"])
def test_every_single_fault_is_caught(layout: str) -> None:
    survivors = []
    count = 0
    for what, broken in mutants(plan_of(layout)):
        count += 1
        if next(walker.faults(broken), None) is None:
            survivors.append(what)
    assert survivors == []
    assert count > 100


def without_way_back(plan: Plan) -> None:
    target = plan["hosts"]["spark0"]["mesh_routes"][0]["source"]
    host = plan["hosts"]["spark2"]
    for part, field in (("mesh_routes", "destination"), ("neighbours", "address"), ("marker_rules", "destination")):
        host[part] = [item for item in host[part] if item[field].partition("/")[0] != target]


def swapped_egress(plan: Plan) -> None:
    filters = plan["hosts"]["spark1"]["filters"]
    first, second = filters[0], next(item for item in filters if item["netdev"] == opposite(filters[0]["netdev"]))
    first["egress"], second["egress"] = second["egress"], first["egress"]
    first["set_mac"], second["set_mac"] = second["set_mac"], first["set_mac"]


def crossed_cable(plan: Plan) -> None:
    plan["cables"][0]["b"]["port"] = 1 - plan["cables"][0]["b"]["port"]


def one_address_twice(plan: Plan) -> None:
    plan["hosts"]["spark1"]["links"][0]["address"] = plan["hosts"]["spark0"]["links"][0]["address"]


def two_filters(plan: Plan) -> None:
    filters = plan["hosts"]["spark1"]["filters"]
    filters.append(dict(filters[0], id="again"))


def foreign_preference(plan: Plan) -> None:
    plan["hosts"]["spark1"]["filters"][0]["preference"] = 11


def software_relay(plan: Plan) -> None:
    plan["hosts"]["spark1"]["filters"][0]["in_nic"] = False


def lane_by_another_relay(plan: Plan) -> None:
    lanes = [lane for lane in plan["hosts"]["spark0"]["lanes"] if lane["relays"]]
    lanes[0]["relays"][0]["host"] = "spark3"


@pytest.mark.parametrize(
    "spoil",
    [
        without_way_back,
        swapped_egress,
        crossed_cable,
        one_address_twice,
        two_filters,
        foreign_preference,
        software_relay,
        lane_by_another_relay,
    ],
)
def test_planted_faults_are_caught(spoil: Callable[[Plan], None]) -> None:
    plan = plan_of("cycle-6")
    spoil(plan)
    assert list(walker.faults(plan)) != []
