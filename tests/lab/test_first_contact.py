"""First contact: a user with nothing but a password, a host key that nobody has pinned yet."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from ansible_collections.sparkring.cluster.plugins.module_utils.lab import guest
from tests.virtual_ring import LAB, Ring


def fingerprint(known_hosts: Path, port: int) -> str:
    """SHA256 fingerprint of the ed25519 key that the lab gave the host at a port."""
    entry = next(line for line in known_hosts.read_text().splitlines() if f"]:{port} ssh-ed25519" in line)
    done = subprocess.run(
        ["ssh-keygen", "-l", "-f", "-"], input=entry.split(" ", 1)[1], text=True, capture_output=True, check=True
    )
    return done.stdout.split()[1]


def test_a_password_is_enough_once(ring: Ring, tmp_path: Path) -> None:
    assert shutil.which("sshpass"), "run `apt-get install -y sshpass`: ansible hands passwords to ssh by it"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    pinned = tmp_path / "known_hosts"
    options = f"-o UserKnownHostsFile={pinned} -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes"
    inventory = tmp_path / "hosts.yml"
    hosts = ""
    for port, host in enumerate(ring.hosts, start=2200):
        shown = fingerprint(LAB / "known_hosts", port)
        hosts += f"        {host}: {{ansible_port: {port}, sparkring_host_fingerprints: ['{shown}']}}\n"
    inventory.write_text(
        f"""sparkring:
  children:
    lab:
      hosts:
{hosts}      vars:
        ansible_host: 127.0.0.1
        ansible_user: {guest.NEWCOMER}
        ansible_ssh_common_args: "{options}"
        ansible_python_interpreter: /usr/bin/python3
        sparkring_known_hosts: {pinned}
        sparkring_operator_key: {tmp_path}/key.pub
        sparkring_passwordless_sudo: true
"""
    )
    secrets = tmp_path / "secrets.yml"
    secrets.write_text(f"ansible_password: {guest.PASSWORD}\nansible_become_password: {guest.PASSWORD}\n")
    secrets.chmod(0o600)
    ring.run(
        True,
        playbook="playbooks/prepare.yml",
        inventory=str(inventory),
        cmdline=f"-e @{secrets}",
    )
    assert len(pinned.read_text().splitlines()) == len(ring.hosts)
    again = ring.run(
        True, playbook="playbooks/prepare.yml", inventory=str(inventory), cmdline=f"--private-key {tmp_path}/key"
    )
    assert again.changed() == []
