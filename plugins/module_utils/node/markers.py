"""Markers: what writes the tag at the origin, in the card (mlx5) or in the kernel (virtual).

The choice between the two is made from the plan's driver, here and nowhere else on the host.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterable
from typing import Any

from ..contract import host_plan, marks
from ..contract.drivers import DRIVERS
from . import objects, tc
from .commands import HostError
from .host import Host
from .objects import Item

BUILD_RECORD = marks.LIB_DIR + "/marker.json"


def in_nic(plan: host_plan.HostPlan) -> bool:
    """Whether this host's card marks; otherwise egress filters do."""
    return DRIVERS[plan.driver].marks_in_nic


def rules_of(plan: host_plan.HostPlan, device: str) -> list[host_plan.MarkerRule]:
    """The planned rules of one RDMA device."""
    return [rule for rule in plan.marker_rules if rule.rdma_device == device]


# The compiled marker --------------------------------------------------------------------------


def build_record(host: Host) -> dict[str, str]:
    """Digests of the source and the binary of the last build; empty where none was made."""
    try:
        value = json.loads(host.read(BUILD_RECORD) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def build(host: Host, source: str) -> None:
    """Compile the marker on this host and record what was built from what."""
    host.path(marks.LIB_DIR).mkdir(parents=True, exist_ok=True, mode=0o755)
    with tempfile.TemporaryDirectory(dir=host.path(marks.LIB_DIR)) as directory:
        text, binary = os.path.join(directory, "marker.c"), os.path.join(directory, "marker")
        with open(text, "w", encoding="utf-8") as stream:
            stream.write(source)
        command = ["cc", "-O2", "-Wall", "-Wextra", text, "-o", binary, "-libverbs", "-lmlx5"]
        host.runner.run(command, timeout=300)
        with open(binary, "rb") as stream_of_bytes:
            data = stream_of_bytes.read()
    digests = {"source": hashlib.sha256(source.encode()).hexdigest(), "binary": hashlib.sha256(data).hexdigest()}
    host.write(marks.MARKER_PATH, data, 0o755)
    host.write(BUILD_RECORD, (json.dumps(digests, indent=2, sort_keys=True) + "\n").encode(), 0o644)


def compiled_command(plan: host_plan.HostPlan, device: str) -> list[str]:
    """How the compiled marker of one device is started."""
    words = [marks.MARKER_PATH, "--device", device]
    for rule in rules_of(plan, device):
        words += ["--rule", f"{rule.destination}={rule.tag}"]
    return [*words, "--managed"]


def running_compiled(host: Host) -> list[dict[str, Any]]:
    """Rules that running compiled markers hold, read from their arguments."""
    found = []
    for process in host.names("/proc"):
        words = (host.read_bytes(f"/proc/{process}/cmdline") or b"").decode(errors="replace").split("\0")
        if not process.isdigit() or words[0] != marks.MARKER_PATH or "--device" not in words:
            continue
        device = words[words.index("--device") + 1]
        for position, word in enumerate(words):
            if word == "--rule":
                destination, _, tag = words[position + 1].partition("=")
                found.append({"device": device, "destination": destination, "tag": tag, "extra": []})
    return found


# The software marker --------------------------------------------------------------------------


def egress_rules(host: Host, netdev: str) -> list[dict[str, Any]]:
    """Software marker rules on one netdev, whoever laid them at our preference."""
    found = []
    for entry in tc.entries(host.runner.json(["tc", "-j", "filter", "show", "dev", netdev, "egress"])):
        fields = tc.marker_rule(entry)
        if entry.get("pref") == marks.EGRESS_PREFERENCE and fields is not None:
            found.append(fields)
    return found


def foreign_egress(host: Host, netdev: str) -> list[str]:
    """Sentences about other filters at our egress preference."""
    found = []
    for entry in tc.entries(host.runner.json(["tc", "-j", "filter", "show", "dev", netdev, "egress"])):
        if entry.get("pref") == marks.EGRESS_PREFERENCE and tc.marker_rule(entry) is None:
            found.append(f"{netdev} has a foreign {entry.get('kind')} filter at egress preference {entry['pref']}")
    return found


def lay_software(host: Host, rules: list[host_plan.MarkerRule]) -> None:
    """Make the egress rules of one device equal to its plan."""
    for netdev in sorted({rule.netdev for rule in rules}):
        wanted = {rule.destination: rule.tag for rule in rules if rule.netdev == netdev}
        lines, handles = [], set()
        for fields in egress_rules(host, netdev):
            if wanted.get(fields["destination"]) == fields["tag"] and not fields["extra"]:
                del wanted[fields["destination"]]
                handles.add(fields["handle"])
            else:
                lines.append(tc.delete_marker(netdev, marks.EGRESS_PREFERENCE, fields["handle"]))
        free = (handle for handle in range(1, 1 + len(wanted) + len(handles)) if handle not in handles)
        for destination, tag in wanted.items():
            lines.append(tc.add_marker(netdev, marks.EGRESS_PREFERENCE, next(free), destination, tag))
        host.runner.batch("tc", lines)


def take_software(host: Host, netdev: str) -> None:
    """Remove all software marker rules of ours from one netdev."""
    rules = egress_rules(host, netdev)
    host.runner.batch("tc", [tc.delete_marker(netdev, marks.EGRESS_PREFERENCE, rule["handle"]) for rule in rules])


# What the comparison needs --------------------------------------------------------------------


def observe(host: Host, plan: host_plan.HostPlan, clsact: Iterable[str]) -> list[Item]:
    """Marker rules in force on this host; ``clsact`` are the netdevs that can carry software ones."""
    bodies: list[dict[str, Any]] = []
    if in_nic(plan):
        bodies = running_compiled(host)
    else:
        devices = {link.netdev: link.rdma_device for link in plan.links}
        for netdev in sorted(clsact):
            for fields in egress_rules(host, netdev):
                body = {"device": devices.get(netdev, netdev), **fields}
                del body["handle"]
                bodies.append(body)
    return [Item(f"marker/{body['device']}/{body['destination']}", objects.MARKER, body) for body in bodies]


def take_left(host: Host, plan: host_plan.HostPlan, gone: list[dict[str, Any]], clsact: Iterable[str]) -> None:
    """Remove software rules that no unit holds any more; those of a stopped unit are gone already."""
    if in_nic(plan):
        return
    devices = {link.netdev: link.rdma_device for link in plan.links}
    destinations = {(body["device"], body["destination"]) for body in gone}
    for netdev in sorted(clsact):
        lines = []
        for fields in egress_rules(host, netdev):
            if (devices.get(netdev, netdev), fields["destination"]) in destinations:
                lines.append(tc.delete_marker(netdev, marks.EGRESS_PREFERENCE, fields["handle"]))
        host.runner.batch("tc", lines)


# The unit -------------------------------------------------------------------------------------


def notify(message: str) -> None:
    """Tell systemd something; silent where no one listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.connect("\0" + address[1:] if address.startswith("@") else address)
            channel.sendall(message.encode())


def serve(host: Host, plan: host_plan.HostPlan, device: str) -> None:
    """Hold the marker rules of one RDMA device until told to stop; they end with this process."""
    rules = rules_of(plan, device)
    if not rules:
        raise HostError(f"the plan has no marker rules for {device}")
    if in_nic(plan):
        _serve_compiled(host, plan, device)
        return
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    lay_software(host, rules)
    try:
        notify(f"READY=1\nSTATUS={len(rules)} rules laid on {device}")
        signal.sigwait(stops)
    finally:
        notify("STOPPING=1")
        for netdev in sorted({rule.netdev for rule in rules}):
            take_software(host, netdev)


def _serve_compiled(host: Host, plan: host_plan.HostPlan, device: str) -> None:
    """Run the compiled marker as a child; ready when it says that all its rules are installed."""
    binary = host.read_bytes(marks.MARKER_PATH)
    if binary is None or hashlib.sha256(binary).hexdigest() != build_record(host).get("binary"):
        raise HostError(f"{marks.MARKER_PATH} is not the binary that was built here: run mesh-setup")
    stopping: list[int] = []
    command = compiled_command(plan, device)
    command[0] = str(host.path(marks.MARKER_PATH))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:

        def stop(number: int, _frame: object) -> None:
            stopping.append(number)
            child.terminate()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        installed = _installed(child.stdout.readline() if child.stdout else "")
        expected = len(rules_of(plan, device))
        if installed == expected:
            notify(f"READY=1\nSTATUS={installed} rules laid on {device}")
        else:
            child.terminate()
        status = child.wait()
    if stopping:
        return
    if installed != expected:
        raise HostError(f"the marker of {device} installed {installed} of {expected} rules")
    raise HostError(f"the marker of {device} ended by itself (exit {status})")


def _installed(line: str) -> int | None:
    try:
        value = json.loads(line).get("installed")
    except (ValueError, AttributeError):
        return None
    return value if isinstance(value, int) else None
