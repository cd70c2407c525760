"""Which port and function a device is, whatever it is called."""

from __future__ import annotations

from typing import Any

from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor.examine import by_subnets
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor.ring import ports_of
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.survey import Survey

from .healthy import Healthy

PLACES = [(0, "primary"), (0, "secondary"), (1, "primary"), (1, "secondary")]


def survey(**renamed: str) -> dict[str, Any]:
    """A host of a pair whose netdevs and RDMA devices have other names."""
    made: dict[str, Any] = Healthy("pair", "foreign").surveys["sr0"]
    for number, device in enumerate(made["rdma"]):
        device["device"] = f"mlx5_{number}"
        for link in made["links"]:
            if link["netdev"] == device["netdev"] in renamed:
                link["netdev"] = device["netdev"] = renamed[device["netdev"]]
                break
    return made


def places(document: dict[str, Any]) -> list[tuple[int, str]]:
    return list(ports_of("sr0", Survey.model_validate(document)))


def test_the_netdev_names_tell_when_the_devices_do_not() -> None:
    assert places(survey()) == PLACES


def test_the_pci_functions_tell_when_no_name_does() -> None:
    document = survey(enp1s0f0np0="eth2", enP2p1s0f0np0="eth3", enp1s0f1np1="eth4", enP2p1s0f1np1="eth5")
    assert places(document) == PLACES
    ports = ports_of("sr0", Survey.model_validate(document))
    assert [port.netdev for port in ports.values()] == ["eth2", "eth3", "eth4", "eth5"]


def test_other_cards_are_no_ports() -> None:
    document = survey()
    document["rdma"][0]["driver"] = "irdma"
    assert places(document) == PLACES[1:]


def test_cables_are_inferred_from_subnets_only_where_two_hosts_share_one() -> None:
    ring = Healthy("cycle-4", "foreign")
    hosts = {host: Survey.model_validate(document) for host, document in ring.surveys.items()}
    ports = [port for host, document in hosts.items() for port in ports_of(host, document).values()]
    assert sorted(by_subnets(ports)) == [
        (("sr0", 0), ("sr1", 1)),
        (("sr0", 1), ("sr3", 0)),
        (("sr1", 0), ("sr2", 1)),
        (("sr2", 0), ("sr3", 1)),
    ]
    assert by_subnets(ports[:4]) == []
