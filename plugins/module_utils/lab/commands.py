"""Run other programs; one error type whose text is one sentence for the operator."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence


class LabError(Exception):
    """What is wrong, where, and what to do, in one sentence."""


PACKAGE_OF_TOOL = {
    "mmdebstrap": "mmdebstrap",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "busybox": "busybox-static",
    "cpio": "cpio",
    "depmod": "kmod",
    "mke2fs": "e2fsprogs",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "dpkg-deb": "dpkg",
    "xz": "xz-utils",
}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find_tool(name: str) -> str | None:
    """Absolute path of a tool; system directories count even if the caller's PATH lacks them."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":" + SYSTEM_PATH)


def need_tool(name: str) -> str:
    """Absolute path of a tool; LabError where it is not installed."""
    tool = find_tool(name)
    if tool is None:
        raise LabError(f"{name} is not installed on this machine.")
    return tool


def check_requirements(command: str = "make lab") -> None:
    """Raise LabError with the one command that brings what is missing."""
    packages = {package for tool, package in PACKAGE_OF_TOOL.items() if find_tool(tool) is None}
    if not os.path.exists(KEYRING):
        packages.add("debian-archive-keyring")
    if packages:
        raise LabError(
            "The lab lacks packages on this machine; run: sudo apt-get install --no-install-recommends "
            + " ".join(sorted(packages))
        )
    if os.geteuid() != 0:
        raise LabError(f"The lab needs root for its network namespace; run: sudo {command}")
    if not os.path.exists("/dev/net/tun"):
        raise LabError("The lab needs /dev/net/tun; run: sudo modprobe tun")


def run(
    command: Sequence[str],
    *,
    text_input: str | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
    output_to: int | None = None,
) -> str:
    """Standard output of a command; LabError with the last line it said when it fails."""
    tool = need_tool(command[0])
    try:
        result = subprocess.run(
            [tool, *command[1:]],
            input=text_input,
            stdin=subprocess.DEVNULL if text_input is None else None,
            stdout=output_to if output_to is not None else subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PATH": os.environ.get("PATH", "") + ":" + SYSTEM_PATH, **(environment or {})},
            timeout=timeout,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"`{' '.join(command)}` did not end within {timeout:.0f} s.") from error
    if result.returncode != 0:
        said = (result.stderr or result.stdout or "").strip().splitlines() or ["no output"]
        raise LabError(f"`{' '.join(command)}` failed with status {result.returncode}: {said[-1]}")
    return result.stdout or ""
