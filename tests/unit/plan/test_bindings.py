"""Surveys become bindings, and a survey that shows other hardware is named in sentences."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import bindings, inventory
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from tests.rings import make_bindings, make_inventory, make_survey

INVENTORY = make_inventory("cycle-4")


def surveys() -> dict[str, Any]:
    return {f"spark{position}": make_survey(position) for position in range(4)}


def test_a_healthy_ring() -> None:
    assert bindings.bind(INVENTORY, surveys()) == make_bindings(INVENTORY)


def test_other_rdma_names_are_placed_by_their_netdev() -> None:
    seen = surveys()
    for index, device in enumerate(seen["spark1"]["rdma"]):
        device["device"] = f"mlx5_{index}"
    bound = bindings.bind(INVENTORY, seen).hosts["spark1"].endpoints
    assert {role: endpoint.rdma_device for role, endpoint in bound.items()} == {
        "cw_primary": "mlx5_0",
        "cw_secondary": "mlx5_1",
        "ccw_primary": "mlx5_2",
        "ccw_secondary": "mlx5_3",
    }


def test_the_rdma_name_goes_before_the_netdev_name() -> None:
    """Roles hang on RDMA device names; a renamed netdev changes nothing but its name."""
    seen = surveys()
    for part in ("links", "rdma"):
        seen["spark0"][part][0]["netdev"] = "cable0"
    assert bindings.bind(INVENTORY, seen).hosts["spark0"].endpoints["cw_primary"].netdev == "cable0"


def test_virtual_hosts() -> None:
    seen = surveys()
    for survey in seen.values():
        for device in survey["rdma"]:
            device["driver"] = "rdma_rxe"
        for link in survey["links"]:
            link["bdf"] = None
    assert bindings.bind(INVENTORY, seen) == make_bindings(INVENTORY, ["virtual"])


def test_a_path_end_needs_only_its_cabled_port() -> None:
    """And what it does not need may be enslaved: it will not be touched."""
    given = make_inventory("path-3")
    seen = surveys()
    seen["spark0"]["links"][2]["master"] = "br0"
    seen["spark0"]["rdma"] = seen["spark0"]["rdma"][:3]
    assert set(bindings.bind(given, seen).hosts["spark0"].endpoints) == {"cw_primary", "cw_secondary", "ccw_primary"}


def test_a_switched_ring_needs_the_roles_it_names() -> None:
    given = make_switched()
    seen = surveys()
    seen["spark1"]["rdma"] = seen["spark1"]["rdma"][1:]
    with pytest.raises(RingError, match=r"^spark1: no RDMA device for cw_primary \(rocep1s0f0\)"):
        bindings.bind(given, seen)


def make_switched() -> inventory.Inventory:
    hosts = [(f"spark{place}", {"sparkring_endpoints": {"cw_primary": f"10.9.0.{place + 1}/24"}}) for place in range(2)]
    return inventory.read("home", {"sparkring_layout": "switched"}, hosts)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["management"], None, "spark1: no management interface was found; set sparkring_management_interface."),
        (["rdma", 0, "driver"], "irdma", "spark1: rocep1s0f0 has driver irdma; SparkRing knows mlx5_core, rdma_rxe."),
        (
            ["rdma", 0, "driver"],
            "rdma_rxe",
            "spark1: its fabric devices have different drivers (mlx5, virtual); use one kind.",
        ),
        (
            ["rdma", 0, "netdev"],
            None,
            "spark1: rocep1s0f0 has no network interface; see that the card's driver is loaded.",
        ),
        (
            ["rdma", 1, "device"],
            "rocep1s0f0",
            "spark1: rocep1s0f0 and rocep1s0f0 both look like cw_primary; give the devices their DGX OS names.",
        ),
        (["links"], "none", "spark1: its survey is damaged at links (input should be a valid list); run survey again."),
    ],
)
def test_refused(path: list[Any], value: Any, message: str) -> None:
    seen = surveys()
    place: Any = seen["spark1"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(RingError) as caught:
        bindings.bind(INVENTORY, seen)
    assert str(caught.value) == message


def test_a_host_that_was_not_surveyed() -> None:
    seen = surveys()
    del seen["spark3"]
    with pytest.raises(RingError, match=r"^Ring ring: spark3 was not surveyed; run this for the whole ring\.$"):
        bindings.bind(INVENTORY, seen)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            ["spark2", "links", 0, "mac"],
            "02:00:5e:00:99:01",
            "spark2: rocep1s0f0 now carries MAC 02:00:5e:00:99:01, bindings say 02:00:5e:00:02:01; "
            "run rebind to accept the new hardware.",
        ),
        (
            ["spark2", "links", 3, "bdf"],
            "0003:01:00.1",
            "spark2: roceP2p1s0f1 now carries PCI function 0003:01:00.1, bindings say 0002:01:00.1; "
            "run rebind to accept the new hardware.",
        ),
        (
            ["spark0", "identity"],
            "0" * 32,
            "spark0: the machine that answers has identity 00000000000000000000000000000000, "
            "bindings say ff9153350b0bdededc111e087d6f3202; run rebind to accept the new hardware.",
        ),
        (
            ["spark3", "management", "address"],
            "192.168.1.99",
            "spark3: it is administered by enP7s7 192.168.1.99/24, bindings say enP7s7 192.168.1.23/24; "
            "run rebind to accept it.",
        ),
    ],
)
def test_differences(path: list[Any], value: Any, sentence: str) -> None:
    seen = surveys()
    before = bindings.bind(INVENTORY, copy.deepcopy(seen))
    assert bindings.differences(before, bindings.bind(INVENTORY, seen)) == []
    place: Any = seen
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert bindings.differences(before, bindings.bind(INVENTORY, seen)) == [sentence]


def test_a_device_that_vanished_or_came() -> None:
    given = make_inventory("path-3")
    whole = bindings.bind(given, surveys())
    seen = surveys()
    seen["spark0"]["rdma"] = seen["spark0"]["rdma"][:3]
    less = bindings.bind(given, seen)
    assert bindings.differences(whole, less) == [
        "spark0: roceP2p1s0f1 (ccw_secondary) is missing, bindings say enP2p1s0f1np1; "
        "repair it or run rebind to accept the new hardware."
    ]
    assert bindings.differences(less, whole) == [
        "spark0: roceP2p1s0f1 is new as ccw_secondary; run rebind to accept the new hardware."
    ]
