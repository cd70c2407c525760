"""Keys, identity disks and the inventory."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import yaml

from ansible_collections.sparkring.cluster.plugins.module_utils.lab import identity
from ansible_collections.sparkring.cluster.plugins.module_utils.lab import layout as names

LAYOUT = names.parse("path-3")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def make_key(command: list[str]) -> str:
        key = Path(command[-1])
        key.write_text(f"private {key}\n")
        key.with_suffix(".pub").write_text(f"ssh-ed25519 {key.parent.name}KEY sparkring-lab\n")
        return ""

    monkeypatch.setattr(identity, "run", make_key)
    return tmp_path


def test_identity_is_each_hosts_own_and_stays(lab: Path) -> None:
    tars = identity.write(str(lab), LAYOUT)
    assert identity.write(str(lab), LAYOUT) == tars
    seen = set()
    for host, content in enumerate(tars):
        assert (lab / "hosts" / f"spark{host}" / "identity.tar").read_bytes() == content
        assert len(content) % 512 == 0, "a disk's sectors must hold it"
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            members = {member.name: member for member in tar}
            files = {name: tar.extractfile(member) for name, member in members.items() if member.isfile()}
            texts = {name: file.read().decode() for name, file in files.items() if file is not None}
        assert texts["etc/hostname"] == f"spark{host}\n"
        assert members["etc/ssh/ssh_host_ed25519_key"].mode == 0o600
        assert members["home/operator/.ssh/authorized_keys"].uid == 1000
        assert texts["home/operator/.ssh/authorized_keys"] == "ssh-ed25519 keysKEY sparkring-lab\n"
        assert list(members)[-1] == "etc/machine-id", "its presence says that the rest was unpacked"
        assert len(texts["etc/machine-id"]) == 33
        assert "10.99.0.12 spark2\n" in texts["etc/hosts"]
        seen.add(texts["etc/machine-id"])
    assert len(seen) == LAYOUT.size


def test_inventory_is_ordinary(lab: Path) -> None:
    identity.write(str(lab), LAYOUT)
    inventory = yaml.safe_load(identity.write_inventory(str(lab), LAYOUT).read_text())
    ring = inventory["sparkring"]["children"]["lab"]
    assert list(ring["hosts"].items()) == [
        ("spark0", {"ansible_port": 2200}),
        ("spark1", {"ansible_port": 2201}),
        ("spark2", {"ansible_port": 2202}),
    ]
    variables = ring["vars"]
    assert variables["sparkring_layout"] == "path-3"
    assert variables["sparkring_plans_dir"] == f"{lab}/plans"
    assert variables["ansible_host"] == "127.0.0.1" and variables["ansible_user"] == "operator"
    assert "StrictHostKeyChecking=yes" in variables["ansible_ssh_common_args"]
    assert f"UserKnownHostsFile='{lab}/known_hosts'" in variables["ansible_ssh_common_args"]


def test_known_hosts_pin_each_port(lab: Path) -> None:
    identity.write(str(lab), LAYOUT)
    assert identity.write_known_hosts(str(lab), LAYOUT).read_text().splitlines() == [
        f"[127.0.0.1]:220{host} ssh-ed25519 spark{host}KEY" for host in range(3)
    ]
