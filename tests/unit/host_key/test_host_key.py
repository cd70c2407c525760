"""First contact: a key is pinned only when its fingerprint was given."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils import host_key


@pytest.fixture
def key_line(tmp_path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    kind, key, _comment = (tmp_path / "key.pub").read_text().split(maxsplit=2)
    return f"[192.0.2.10]:2200 {kind} {key}"


def test_a_pinned_key_is_found_again_and_only_for_its_place(tmp_path: Path, key_line: str) -> None:
    known_hosts = tmp_path / "ssh" / "known_hosts"
    assert not host_key.pinned(known_hosts, "192.0.2.10", 2200)
    host_key.pin(known_hosts, key_line)
    assert host_key.pinned(known_hosts, "192.0.2.10", 2200)
    assert not host_key.pinned(known_hosts, "192.0.2.10", 22)
    assert known_hosts.stat().st_mode & 0o777 == 0o600


def test_a_wrong_fingerprint_is_refused_in_one_sentence() -> None:
    host_key.refuse_wrong("spark0", "SHA256:right", ["SHA256:other", "SHA256:right"])
    with pytest.raises(host_key.HostKeyError) as refusal:
        host_key.refuse_wrong("spark0", "SHA256:wrong", ["SHA256:right"])
    assert str(refusal.value) == (
        "spark0 shows host key SHA256:wrong, which is not among SHA256:right; "
        "compare it at the host's own console before you change sparkring_host_fingerprints."
    )


def test_a_host_that_does_not_answer_is_named() -> None:
    with pytest.raises(
        host_key.HostKeyError, match=r"^spark0 does not answer ssh with an ed25519 key at 127\.0\.0\.1 port 1;"
    ):
        host_key.scan("spark0", "127.0.0.1", 1)
