"""The lab's network namespace: one bridge per cable, one for management, one tap per virtual NIC."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from ..contract.endpoints import ROLES
from . import layout as names
from .commands import run
from .layout import Layout

NAMESPACE_PATH = f"/run/netns/{names.NAMESPACE}"
INSIDE = ("ip", "netns", "exec", names.NAMESPACE)
FORWARD_LLDP = "0x4000"
"""group_fwd_mask bit of 01:80:c2:00:00:0e: a cable carries LLDP, a bridge by itself does not."""
END_SECONDS = 10


def exists() -> bool:
    """Whether the namespace is there."""
    return os.path.exists(NAMESPACE_PATH)


def create(layout: Layout) -> None:
    """Make the namespace and everything in it; cables are plugged, open ports lead nowhere."""
    run(["ip", "netns", "add", names.NAMESPACE])
    lines = ["link set lo up", f"link add {names.MANAGEMENT_BRIDGE} type bridge mcast_snooping 0"]
    for cable in range(layout.cables):
        lines.append(f"link add {names.bridge(cable)} type bridge mcast_snooping 0 group_fwd_mask {FORWARD_LLDP}")
    for host in range(layout.size):
        lines.append(f"tuntap add mode tap name {names.tap(host, 0)}")
        lines.append(f"link set {names.tap(host, 0)} master {names.MANAGEMENT_BRIDGE} up")
        for index, role in enumerate(ROLES, start=1):
            tap = names.tap(host, index)
            lines += [f"tuntap add mode tap name {tap}", f"link set {tap} mtu {names.FABRIC_MTU}"]
            cable_here = layout.cable_at(host, role.port)
            if cable_here is not None:
                lines.append(f"link set {tap} master {names.bridge(cable_here)} up")
    for cable in range(layout.cables):
        lines.append(f"link set {names.bridge(cable)} mtu {names.FABRIC_MTU} up")
    lines.append(f"address add {names.CONTROLLER_ADDRESS}/{names.MANAGEMENT_PREFIX} dev {names.MANAGEMENT_BRIDGE}")
    lines.append(f"link set {names.MANAGEMENT_BRIDGE} up")
    # Bridges must not speak IPv6 on a cable.
    run([*INSIDE, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"])
    run(["ip", "-n", names.NAMESPACE, "-batch", "-"], text_input="\n".join(lines) + "\n")


def recable(layout: Layout) -> None:
    """Move every fabric tap to the bridge of its cable, or to none where its port is open; all are down after it."""
    shown = json.loads(run(["ip", "-n", names.NAMESPACE, "-j", "link", "show", "type", "bridge"]))
    there = {entry["ifname"] for entry in shown}
    lines = []
    for cable in range(layout.cables):
        name = names.bridge(cable)
        if name not in there:
            lines.append(f"link add {name} type bridge mcast_snooping 0 group_fwd_mask {FORWARD_LLDP}")
            lines.append(f"link set {name} mtu {names.FABRIC_MTU} up")
    for host in range(layout.size):
        for index, role in enumerate(ROLES, start=1):
            lines.append(f"link set {names.tap(host, index)} down nomaster")
            cable_here = layout.cable_at(host, role.port)
            if cable_here is not None:
                lines.append(f"link set {names.tap(host, index)} master {names.bridge(cable_here)}")
    run(["ip", "-n", names.NAMESPACE, "-batch", "-"], text_input="\n".join(lines) + "\n")


def set_cable(layout: Layout, cable: int, plugged: bool) -> None:
    """Bring the taps at both ends of a cable up or down."""
    lines = [
        f"link set {names.tap(host, index)} {'up' if plugged else 'down'}"
        for host, port in layout.ends(cable)
        for index in names.port_nics(port)
    ]
    run(["ip", "-n", names.NAMESPACE, "-batch", "-"], text_input="\n".join(lines) + "\n")


def remove() -> bool:
    """End every process inside the namespace and delete it, with all taps and bridges."""
    if not exists():
        return False
    inside = [int(text) for text in run(["ip", "netns", "pids", names.NAMESPACE]).split()]
    for name in (signal.SIGTERM, signal.SIGKILL):
        for process in inside:
            if _runs(process):
                os.kill(process, name)
        until = time.monotonic() + END_SECONDS
        while any(_runs(process) for process in inside) and time.monotonic() < until:
            time.sleep(0.05)
    run(["ip", "netns", "delete", names.NAMESPACE])
    return True


def _runs(process: int) -> bool:
    """Whether a process is there and not a zombie, whose parent is another's business."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
