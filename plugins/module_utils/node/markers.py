"""Markers: what writes the tag at the origin, in the card (mlx5) or in the kernel (virtual).

The choice between the two is made from the plan's driver, here and nowhere else on the host. The
marker units run this file with little else, so that they start fast.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
from typing import Any, NamedTuple

from ..contract import marks
from ..contract.drivers import DRIVERS
from . import tc
from .commands import HostError
from .host import Host

BUILD_RECORD = marks.LIB_DIR + "/marker.json"


class Rule(NamedTuple):
    """One planned marker rule of one RDMA device; ``destination`` may be a source port, as the plan writes it."""

    netdev: str
    destination: str
    tag: str


def in_nic(driver: str) -> bool:
    """Whether a host with this driver marks in its card; otherwise egress filters do."""
    return DRIVERS[driver].marks_in_nic


def planned(host: Host, device: str) -> tuple[str, list[Rule]]:
    """The driver and the rules of one RDMA device, from the plan that lies on the host."""
    try:
        plan = json.loads(host.read(marks.PLAN_PATH) or "")
        rules = [
            Rule(rule["netdev"], rule["destination"], rule["tag"])
            for rule in plan["marker_rules"]
            if rule["rdma_device"] == device
        ]
        driver = str(plan["driver"])
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(f"{marks.PLAN_PATH} is missing or damaged: run mesh-setup") from error
    if not rules:
        raise HostError(f"the plan has no marker rules for {device}")
    return driver, rules


# The compiled marker --------------------------------------------------------------------------


def build_record(host: Host) -> dict[str, str]:
    """Digests of the source and the binary of the last build; empty where none was made."""
    try:
        value = json.loads(host.read(BUILD_RECORD) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def is_the_built_binary(host: Host) -> bool:
    """Whether the binary on the host is the one that was built there."""
    binary = host.read_bytes(marks.MARKER_PATH)
    return binary is not None and hashlib.sha256(binary).hexdigest() == build_record(host).get("binary")


def build(host: Host, source: str) -> None:
    """Compile the marker on this host and record what was built from what."""
    text, binary = marks.MARKER_PATH + ".build.c", marks.MARKER_PATH + ".build"
    try:
        host.write(text, source.encode(), 0o644)
        command = ["cc", "-O2", "-Wall", "-Wextra", str(host.path(text)), "-o", str(host.path(binary))]
        host.runner.run([*command, "-libverbs", "-lmlx5"], timeout=300)
        data = host.read_bytes(binary) or b""
    finally:
        host.remove(text)
        host.remove(binary)
    digests = {"source": hashlib.sha256(source.encode()).hexdigest(), "binary": hashlib.sha256(data).hexdigest()}
    host.write(marks.MARKER_PATH, data, 0o755)
    host.write(BUILD_RECORD, (json.dumps(digests, indent=2, sort_keys=True) + "\n").encode(), 0o644)


def running_compiled(host: Host) -> list[dict[str, Any]]:
    """Rules that running compiled markers hold, read from their arguments."""
    found = []
    for process in host.names("/proc"):
        words = (host.read_bytes(f"/proc/{process}/cmdline") or b"").decode(errors="replace").split("\0")
        if not process.isdigit() or words[0] != marks.MARKER_PATH or "--device" not in words:
            continue
        device = words[words.index("--device") + 1]
        for position, word in enumerate(words):
            if word in ("--rule", "--source-port"):
                destination, _, tag = words[position + 1].partition("=")
                if word == "--source-port":
                    destination = marks.SOURCE_PORT_MATCH + destination
                found.append({"device": device, "destination": destination, "tag": tag, "extra": []})
    return found


# The software marker --------------------------------------------------------------------------


PREFERENCES = (marks.EGRESS_PREFERENCE, marks.SOURCE_PORT_PREFERENCE)


def software_rules(printed: Any) -> list[dict[str, Any]]:
    """Software marker rules at our preferences in an answer of ``tc -j filter show``."""
    rules = [tc.marker_rule(entry) for entry in tc.entries(printed) if entry.get("pref") in PREFERENCES]
    return [fields for fields in rules if fields is not None]


def _laid(host: Host, netdev: str) -> list[dict[str, Any]]:
    return software_rules(host.runner.json(["tc", "-j", "filter", "show", "dev", netdev, "egress"]))


def lay_software(host: Host, rules: list[Rule]) -> None:
    """Make the egress rules of one device equal to its plan."""
    for netdev in sorted({rule.netdev for rule in rules}):
        wanted = {rule.destination: rule.tag for rule in rules if rule.netdev == netdev}
        lines, handles = [], set()
        for fields in _laid(host, netdev):
            if wanted.get(fields["destination"]) == fields["tag"] and not fields["extra"]:
                del wanted[fields["destination"]]
                handles.add(fields["handle"])
            else:
                lines.append(tc.delete_marker(netdev, fields["destination"], fields["handle"]))
        free = (handle for handle in range(1, 1 + len(wanted) + len(handles)) if handle not in handles)
        for destination, tag in wanted.items():
            lines.append(tc.add_marker(netdev, next(free), destination, tag))
        host.runner.batch("tc", lines)


def take_software(host: Host, netdev: str, destinations: set[str]) -> None:
    """Remove the software marker rules for these destinations from one netdev, as far as they are there."""
    gone = [rule for rule in _laid(host, netdev) if rule["destination"] in destinations]
    host.runner.batch("tc", [tc.delete_marker(netdev, rule["destination"], rule["handle"]) for rule in gone])


# The unit -------------------------------------------------------------------------------------


def notify(message: str) -> None:
    """Tell systemd something; silent where no one listens."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.connect("\0" + address[1:] if address.startswith("@") else address)
            channel.sendall(message.encode())


def serve(host: Host, device: str) -> None:
    """Hold the marker rules of one RDMA device until told to stop; they end with this process."""
    driver, rules = planned(host, device)
    if in_nic(driver):
        _serve_compiled(host, device, rules)
    else:
        _serve_software(host, device, rules)


def _serve_software(host: Host, device: str, rules: list[Rule]) -> None:
    stops = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    lay_software(host, rules)
    try:
        notify(f"READY=1\nSTATUS={len(rules)} rules laid on {device}")
        signal.sigwait(stops)
    finally:
        notify("STOPPING=1")
        for rule in rules:
            take_software(host, rule.netdev, {rule.destination})


def compiled_command(device: str, rules: list[Rule]) -> list[str]:
    """The compiled marker's command line for the rules of one RDMA device."""
    command = [marks.MARKER_PATH, "--device", device]
    for rule in rules:
        if rule.destination.startswith(marks.SOURCE_PORT_MATCH):
            port = rule.destination[len(marks.SOURCE_PORT_MATCH) :]
            command += ["--source-port", f"{port}={rule.tag}"]
        else:
            command += ["--rule", f"{rule.destination}={rule.tag}"]
    return command


def _serve_compiled(host: Host, device: str, rules: list[Rule]) -> None:
    """Run the compiled marker as a child; ready when it says that all its rules are installed."""
    if not is_the_built_binary(host):
        raise HostError(f"{marks.MARKER_PATH} is not the binary that was built here: run mesh-setup")
    command = compiled_command(device, rules)
    stopping: list[int] = []
    binary = host.path(marks.MARKER_PATH)
    with subprocess.Popen([*command, "--managed"], executable=binary, stdout=subprocess.PIPE, text=True) as child:

        def stop(number: int, _frame: object) -> None:
            stopping.append(number)
            child.terminate()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        installed = _installed(child.stdout.readline() if child.stdout else "")
        if installed == len(rules):
            notify(f"READY=1\nSTATUS={installed} rules laid on {device}")
        else:
            child.terminate()
        status = child.wait()
    if stopping:
        return
    if installed != len(rules):
        raise HostError(f"the marker of {device} installed {installed or 0} of {len(rules)} rules")
    raise HostError(f"the marker of {device} ended by itself (exit {status})")


def _installed(line: str) -> int | None:
    try:
        value = json.loads(line).get("installed")
    except (ValueError, AttributeError):
        return None
    return value if isinstance(value, int) else None
