"""One virtual host as a QEMU process, and the socket through which it is told what to do."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..contract.endpoints import ROLES
from . import guest, network
from . import layout as names
from .commands import LabError, need_tool, run
from .image import Image

LINK_SPEED = 200000
"""Mb/s that the fabric NICs claim, as a real cable does."""
ACCELERATION = {"kvm": "kvm", "tcg": "tcg,thread=multi,tb-size=256"}
CPU = "max,-erms"
"""All that is known but fast byte copies, which a kernel that sees them uses and an emulator makes byte by byte."""
PROBE_SECONDS = 10


@dataclass(frozen=True)
class Machine:
    """One virtual host: where its files lie and how it is started."""

    host: int
    directory: str
    """Its disk, identity and console log, kept between runs."""
    run_directory: str
    """Its process id and monitor socket."""

    @property
    def disk(self) -> str:
        return f"{self.directory}/disk.qcow2"

    @property
    def identity(self) -> str:
        return f"{self.directory}/identity.tar"

    @property
    def _pid_file(self) -> str:
        return f"{self.run_directory}/{names.host_name(self.host)}.pid"

    @property
    def _monitor(self) -> str:
        return f"{self.run_directory}/{names.host_name(self.host)}.sock"

    @property
    def console(self) -> str:
        return f"{self.directory}/console.log"

    def process(self) -> int | None:
        """Process id of the running machine."""
        try:
            process = int(Path(self._pid_file).read_text())
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return process if self._monitor.encode() in command else None

    def start(self, image: Image, acceleration: str, memory_mib: int, snapshot: str | None) -> None:
        """Start it inside the namespace; from a snapshot it goes on where that was saved."""
        command = [
            *network.INSIDE,
            *("qemu-system-x86_64", "-name", names.host_name(self.host), "-M", "q35", "-nodefaults"),
            *("-no-user-config", "-vga", "none", "-display", "none", "-accel", ACCELERATION[acceleration]),
            *("-cpu", CPU, "-smp", "1", "-m", str(memory_mib), "-kernel", image.kernel, "-initrd", image.initrd),
            *("-append", guest.KERNEL_ARGUMENTS, "-serial", f"file:{self.console}"),
            *("-qmp", f"unix:{self._monitor},server=on,wait=off"),
            *("-drive", f"file={self.disk},if=none,id=disk,format=qcow2,cache=unsafe"),
            *("-device", "virtio-blk-pci,drive=disk"),
            *("-drive", f"file={self.identity},if=none,id=identity,format=raw,readonly=on"),
            *("-device", "virtio-blk-pci,drive=identity"),
            *("-daemonize", "-pidfile", self._pid_file),
        ]
        for index in range(len(ROLES) + 1):
            tap = f"tap,id={_netdev(index)},ifname={names.tap(self.host, index)},script=no,downscript=no"
            nic = f"virtio-net-pci,netdev={_netdev(index)},mac={names.mac(self.host, index)},romfile="
            if index > 0:
                nic += f",host_mtu={names.FABRIC_MTU},speed={LINK_SPEED},duplex=full"
            command += ["-netdev", tap, "-device", nic]
        if snapshot is not None:
            command += ["-loadvm", snapshot]
        run(command, timeout=60)

    def stop(self) -> None:
        """End the process as a power cut would."""
        process = self.process()
        if process is None:
            return
        for name, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            os.kill(process, name)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                if self.process() is None:
                    return
                time.sleep(0.02)
        raise LabError(f"{names.host_name(self.host)} (process {process}) does not end.")

    def set_links(self, nics: tuple[int, ...], up: bool) -> None:
        """Give the guest's NICs carrier, or take it away."""
        self.tell(*({"execute": "set_link", "arguments": {"name": _netdev(nic), "up": up}} for nic in nics))

    def monitor(self, line: str) -> None:
        """One human-monitor command; any answer is an error."""
        answer = self.tell({"execute": "human-monitor-command", "arguments": {"command-line": line}})[0]
        if answer.strip():
            raise LabError(f"{names.host_name(self.host)} refused `{line}`: {answer.strip()}")

    def tell(self, *commands: dict[str, Any]) -> list[Any]:
        """Answers to QMP commands."""
        answers = []
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(60)
                connection.connect(self._monitor)
                stream = connection.makefile("rw")
                for command in ({"execute": "qmp_capabilities"}, *commands):
                    stream.write(json.dumps(command) + "\n")
                    stream.flush()
                    answers.append(_answer(stream, command))
        except OSError as error:
            raise LabError(f"{names.host_name(self.host)} does not answer on its monitor: {error}") from error
        return answers[1:]


def _netdev(index: int) -> str:
    return f"nic{index}"


def _answer(stream: Any, command: dict[str, Any]) -> Any:
    for line in stream:
        message = json.loads(line)
        if "return" in message:
            return message["return"]
        if "error" in message:
            raise LabError(f"QEMU refused {command['execute']}: {message['error']['desc']}")
    raise LabError(f"QEMU closed its monitor during {command['execute']}.")


def find_acceleration(image: Image, cache: Path) -> str:
    """``kvm`` if a guest really runs under it within ten seconds, else ``tcg``; asked once per boot of the machine."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    try:
        known = json.loads(cache.read_text())
        if known["boot"] == boot:
            return str(known["acceleration"])
    except (OSError, ValueError, KeyError):
        pass
    acceleration = "kvm" if os.path.exists("/dev/kvm") and _runs_under_kvm(image) else "tcg"
    cache.write_text(json.dumps({"boot": boot, "acceleration": acceleration}) + "\n")
    return acceleration


def _runs_under_kvm(image: Image) -> bool:
    tool = need_tool("qemu-system-x86_64")
    process = subprocess.Popen(
        [
            *(tool, "-M", "q35", "-nodefaults", "-no-user-config", "-vga", "none", "-display", "none"),
            *("-accel", "kvm", "-cpu", CPU, "-m", "256", "-kernel", image.kernel, "-initrd", image.initrd),
            *("-append", "console=ttyS0 quiet lab.probe", "-serial", "stdio"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    said = b""
    until = time.monotonic() + PROBE_SECONDS
    try:
        while process.stdout and time.monotonic() < until and process.poll() is None:
            os.set_blocking(process.stdout.fileno(), False)
            said += process.stdout.read() or b""
            if guest.PROBE_MARK.encode() in said:
                return True
            time.sleep(0.05)
        return False
    finally:
        process.kill()
        process.wait()
