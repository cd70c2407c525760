"""The virtual ring as a whole: bring it up, take it down, save and restore it, pull its cables."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import guest, identity, network, services
from . import layout as names
from .commands import LabError, check_requirements, run
from .image import Image
from .layout import Layout
from .machine import CPU, Machine, find_acceleration

RUN_DIRECTORY = "/run/sparkring-lab"
STATE = f"{RUN_DIRECTORY}/lab.json"
BOOTED = "booted"
"""Snapshot of freshly booted hosts, from which a later start goes on in seconds."""
BOOT_SECONDS = 600
DARK_SECONDS = 3
"""How long no port has carrier while cables are moved: an emulated guest would miss a shorter fall."""


@dataclass
class Lab:
    """What runs at present; written down in ``/run`` so that a restart of the machine forgets it."""

    directory: str
    layout: str
    memory_mib: int
    image: Image
    acceleration: str
    pulled: list[int]
    cables: list[Any] = field(default_factory=list)
    """Cables of a ring that is cabled otherwise than its layout: pairs of (host, port) ends."""

    @property
    def plan(self) -> Layout:
        wiring = tuple(((a[0], a[1]), (b[0], b[1])) for a, b in self.cables)
        return names.recabled(names.parse(self.layout), wiring)

    @property
    def machines(self) -> list[Machine]:
        return [
            Machine(host, f"{self.directory}/hosts/{names.host_name(host)}", RUN_DIRECTORY)
            for host in range(self.plan.size)
        ]

    @property
    def snapshots_file(self) -> Path:
        return Path(self.directory, "hosts", "snapshots.json")

    def save(self) -> None:
        """Write the state down."""
        Path(STATE).write_text(json.dumps(asdict(self), indent=2) + "\n")


def running() -> Lab | None:
    """The lab that runs on this machine; what is left of one whose every host was killed is none."""
    try:
        state = json.loads(Path(STATE).read_text())
    except OSError:
        return None
    if not network.exists():
        return None
    lab = Lab(**{**state, "image": Image(**state["image"])})
    return lab if any(machine.process() is not None for machine in lab.machines) else None


def up(directory: str, layout: str, memory_mib: int, image: Image) -> dict[str, Any]:
    """Bring the ring up and wait until every host answers; the result says what changed and how long it took."""
    check_requirements()
    directory = os.path.abspath(directory)
    plan = names.parse(layout)
    begun = time.monotonic()
    lab = running()
    if lab is not None:
        _refuse_other(lab, directory, layout, memory_mib, image)
        dead = [machine for machine in lab.machines if machine.process() is None]
        if dead:
            _start(lab, dead, None)
            _wait(lab, dead, _finish_boot)
        return _result(lab, bool(dead), "running", begun)
    network.remove()
    shutil.rmtree(RUN_DIRECTORY, ignore_errors=True)
    os.makedirs(RUN_DIRECTORY, mode=0o700)
    lab = Lab(directory, layout, memory_mib, image, find_acceleration(image, Path(directory, "acceleration.json")), [])
    tars = identity.write(directory, plan)
    identity.write_known_hosts(directory, plan)
    identity.write_inventory(directory, plan)
    _check_memory(lab)
    stamp = _stamp(lab, tars)
    warm = _read_snapshots(lab).get("stamp") == stamp
    if not warm:
        lab.snapshots_file.unlink(missing_ok=True)
        for machine in lab.machines:
            Path(machine.disk).unlink(missing_ok=True)
            run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", image.disk, "-F", "raw", machine.disk])
    try:
        network.create(plan)
        lab.save()
        _start_services(lab)
        _start(lab, lab.machines, BOOTED if warm else None)
        _wait(lab, lab.machines, _set_clock if warm else _finish_boot)
        if not warm:
            _save_all(lab, BOOTED)
            _write_snapshots(lab, {"stamp": stamp, "snapshots": {BOOTED: []}})
    except BaseException:
        lab.snapshots_file.unlink(missing_ok=True)
        down()
        raise
    return _result(lab, True, "warm" if warm else "cold", begun)


def down() -> bool:
    """End everything that runs; whether there was anything."""
    changed = network.remove()
    if os.path.isdir(RUN_DIRECTORY):
        shutil.rmtree(RUN_DIRECTORY)
        changed = True
    return changed


def save_snapshot(name: str) -> bool:
    """Save the running ring under a name, disks and memory and cables; always a change."""
    lab = _needed()
    _check_name(name)
    dead = [names.host_name(machine.host) for machine in lab.machines if machine.process() is None]
    if dead:
        raise LabError(f"A snapshot needs every host running, but {', '.join(dead)} is off; run lab_up first.")
    _save_all(lab, name)
    record = _read_snapshots(lab)
    record.setdefault("snapshots", {})[name] = lab.pulled
    record.setdefault("cables", {})[name] = lab.cables
    _write_snapshots(lab, record)
    return True


def restore_snapshot(name: str) -> bool:
    """Put the ring back to what it was when the snapshot was saved; always a change."""
    lab = _needed()
    record = _read_snapshots(lab)
    known = record.get("snapshots", {})
    if name not in known:
        raise LabError(f"The lab has no snapshot {name!r}; it has {', '.join(sorted(known)) or 'none'}.")
    # Connections made after the snapshot mean nothing to the restored hosts: end them now instead of by time-out.
    _stop_services()
    alive = [machine for machine in lab.machines if machine.process() is not None]
    _each(alive, lambda machine: machine.tell({"execute": "stop"}))
    _each(alive, lambda machine: machine.monitor(f"loadvm {name}"))
    lab.pulled = known[name]
    lab.cables = record.get("cables", {}).get(name, [])
    lab.save()
    network.recable(lab.plan)
    _each(alive, lambda machine: machine.tell({"execute": "cont"}))
    _start(lab, [machine for machine in lab.machines if machine not in alive], name)
    _apply_cables(lab)
    _start_services(lab)
    _wait(lab, lab.machines, _set_clock)
    return True


def set_cable(cable: int, plugged: bool) -> bool:
    """Pull or plug a cable: both functions at both ends lose or regain carrier."""
    lab = _needed()
    lab.plan.ends(cable)
    if (cable not in lab.pulled) == plugged:
        return False
    lab.pulled = sorted(set(lab.pulled) ^ {cable})
    lab.save()
    _apply_cables(lab)
    return True


def set_cables(text: str) -> bool:
    """Cable the running ring to exactly these cables, to its layout's own where there are none; all are plugged."""
    lab = _needed()
    plan = names.parse(lab.layout)
    own = sorted(sorted(plan.ends(cable)) for cable in range(plan.cables))
    wiring = names.parse_cables(plan, text)
    cables = [] if sorted(sorted(ends) for ends in wiring) == own else [[list(a), list(b)] for a, b in wiring]
    if lab.cables == cables and not lab.pulled:
        return False
    lab.cables, lab.pulled = cables, []
    lab.save()
    for machine in lab.machines:
        if machine.process() is not None:
            machine.set_links(names.port_nics(0) + names.port_nics(1), False)
    network.recable(lab.plan)
    time.sleep(DARK_SECONDS)
    _apply_cables(lab)
    return True


def power(host: int, action: str) -> bool:
    """Cut a host's power (``off``), start it (``on``) or press its reset button (``reset``)."""
    lab = _needed()
    if not 0 <= host < lab.plan.size:
        raise LabError(f"The lab has no host {host}; its hosts are 0 to {lab.plan.size - 1}.")
    machine = lab.machines[host]
    alive = machine.process() is not None
    if action == "reset" and alive:
        machine.tell({"execute": "system_reset"})
        return True
    if action == "off":
        machine.stop()
        return alive
    if not alive:
        _start(lab, [machine], None)
    return not alive


def _needed() -> Lab:
    check_requirements()
    lab = running()
    if lab is None:
        raise LabError("No lab runs on this machine; run: make lab")
    return lab


def _refuse_other(lab: Lab, directory: str, layout: str, memory_mib: int, image: Image) -> None:
    if lab.directory != directory:
        raise LabError(f"A lab of {lab.directory} runs on this machine already; run: make lab-down")
    if (lab.layout, lab.memory_mib, lab.image) != (layout, memory_mib, image):
        raise LabError(
            f"The lab that runs is a {lab.layout} with {lab.memory_mib} MiB a host, not what is asked for;"
            " run: make lab-down"
        )


def _check_memory(lab: Lab) -> None:
    available = next(
        int(line.split()[1]) // 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable:")
    )
    needed = lab.plan.size * lab.memory_mib
    if needed > available:
        raise LabError(f"The lab needs {needed} MiB of memory and this machine has {available}; choose fewer hosts.")


def _stamp(lab: Lab, tars: list[bytes]) -> dict[str, Any]:
    """What a saved boot depends on."""
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("model name", "flags"))]
    return {
        "layout": lab.layout,
        "memory_mib": lab.memory_mib,
        "image": lab.image.directory,
        "acceleration": lab.acceleration,
        "identities": hashlib.sha256(b"".join(tars)).hexdigest(),
        "qemu": run(["qemu-system-x86_64", "--version"]).splitlines()[0],
        "cpu": hashlib.sha256("\n".join(sorted(set(cpu))).encode()).hexdigest() if lab.acceleration == "kvm" else "",
        "cpu_model": CPU,
        "kernel_arguments": guest.KERNEL_ARGUMENTS,
    }


def _read_snapshots(lab: Lab) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(lab.snapshots_file.read_text())
    except (OSError, ValueError):
        return {}
    return record


def _write_snapshots(lab: Lab, record: dict[str, Any]) -> None:
    lab.snapshots_file.write_text(json.dumps(record, indent=2) + "\n")


def _check_name(name: str) -> None:
    if not name.replace("-", "").isalnum() or name == BOOTED:
        raise LabError(f"{name!r} cannot name a snapshot; use letters, digits and hyphens, and not {BOOTED!r}.")


def _each(machines: list[Machine], action: Callable[[Machine], Any]) -> None:
    if machines:
        with ThreadPoolExecutor(len(machines)) as pool:
            list(pool.map(action, machines))


def _start(lab: Lab, machines: list[Machine], snapshot: str | None) -> None:
    _each(machines, lambda machine: machine.start(lab.image, lab.acceleration, lab.memory_mib, snapshot))
    _apply_cables(lab)


def _save_all(lab: Lab, name: str) -> None:
    """All hosts stand still while each is saved, so that the ring is saved as one."""
    _each(lab.machines, lambda machine: machine.tell({"execute": "stop"}))
    try:
        _each(lab.machines, lambda machine: machine.monitor(f"savevm {name}"))
    finally:
        _each(lab.machines, lambda machine: machine.tell({"execute": "cont"}))


def _apply_cables(lab: Lab) -> None:
    """Make taps and carriers equal to which cables are plugged; open ports have no carrier."""
    for cable in range(lab.plan.cables):
        network.set_cable(lab.plan, cable, cable not in lab.pulled)
    for machine in lab.machines:
        if machine.process() is not None:
            for port in (0, 1):
                cable_here = lab.plan.cable_at(machine.host, port)
                plugged = cable_here is not None and cable_here not in lab.pulled
                machine.set_links(names.port_nics(port), plugged)


def _start_services(lab: Lab) -> None:
    # The module may run from a zip file, which is gone when the services still run.
    source = inspect.getsource(services)
    program = Path(RUN_DIRECTORY, "services.py")
    program.write_text(source)
    settings = {
        "namespace": network.NAMESPACE_PATH,
        "forwards": [
            {"listen": names.ssh_port(host), "address": names.address(host), "port": 22}
            for host in range(lab.plan.size)
        ],
        "repository": lab.image.repository,
        "http_address": names.CONTROLLER_ADDRESS,
        "http_port": names.REPOSITORY_PORT,
    }
    process = subprocess.Popen(
        [sys.executable, "-I", str(program), json.dumps(settings)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    Path(RUN_DIRECTORY, "services.pid").write_text(f"{process.pid}\n")
    if process.stdout and process.stderr and process.stdout.readline() != "ready\n":
        said = process.stderr.read().strip().splitlines() or ["no output"]
        raise LabError(f"The lab's ssh ports {names.ssh_port(0)} and up do not open on 127.0.0.1: {said[-1]}")


def _stop_services() -> None:
    pid_file = Path(RUN_DIRECTORY, "services.pid")
    process = int(pid_file.read_text())
    try:
        if b"services.py" not in Path(f"/proc/{process}/cmdline").read_bytes():
            return
        os.kill(process, signal.SIGTERM)
        while Path(f"/proc/{process}/cmdline").read_bytes():
            time.sleep(0.02)
    except (OSError, ProcessLookupError):
        return


def _wait(lab: Lab, machines: list[Machine], then: Callable[[Lab, Machine], None]) -> None:
    """Wait until each host's sshd greets, then do the rest over ssh."""

    def wait(machine: Machine) -> None:
        until = time.monotonic() + BOOT_SECONDS
        while not _greets(names.ssh_port(machine.host)):
            if machine.process() is None:
                raise LabError(f"{names.host_name(machine.host)} ended while starting; see {machine.console}")
            if time.monotonic() > until:
                raise LabError(
                    f"{names.host_name(machine.host)} does not answer ssh after {BOOT_SECONDS} s; see {machine.console}"
                )
            time.sleep(0.5)
        then(lab, machine)

    _each(machines, wait)


def _greets(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _ssh(lab: Lab, machine: Machine, command: str, timeout: float) -> str:
    options = [f"UserKnownHostsFile={lab.directory}/known_hosts", "GlobalKnownHostsFile=/dev/null"]
    options += ["StrictHostKeyChecking=yes", "BatchMode=yes", "IdentitiesOnly=yes", "LogLevel=ERROR"]
    return run(
        [
            *("ssh", "-F", "/dev/null", "-i", str(identity.operator_key(lab.directory))),
            *(part for option in options for part in ("-o", option)),
            *("-p", str(names.ssh_port(machine.host)), f"{guest.OPERATOR}@127.0.0.1", command),
        ],
        timeout=timeout,
    )


def _finish_boot(lab: Lab, machine: Machine) -> None:
    answer = _ssh(lab, machine, "systemctl is-system-running --wait || systemctl --failed --plain --no-legend", 300)
    if answer.split()[:1] != ["running"]:
        raise LabError(f"{names.host_name(machine.host)} did not boot cleanly: {' '.join(answer.split())}")


def _set_clock(lab: Lab, machine: Machine) -> None:
    _ssh(lab, machine, f"sudo date -s @{time.time() + 1:.0f}", 180)


def _result(lab: Lab, changed: bool, start: str, begun: float) -> dict[str, Any]:
    return {
        "changed": changed,
        "start": start,
        "seconds": round(time.monotonic() - begun, 1),
        "acceleration": lab.acceleration,
        "inventory": f"{lab.directory}/inventory/hosts.yml",
    }
