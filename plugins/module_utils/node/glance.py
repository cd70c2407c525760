"""Whether a host is, to the letter, what it was when it was last found equal to its plan.

It is asked every 30 seconds for ever. So it asks the kernel in text, reads no plan and needs few imports; whatever
differs, even where that is no harm, only leads to the whole look.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from ..contract import marks

if TYPE_CHECKING:
    from ..contract.host_plan import HostPlan
    from .host import Host

WHOLE_SECONDS = 600.0
"""After this time the whole look is taken even if nothing seems to differ."""
COMMANDS = (
    ("ip", "-o", "link", "show"),
    ("ip", "-4", "-br", "addr", "show"),
    ("ip", "-4", "route", "show", "table", "all", "proto", str(marks.ROUTE_PROTOCOL)),
    ("ip", "-4", "neigh", "show", "nud", "permanent"),
    ("tc", "qdisc", "show"),
    ("iptables", "-w", "-S"),
    ("systemctl", "show", "--property=Id,ActiveState,UnitFileState", marks.UNIT_PREFIX + "*"),
)
FOLDERS = (
    marks.CONFIG_DIR,
    marks.LIB_DIR,
    marks.UNIT_DIR,
    "/etc/NetworkManager/system-connections",
    "/run/NetworkManager/system-connections",
    "/etc/netplan",
    "/run/netplan",
)
GIDS = 16
"""Entries of a GID table that are read; the addresses of a port take the first ones."""


def unchanged(host: Host) -> bool:
    """Whether nothing differs from the last time; false where that was long ago or is not known."""
    try:
        known = json.loads(host.read(marks.GLANCE_PATH) or "")
        fresh = time.monotonic() - known["since"] < WHOLE_SECONDS
        return bool(fresh and known["seen"] == _seen(host, known["subjects"]))
    except (ValueError, KeyError, TypeError):
        return False


def take(host: Host, plan: HostPlan) -> dict[str, Any]:
    """What is seen now, to be remembered if the whole look that follows finds nothing wrong."""
    subjects = {
        "sysctls": sorted(item.key for item in plan.sysctls),
        "devices": sorted(link.rdma_device for link in plan.links),
        "netdevs": sorted(item.netdev for item in plan.qdiscs),
    }
    return {"subjects": subjects, "seen": _seen(host, subjects), "since": time.monotonic()}


def remember(host: Host, taken: dict[str, Any]) -> None:
    """Keep what was seen of a host that was found equal to its plan."""
    host.write(marks.GLANCE_PATH, json.dumps(taken).encode() + b"\n", 0o600)


def _seen(host: Host, subjects: dict[str, list[str]]) -> list[str]:
    found = [host.runner.execute(command, None, 30).output for command in COMMANDS]
    lines = [f"filter show dev {netdev} {side}\n" for netdev in subjects["netdevs"] for side in ("ingress", "egress")]
    if lines:
        found.append(host.runner.execute(("tc", "-batch", "-"), "".join(lines), 30).output)
    found += [f"{key} {host.read('/proc/sys/' + key)}" for key in subjects["sysctls"]]
    for device in subjects["devices"]:
        gids = f"/sys/class/infiniband/{device}/ports/1/gids"
        found.append(" ".join(str(host.read(f"{gids}/{index}")) for index in range(GIDS)))
    for folder in FOLDERS:
        found += _entries(str(host.path(folder)))
    return found


def _entries(folder: str) -> list[str]:
    """Name, size, mode and time of every file; of links, which are the units that start at boot, where they lead."""
    try:
        names = sorted(os.listdir(folder))
        stats = [(name, os.lstat(os.path.join(folder, name))) for name in names]
    except OSError:
        return []
    return [f"{folder}/{name} {stat.st_size} {stat.st_mode} {stat.st_mtime_ns}" for name, stat in stats]
