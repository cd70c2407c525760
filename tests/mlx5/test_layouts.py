"""Every marker process of every layout asks of the NIC exactly what the plan says."""

from __future__ import annotations

import json

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import markers
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import Inventory, InventoryHost

from .conftest import Marker
from .wire import create_calls, hold

LAYOUTS = ["pair", *[f"{kind}-{size}" for kind in ("path", "cycle") for size in range(3, 9)]]
COUNTS = {
    "pair": (0, 0),
    "cycle-3": (0, 0),
    "cycle-4": (16, 16),
    "cycle-5": (20, 20),
    "cycle-6": (48, 24),
    "cycle-7": (56, 28),
    "cycle-8": (96, 32),
    "path-3": (4, 4),
    "path-4": (12, 8),
    "path-5": (24, 12),
    "path-6": (40, 16),
}
"""Marker rules and marker processes of the whole ring."""

HEAD_RULES = {
    "cycle-4": {
        "rocep1s0f0": {"198.18.2.2": "0x88b5"},
        "roceP2p1s0f0": {"198.18.3.2": "0x88b5"},
        "rocep1s0f1": {"198.18.4.1": "0x88b5"},
        "roceP2p1s0f1": {"198.18.5.1": "0x88b5"},
    },
    "cycle-6": {
        "rocep1s0f0": {"198.18.2.2": "0x88b5", "198.18.4.2": "0x88b6"},
        "roceP2p1s0f0": {"198.18.3.2": "0x88b5", "198.18.5.2": "0x88b6"},
        "rocep1s0f1": {"198.18.8.1": "0x88b5", "198.18.6.1": "0x88b6"},
        "roceP2p1s0f1": {"198.18.9.1": "0x88b5", "198.18.7.1": "0x88b6"},
    },
    "path-4": {
        "rocep1s0f0": {"198.18.2.2": "0x88b5", "198.18.4.2": "0x88b6"},
        "roceP2p1s0f0": {"198.18.3.2": "0x88b5", "198.18.5.2": "0x88b6"},
    },
}
"""Rules of position 0, worked out by hand from cabling and addressing."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_marker_of_a_layout(native: Marker, layout: str) -> None:
    size = 2 if layout == "pair" else int(layout.rpartition("-")[2])
    hosts = [InventoryHost(name=f"spark{position}", address=f"10.0.0.{position + 1}") for position in range(size)]
    plan = planner.plan(Inventory(ring="bench", layout=layout, allow_research=True, hosts=hosts), None)
    found: dict[str, dict[str, dict[str, str]]] = {}
    for host in plan.hosts.values():
        for device in sorted({rule.rdma_device for rule in host.marker_rules}):
            native.recording.unlink(missing_ok=True)
            planned = [
                markers.Rule(rule.netdev, rule.destination, rule.tag)
                for rule in host.marker_rules
                if rule.rdma_device == device
            ]
            rules = {rule.destination: rule.tag for rule in planned}
            command = [*markers.compiled_command(device, planned)[1:], "--managed"]
            devices = ",".join(f"{link.rdma_device}:mlx5" for link in host.links)
            line, error, status = hold(native, *command, devices=devices)
            assert (status, error) == (0, "")
            addresses = {address: bytes(map(int, address.split("."))).hex() for address in rules}
            assert native.calls("create_matcher", "create_action", "create_flow") == create_calls(rules, addresses)
            assert native.calls("open") == [{"call": "open", "device": device}]
            assert json.loads(line) == {"device": device, "rules": rules, "installed": len(rules)}
            found.setdefault(host.host, {})[device] = rules
    if layout in COUNTS:
        processes = [rules for devices in found.values() for rules in devices.values()]
        assert (sum(map(len, processes)), len(processes)) == COUNTS[layout]
    if layout in HEAD_RULES:
        assert found["spark0"] == HEAD_RULES[layout]
