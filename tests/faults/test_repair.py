"""Faults that a ring mends by itself: nobody runs a playbook."""

from __future__ import annotations

import time

import pytest

from tests.faults.green import Observed
from tests.faults.objects import spoilers
from tests.virtual_ring import Ring

BOOT_SECONDS = 400
REPAIR_SECONDS = 180
"""The timer's 30 s, with what four emulated hosts on two cores need; the table at the end says the true times."""
FAST = pytest.mark.fast
"""Part of what `make test` runs."""


def reboot(observed: Observed, hosts: list[str]) -> None:
    boots = observed.each(lambda host: observed.ring.shell(host, "cat /proc/sys/kernel/random/boot_id"), hosts)
    observed.mark()
    observed.each(lambda host: observed.ring.shell(host, "systemctl reboot", must=False), hosts)
    deadline = time.monotonic() + BOOT_SECONDS
    while any(
        observed.ring.shell(host, "cat /proc/sys/kernel/random/boot_id", must=False) in ("", boots[host])
        for host in hosts
    ):
        assert time.monotonic() < deadline
        time.sleep(2)


def test_a_host_reboots(green: Observed) -> None:
    reboot(green, green.hosts[1:2])
    green.wait("one host reboots", BOOT_SECONDS)


def test_two_neighbours_reboot(green: Observed) -> None:
    reboot(green, green.hosts[1:3])
    green.wait("two neighbours reboot", BOOT_SECONDS)
    green.ring.play("verify")


def test_a_cable_is_pulled_and_plugged(green: Observed) -> None:
    green.ring.lab(state="pulled", cable=1)
    time.sleep(20)
    green.mark()
    green.ring.lab(state="plugged", cable=1)
    green.wait("a cable comes back", REPAIR_SECONDS)


@pytest.mark.parametrize("service", ["NetworkManager", "systemd-networkd"])
def test_a_network_service_restarts(green: Observed, service: str) -> None:
    green.mark()
    green.each(lambda host: green.ring.shell(host, f"systemctl restart {service}"))
    time.sleep(5)
    green.wait(f"{service} restarts on every host", REPAIR_SECONDS)


ROUNDS = [
    ["profile deleted", "profile altered", "address deleted", "link set down"],
    ["route deleted", "route altered", "sysctl altered", "forward rule deleted"],
    ["mesh route deleted", "neighbour deleted", "neighbour altered", "qdisc deleted"],
    ["filter deleted", "marker rule deleted", "marker killed", "marker stopped"],
    pytest.param(["filter altered", "unit disabled", "unit file deleted"], marks=FAST),
]


def test_every_way_to_spoil_is_tried(saved: Ring) -> None:
    tried = {name for given in ROUNDS for name in (given if isinstance(given, list) else given.values[0])}
    assert tried == set(spoilers(Observed(saved).plan(saved.hosts[0])))


@pytest.mark.parametrize("spoiled", ROUNDS, ids=lambda names: ", ".join(names))
def test_owned_objects_come_back(green: Observed, spoiled: list[str]) -> None:
    """One host for each way, all at once."""
    hosts = dict(zip(spoiled, green.hosts, strict=False))
    green.mark()
    for name, host in hosts.items():
        differ = green.spoil(host, spoilers(green.plan(host))[name])
        assert differ or name in ("marker killed", "unit file deleted"), f"{name} made no difference on {host}"
    green.wait(", ".join(spoiled), REPAIR_SECONDS)


def test_foreign_objects_are_left_alone(green: Observed) -> None:
    host = green.hosts[0]
    link = green.plan(host)["links"][0]
    command = f"ip route add 203.0.113.0/24 dev {link['netdev']} metric 5; iptables -A FORWARD -s 203.0.113.9 -j DROP"
    green.ring.shell(host, command)
    time.sleep(75)
    green.wait("a foreign route and rule", REPAIR_SECONDS)
    assert "203.0.113.0/24" in green.ring.shell(host, "ip route show")
    assert "203.0.113.9" in green.ring.shell(host, "iptables -w -S FORWARD")
