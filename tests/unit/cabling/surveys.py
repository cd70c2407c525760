"""Surveys as hosts take them, for any list of cables; names and MACs are made up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import PRIMARY, ROLES

Plug = tuple[str, int]
Cables = Collection[tuple[Plug, Plug]]


def parse(text: str) -> list[tuple[Plug, Plug]]:
    """Cables from ``a.p0-b.p1 b.p0-c.p1``."""
    found = []
    for word in text.split():
        one, _, other = word.partition("-")
        found.append((_plug(one), _plug(other)))
    return found


def _plug(text: str) -> Plug:
    host, _, port = text.rpartition(".p")
    return host, int(port)


def netdev(port: int, function: str) -> str:
    return f"en{'' if function == PRIMARY else 'P2'}p1s0f{port}np{port}"


def surveys(
    hosts: Sequence[str],
    cables: Iterable[tuple[Plug, Plug]],
    *,
    lldp: bool = True,
    deaf: Collection[Plug] = (),
) -> dict[str, Any]:
    """One survey a host. Without ``lldp`` only IPv6 neighbours are seen; ``deaf`` ports see nothing at all."""
    joined = {end: cable for cable in cables for end in cable}
    mac = {
        (host, role.port, role.function): f"02:00:5e:{number:02x}:01:{index:02x}"
        for number, host in enumerate(sorted(hosts))
        for index, role in enumerate(ROLES)
    }
    made = {}
    for number, host in enumerate(sorted(hosts)):
        links, rdma = [], []
        rows: list[dict[str, Any]] = []
        neighbours: list[dict[str, Any]] = []
        for role in ROLES:
            own = (host, role.port)
            name = netdev(role.port, role.function)
            links.append(
                {"netdev": name, "mac": mac[host, role.port, role.function], "carrier": own in joined, "addresses": []}
            )
            rdma.append({"device": role.rdma_device, "netdev": name, "driver": "mlx5_core", "node_guid": "x"})
            if own not in joined or own in deaf:
                continue
            # On one segment are both functions of both ends; a function sees all but itself.
            for far_host, far_port in dict.fromkeys(joined[own]):
                for far in (one for one in ROLES if one.port == far_port):
                    address = mac[far_host, far_port, far.function]
                    if address == mac[host, role.port, role.function]:
                        continue
                    neighbours.append({"netdev": name, "address": f"fe80::{far_host}:{far.name}", "mac": address})
                    if lldp:
                        rows.append(
                            {
                                "netdev": name,
                                "chassis_name": far_host,
                                "chassis_id": f"02:00:5e:{sorted(hosts).index(far_host):02x}:00:00",
                                "port_id": address,
                                "port_descr": netdev(far_port, far.function),
                            }
                        )
        links.append({"netdev": "enP7s7", "mac": f"02:00:5e:{number:02x}:00:00", "carrier": True, "addresses": []})
        made[host] = {
            "schema": "sparkring.survey/1",
            "hostname": host,
            "identity": f"sha256:{number:064x}",
            "management": None,
            "links": links,
            "rdma": rdma,
            "lldp": rows,
            "ipv6_neighbours": neighbours,
            "kernel": {"release": "6.17.0"},
        }
    return made
