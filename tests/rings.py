"""Inventories, bindings and surveys made up for tests: nothing here is a real host's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import ROLES
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import bindings, inventory, layouts
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.bindings import Bindings
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import Inventory

LAYOUTS = [name for name in layouts.NAMES if name != layouts.SWITCHED]


def size(layout: str) -> int:
    shape = layouts.layout(layout)
    assert shape is not None and shape.size is not None
    return shape.size


def make_inventory(layout: str, ring: str = "ring", names: Sequence[str] = (), **variables: Any) -> Inventory:
    names = names or [f"spark{position}" for position in range(size(layout))]
    hosts = [(name, {"ansible_host": f"192.168.1.{20 + place}"}) for place, name in enumerate(names)]
    return inventory.read(ring, {"sparkring_layout": layout, **variables}, hosts)


def mac(position: int, role: int) -> str:
    return f"02:00:5e:00:{position:02x}:{role + 1:02x}"


def make_bindings(given: Inventory, drivers: Sequence[str] = ("mlx5",)) -> Bindings:
    hosts = {}
    for position, host in enumerate(given.hosts):
        driver = drivers[position % len(drivers)]
        hosts[host.name] = {
            "identity": hashlib.sha256(host.name.encode()).hexdigest()[:32],
            "driver": driver,
            "management": {"netdev": "enP7s7", "address": f"192.168.1.{20 + position}", "prefix": 24},
            "endpoints": {
                role.name: {
                    "netdev": role.netdev,
                    "rdma_device": role.rdma_device,
                    "mac": mac(position, index),
                    "bdf": f"000{2 * (index % 2)}:01:00.{role.port}" if driver == "mlx5" else None,
                }
                for index, role in enumerate(ROLES)
            },
        }
    return bindings.read(given.ring, {"schema": "sparkring.bindings/1", "ring": given.ring, "hosts": hosts})


def make_survey(position: int, **changes: Any) -> dict[str, Any]:
    """What a healthy host shows; ``changes`` replace whole parts."""
    netdevs: list[dict[str, Any]] = [
        {
            "netdev": role.netdev,
            "mac": mac(position, index),
            "mtu": 1500,
            "bdf": f"000{2 * (index % 2)}:01:00.{role.port}",
            "driver": "mlx5_core",
            "master": None,
        }
        for index, role in enumerate(ROLES)
    ]
    lan = {"netdev": "enP7s7", "mac": mac(position, 8), "mtu": 1500, "driver": "r8127"}
    netdevs.append({**lan, "bdf": "0007:01:00.0", "master": None, "addresses": [f"192.168.1.{20 + position}/24"]})
    return {
        "schema": "sparkring.survey/1",
        "hostname": f"spark{position}",
        "identity": hashlib.sha256(f"spark{position}".encode()).hexdigest()[:32],
        "management": {"netdev": "enP7s7", "address": f"192.168.1.{20 + position}", "prefix": 24},
        "links": netdevs,
        "rdma": [
            {"device": role.rdma_device, "netdev": role.netdev, "node_guid": "", "driver": "mlx5_core"}
            for role in ROLES
        ],
        **changes,
    }
