"""The part of the survey that is about the machine and not its ring: versions, memory, owners of its network."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
from typing import Any

from . import profiles
from .host import Host

MEMORY = {
    "total_kib": "MemTotal",
    "available_kib": "MemAvailable",
    "free_kib": "MemFree",
    "cached_kib": "Cached",
    "shmem_kib": "Shmem",
    "swap_total_kib": "SwapTotal",
    "cma_total_kib": "CmaTotal",
    "cma_free_kib": "CmaFree",
    "hugepage_kib": "Hugetlb",
}
"""Fields of the survey's ``memory`` and what /proc/meminfo calls them."""
JOURNAL = "/var/log/journal"
BOOT_LINES = 200
"""Lines of the previous boot that a survey holds at most, the newest ones."""


def machine_id(host: Host) -> str | None:
    """Digest of /etc/machine-id, which is confidential itself; equal on two hosts of one disk image."""
    text = host.read("/etc/machine-id")
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else None


def clock() -> dict[str, float]:
    """The host's time, seconds since 1970 UTC."""
    return {"host": round(time.time(), 3)}


def kernel(host: Host) -> dict[str, Any]:
    """Versions of kernel and distribution, and of the GPU's driver."""
    release = host.read("/etc/os-release") or ""
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)"?', release, re.MULTILINE)
    driver = re.search(r"Kernel Module.*?(\d+\.\d[\d.]*)", host.read("/proc/driver/nvidia/version") or "")
    return {
        "release": host.read("/proc/sys/kernel/osrelease") or platform.release(),
        "os": name.group(1) if name else None,
        "machine": platform.machine(),
        "gpu_driver": driver.group(1) if driver else None,
    }


def memory(host: Host) -> dict[str, Any]:
    """Memory as the kernel counts it, in KiB; None where it does not."""
    text = host.read("/proc/meminfo") or ""
    values = {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    return {field: values.get(name) for field, name in MEMORY.items()}


def disk(host: Host) -> list[dict[str, Any]]:
    """Size and free space of every mounted device."""
    found = []
    for line in (host.read("/proc/mounts") or "").splitlines():
        source, mount = line.split()[:2]
        if not source.startswith("/dev/") and mount != "/":
            continue
        try:
            size = os.statvfs(host.path(mount))
        except OSError:
            continue
        unit = size.f_frsize
        found.append(
            {"mount": mount, "size_kib": size.f_blocks * unit // 1024, "free_kib": size.f_bavail * unit // 1024}
        )
    return found


def gpu(host: Host) -> list[str]:
    """Names of the GPUs."""
    if host.find_tool("nvidia-smi") is None:
        return []
    done = host.runner.execute(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], None, 30)
    return [line.strip() for line in done.output.splitlines() if line.strip()] if done.status == 0 else []


def docker(host: Host) -> dict[str, Any]:
    """Whether Docker is there and runs."""
    if host.find_tool("docker") is None:
        return {"installed": False, "running": False, "version": None}
    version = re.search(r"version ([^,\s]+)", host.runner.execute(["docker", "--version"], None, 20).output)
    active = host.runner.execute(["systemctl", "is-active", "docker.service"], None, 20)
    return {
        "installed": True,
        "running": active.output.strip() == "active",
        "version": version.group(1) if version else None,
    }


def network_manager(host: Host) -> dict[str, Any]:
    """NetworkManager's devices and ethernet profiles, with where each profile lies."""
    seen = profiles.observe(host)
    done = host.runner.execute(["nmcli", "-t", "-f", "VERSION", "general", "status"], None, 30)
    return {
        "running": seen.running,
        "version": done.output.strip() if done.status == 0 else None,
        "devices": seen.devices,
        "profiles": [
            {
                "name": profile.name,
                "uuid": profile.uuid,
                "netdev": profile.netdev,
                "filename": profile.filename,
                "active": profile.active_on is not None,
                "active_on": profile.active_on,
                "settings": profile.settings,
            }
            for profile in seen.profiles
        ],
    }


def networkd(host: Host, indexes: dict[str, int]) -> dict[str, Any]:
    """State and file of each netdev that systemd-networkd configures, as it notes them under /run."""
    found = {}
    for netdev, index in indexes.items():
        text = host.read(f"/run/systemd/netif/links/{index}") or ""
        noted = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        if noted.get("ADMIN_STATE", "unmanaged") != "unmanaged":
            found[netdev] = {"state": noted["ADMIN_STATE"], "file": noted.get("NETWORK_FILE")}
    return found


def netplan(host: Host, netdevs: list[str]) -> list[dict[str, Any]]:
    """Netdevs and IPv4 addresses that each netplan file names; nothing else, since such files hold passwords."""
    found = []
    for name in host.names("/etc/netplan"):
        text = host.read(f"/etc/netplan/{name}") if name.endswith(".yaml") else None
        if text is not None:
            text = re.sub(r"#.*", "", text)
            found.append(
                {
                    "file": f"/etc/netplan/{name}",
                    "netdevs": [item for item in netdevs if re.search(rf"(?<!\w){re.escape(item)}(?!\w)", text)],
                    "addresses": sorted(set(re.findall(r"\d+\.\d+\.\d+\.\d+/\d+", text))),
                }
            )
    return found


def previous_boot(host: Host) -> list[str]:
    """What the kernel said of PCIe errors and the card in the boot before this one; empty without a kept journal."""
    if not host.names(JOURNAL):
        return []
    command = ["journalctl", "-k", "-b", "-1", "-q", "-o", "cat", "--no-pager", "-n", str(BOOT_LINES)]
    done = host.runner.execute([*command, "-g", "AER|PCIe Bus Error|mlx5"], None, 20)
    return done.output.splitlines() if done.status == 0 else []
