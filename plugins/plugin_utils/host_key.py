"""Host keys of first contact: scanned, compared with given fingerprints, pinned in a known hosts file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

SCAN_SECONDS = 20
KEY_TYPE = "ed25519"


class HostKeyError(Exception):
    """One sentence: which host's key cannot be pinned, and what to do."""


def place(address: str, port: int) -> str:
    """The name that a known hosts file gives a server."""
    return address if port == 22 else f"[{address}]:{port}"


def pinned(known_hosts: Path, address: str, port: int) -> bool:
    """Whether the file holds a key of the server."""
    if not known_hosts.is_file():
        return False
    found = _run(["ssh-keygen", "-F", place(address, port), "-f", str(known_hosts)])
    return found.returncode == 0


def scan(host: str, address: str, port: int) -> tuple[str, str]:
    """The server's key line and its fingerprint, ``SHA256:…``. Raises HostKeyError when it does not answer."""
    answer = _run(["ssh-keyscan", "-T", str(SCAN_SECONDS), "-t", KEY_TYPE, "-p", str(port), address])
    lines = [line for line in answer.stdout.splitlines() if line and not line.startswith("#")]
    if not lines:
        raise HostKeyError(
            f"{host} does not answer ssh with an {KEY_TYPE} key at {address} port {port}; "
            "check its power, its address and that sshd runs."
        )
    printed = _run(["ssh-keygen", "-l", "-f", "-"], lines[0] + "\n").stdout.split()
    return lines[0], printed[1]


def refuse_wrong(host: str, fingerprint: str, expected: Sequence[str]) -> None:
    """Raise HostKeyError unless the fingerprint is one of those expected."""
    if fingerprint not in expected:
        raise HostKeyError(
            f"{host} shows host key {fingerprint}, which is not among {', '.join(expected)}; "
            "compare it at the host's own console before you change sparkring_host_fingerprints."
        )


def pin(known_hosts: Path, line: str) -> None:
    """Append the key line to the file, which only its owner may write."""
    known_hosts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(known_hosts, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def _run(command: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=SCAN_SECONDS * 2, check=False
        )
    except FileNotFoundError:
        raise HostKeyError(f"The controller lacks {command[0]}; install openssh-client.") from None
    except subprocess.TimeoutExpired:
        raise HostKeyError(f"{command[0]} did not end within {SCAN_SECONDS * 2} s; run it by hand.") from None
