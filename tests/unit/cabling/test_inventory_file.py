"""The inventory that a survey writes, and the gate before a change."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils.cabling import discover, gate, inventory_file
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError

from .surveys import parse, surveys

HOSTS = ["a", "b", "c"]
VARIABLES = {
    "a": {"ansible_host": "192.0.2.1", "ansible_password": "secret", "sparkring_supernet": "198.18.8.0/21"},
    "b": {"ansible_port": 2200},
    "c": {},
}


def test_hosts_in_cable_order_and_no_password(tmp_path: Path) -> None:
    ring = {"home": discover(surveys(HOSTS, parse("a.p0-c.p1 c.p0-b.p1 b.p0-a.p1")), HOSTS)}
    inventory_file.write(inventory_file.files(tmp_path, ring, VARIABLES))
    assert (tmp_path / "hosts.yml").read_text() == (
        "---\nsparkring:\n  children:\n    home:\n      hosts:\n        a:\n          ansible_host: 192.0.2.1\n"
        "        c: {}\n        b:\n          ansible_port: 2200\n"
    )
    assert (tmp_path / "group_vars" / "home.yml").read_text() == (
        "---\nsparkring_layout: cycle-3\nsparkring_supernet: 198.18.8.0/21\n"
    )
    with pytest.raises(RingError) as refused:
        inventory_file.files(tmp_path, ring, VARIABLES)
    assert str(refused.value) == (
        f"{tmp_path}/hosts.yml exists and is not overwritten; give another sparkring_write_inventory or move it."
    )


def test_no_inventory_of_what_is_no_layout(tmp_path: Path) -> None:
    ring = {"home": discover(surveys(HOSTS, parse("a.p0-b.p0 b.p1-c.p1 c.p0-a.p1")), HOSTS)}
    with pytest.raises(RingError) as refused:
        inventory_file.files(tmp_path, ring, VARIABLES)
    assert str(refused.value) == ("Ring home: its cables make no layout, so no inventory is written; mend them first.")


def test_only_what_contradicts_stops_a_run() -> None:
    right = discover(surveys(HOSTS, parse("a.p0-b.p1 b.p0-c.p1")), HOSTS)
    assert not gate({"home": right}, {"home": "cycle-3"}, {"home": HOSTS})["failed"]
    assert not gate({"home": right}, {"home": None}, {"home": HOSTS})["failed"]
    wrong = discover(surveys(HOSTS, parse("a.p0-b.p0 b.p1-c.p1 c.p0-a.p1")), HOSTS)
    stopped = gate({"home": wrong}, {"home": "cycle-3"}, {"home": HOSTS})
    assert (stopped["failed"], stopped["sparkring_findings"]) == (True, 1)


def test_a_host_that_was_not_surveyed_stops_nothing() -> None:
    taken = surveys(HOSTS, parse("a.p0-b.p1 b.p0-c.p1 c.p0-a.p1"))
    taken["c"] = {}
    assert not gate({"home": discover(taken, HOSTS)}, {"home": "cycle-3"}, {"home": HOSTS})["failed"]
