"""Docker beside the fabric: its own chains, its restarts and both iptables backends leave forwarding whole."""

from __future__ import annotations

import json
import time

import pytest

from tests.virtual_ring import LAB, Ring

RECONCILED_SECONDS = 120
"""The timer's 30 s, and what an emulated host needs besides."""


@pytest.fixture(scope="module")
def docker_host(ring: Ring) -> str:
    """A host of the set-up ring with the Docker Engine."""
    ring.play("prepare")
    ring.play("mesh_setup")
    host = ring.hosts[1]
    ring.shell(host, "apt-get update -q && apt-get install -yq --no-install-recommends docker.io", seconds=600)
    return host


def forward_rules(ring: Ring, host: str) -> list[tuple[str, str]]:
    plan = json.loads((LAB / "plans" / "lab" / "hosts" / f"{host}.json").read_text())
    return sorted((rule["ingress"], rule["egress"]) for rule in plan["forward_rules"])


def laid(ring: Ring, host: str, chain: str) -> list[tuple[str, str]]:
    """Our rules in a chain, as ingress and egress."""
    found = []
    for line in ring.shell(host, f"iptables -w -S {chain}", must=False).splitlines():
        words = line.split()
        if "sparkring.cluster" in words:
            found.append((words[words.index("-i") + 1], words[words.index("-o") + 1]))
    return sorted(found)


def wait_for_rules(ring: Ring, host: str) -> None:
    """Until every planned rule is in Docker's own chain for users, where Docker lets others' rules be."""
    deadline = time.monotonic() + RECONCILED_SECONDS
    while laid(ring, host, "DOCKER-USER") != forward_rules(ring, host):
        assert time.monotonic() < deadline, ring.shell(host, "iptables -S; journalctl -n 40 -u 'sparkring-node-*'")
        time.sleep(3)
    assert laid(ring, host, "FORWARD") == []


@pytest.mark.parametrize("backend", ["nft", "legacy"])
def test_rules_survive_docker(ring: Ring, docker_host: str, backend: str) -> None:
    ring.shell(
        docker_host,
        "systemctl stop docker.socket docker; iptables -F DOCKER-USER; iptables -F FORWARD; iptables -P FORWARD ACCEPT;"
        f"update-alternatives --set iptables /usr/sbin/iptables-{backend}; systemctl start docker",
        seconds=300,
    )
    wait_for_rules(ring, docker_host)
    ring.shell(docker_host, "systemctl restart docker", seconds=300)
    wait_for_rules(ring, docker_host)
    assert "-P FORWARD DROP" in ring.shell(docker_host, "iptables -w -S FORWARD")


def test_rules_come_back_in_boot_order(ring: Ring, docker_host: str) -> None:
    ring.each("ansible.builtin.reboot", "reboot_timeout=400", pattern=docker_host)
    wait_for_rules(ring, docker_host)
    ring.play("verify")
