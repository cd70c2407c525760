"""A simulated host on which power is cut, or the program killed, after a chosen command or write."""

from __future__ import annotations

import copy
import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.node import revert, units
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import Completed
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host
from tests.fake_kernel import FakeKernel, Link

MANAGEMENT = "enP7s7"
GATEWAY = "192.0.2.1"


class Cut(BaseException):
    """Here it ends; no handler of errors sees it."""


class CutHost(Host):
    """A host whose writes count as events."""

    def _event(self, what: str) -> None:
        assert isinstance(self.runner, CutKernel)
        self.runner.event(what)

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Replace a file."""
        super().write(path, data, mode)
        self._event("write " + path)

    def link(self, path: str, target: str) -> None:
        """Make a link."""
        super().link(path, target)
        self._event("link " + path)

    def settle(self) -> None:
        """What is written is on this disk at once."""

    def write_setting(self, path: str, value: str) -> None:
        """Write a kernel setting."""
        super().write_setting(path, value)
        self._event("set " + path)

    def remove(self, path: str) -> None:
        """Remove a file."""
        there = self.path(path).exists() or self.path(path).is_symlink()
        super().remove(path)
        if there:
            self._event("remove " + path)


@dataclass
class CutKernel(FakeKernel):
    """One simulated host with a management interface; ``cut_after`` is the number of events after which it is cut."""

    events: int = 0
    cut_after: int | None = None
    boots: int = 1
    last: str = ""

    def __post_init__(self) -> None:
        """Lay the files that a kernel shows."""
        super().__post_init__()
        self.file("proc/sys/kernel/random/boot_id", f"boot-{self.boots}")
        self.links[MANAGEMENT] = Link("52:54:00:00:00:99", addresses=["192.0.2.10/24"])
        self.routes.append({"dst": "default", "gateway": GATEWAY, "dev": MANAGEMENT, "protocol": "dhcp", "flags": []})
        for folder in ("run", "usr/local/lib", "etc/systemd/system/multi-user.target.wants"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)

    def event(self, what: str) -> None:
        """Something was done; it may end after it."""
        self.events += 1
        self.last = what
        if self.cut_after is not None and self.events > self.cut_after:
            self.cut_after = None
            raise Cut(what)

    def host(self) -> Host:
        """The library's view of this host."""
        return CutHost(self, self.root, lambda name: "/usr/bin/" + name, lambda device: 4096)

    def execute(self, command: Sequence[str], stdin: str | None, timeout: float) -> Completed:
        """Answer one command."""
        done = super().execute(command, stdin, timeout)
        if not self.log[-1].startswith("read: "):
            self.event(" ".join(command))
        return done

    def boot(self) -> list[str]:
        """Power off and on; what the units say."""
        self.cut_after, self.boots = None, self.boots + 1
        management = self.links.pop(MANAGEMENT)
        default = [route for route in self.routes if route["dev"] == MANAGEMENT]
        self.reboot()
        self.links[MANAGEMENT] = management
        self.routes += default
        self.file("proc/sys/net/ipv4/ip_forward", "0")
        self.file("proc/sys/kernel/random/boot_id", f"boot-{self.boots}")
        return self.start_units() + self.revert_unit()

    def revert_unit(self) -> list[str]:
        """Start the revert unit, as a boot or its timer does."""
        there = (self.root / units.REVERT_LINK.lstrip("/")).is_symlink()
        if not there or not (self.root / marks.CHANGE_PROGRAM_PATH.lstrip("/")).exists():
            return []
        return revert.run(self.host(), lambda seconds: None)

    def copy(self, root: Path) -> CutKernel:
        """The same host once more, below another directory."""
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self.root, root, symlinks=True)
        for path in root.rglob("*"):
            if path.is_symlink() and str(path.readlink()).startswith(str(self.root)):
                target = root / path.readlink().relative_to(self.root)
                path.unlink()
                path.symlink_to(target)
        made = copy.deepcopy(self)
        made.root, made.events, made.cut_after = root, 0, None
        return made

    def standing(self) -> dict[str, Any]:
        """Everything that a change could have touched; the order of forward rules says nothing, nor does the boot."""
        seen = self.memory()
        seen["rules"].sort()
        del seen["files"]["proc/sys/kernel/random/boot_id"]
        return seen


def cuts(pattern: CutKernel, root: Path, work: Callable[[CutKernel], Any]) -> Iterator[tuple[CutKernel, str]]:
    """Copies of a host, each cut one event later in the same work, and after what; the whole work is not among them."""
    for number in itertools.count():
        made = pattern.copy(root)
        made.cut_after = number
        try:
            work(made)
        except Cut as cut:
            yield made, f"cut {number} after {cut}"
        else:
            return


def difference(found: dict[str, Any], wanted: dict[str, Any], where: str) -> str:
    """What differs between two hosts' standing, in short; empty when nothing does."""
    told = []
    for name in wanted:
        if found[name] == wanted[name]:
            continue
        if isinstance(wanted[name], dict):
            keys = sorted({*found[name], *wanted[name]})
            told += [
                f"{name} {key}: {found[name].get(key)!r:.700} for {wanted[name].get(key)!r:.700}"
                for key in keys
                if found[name].get(key) != wanted[name].get(key)
            ]
        else:
            told += [f"{name} has {item}" for item in found[name] if item not in wanted[name]]
            told += [f"{name} lacks {item}" for item in wanted[name] if item not in found[name]]
    return "; ".join([where, *told]) if told else ""
