"""When is a ring green again, and what did its hosts put back by themselves?"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.virtual_ring import LAB, Ring

PROGRAM = "python3 -IS /usr/local/lib/sparkring-node/node.pyz"
LOCK = "/run/sparkring-node/lock"
RESTORED_SHOWN = 12
times: list[tuple[str, float, list[str]]] = []
"""Fault, seconds until green, and the journal's lines on what was put back."""


@dataclass
class Observed:
    """A ring under test."""

    ring: Ring
    since: str = field(default="", init=False)
    begun: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.mark()

    def mark(self) -> None:
        """From here on time is counted and journals are read."""
        self.begun = time.monotonic()
        self.since = f"@{time.time() - 1:.0f}"

    @property
    def hosts(self) -> list[str]:
        return self.ring.hosts

    def plan(self, host: str) -> dict[str, Any]:
        """The host's section of the plan on the controller."""
        plan: dict[str, Any] = json.loads((LAB / "plans" / "lab" / "hosts" / f"{host}.json").read_text())
        return plan

    def spoil(self, host: str, command: str) -> list[str]:
        """Run a command on a host and say what differs from its plan then, before the host can put it back."""
        told = f"({command}) >/dev/null && {PROGRAM} differences"
        said = self.ring.shell(host, f"mkdir -p /run/sparkring-node; flock {LOCK} sh -c {shlex.quote(told)}")
        return [item["id"] for item in json.loads(said)]

    def differences(self, host: str) -> list[str] | None:
        """Ids that differ from the host's plan; None while the host cannot say."""
        said = self.ring.shell(host, f"{PROGRAM} differences", must=False)
        try:
            return [item["id"] for item in json.loads(said)]
        except ValueError:
            return None

    def each(self, action: Callable[[str], Any], hosts: Iterable[str] | None = None) -> dict[str, Any]:
        """Do the same on several hosts at once."""
        chosen = list(hosts or self.hosts)
        with ThreadPoolExecutor(len(chosen)) as pool:
            return dict(zip(chosen, pool.map(action, chosen), strict=True))

    def wait(self, fault: str, seconds: float, hosts: Iterable[str] | None = None) -> None:
        """Until no host differs from its plan; the fault's line of the closing table."""
        deadline = self.begun + seconds
        left = self.each(self.differences, hosts)
        while any(ids != [] for ids in left.values()):
            assert time.monotonic() < deadline, f"{fault}: still not green after {seconds:.0f} s: {left}"
            time.sleep(2)
            left = self.each(self.differences, [host for host, ids in left.items() if ids != []])
        times.append((fault, time.monotonic() - self.begun, self.restored()))

    def restored(self) -> list[str]:
        """Journal lines of what the hosts put back since the mark."""
        command = (
            f"journalctl -q -o cat --no-pager --since '{self.since}' -t python3 "
            "-u sparkring-node-reconcile.service -u sparkring-node-fabric.service"
        )
        lines = [
            f"{host}: {line}"
            for host, said in self.each(lambda host: self.ring.shell(host, command, must=False)).items()
            for line in said.splitlines()
            if line.strip()
        ]
        more = len(lines) - RESTORED_SHOWN
        return [*lines[:RESTORED_SHOWN], *([f"and {more} more"] if more > 0 else [])]
