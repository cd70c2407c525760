"""The journal of driver restarts: what was begun is on the disk before it is begun.

It outlives a reboot, so that a restart that hung the host is not tried again at the next boot. One
entry for each function, the latest.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass

from ..contract import documents, marks
from .commands import HostError
from .host import Host

PATH = marks.CONFIG_DIR + "/hairpin.json"

STARTED = "started"
DONE = "done"
REFUSED = "refused"
"""The driver would not restart, and the values are what they were."""
FAILED = "failed"


@dataclass(frozen=True)
class Entry:
    """One restart of one function's driver.

    ``boot`` is the kernel's boot id, ``restarts`` the driver's count before, ``queue_size`` and
    ``num_queues`` the values before, ``at`` the time in UTC.
    """

    state: str
    boot: str
    mode: str
    netdev: str
    restarts: int
    queue_size: int
    num_queues: int
    firmware: str
    at: str
    sentence: str = ""

    @property
    def unresolved(self) -> bool:
        """Whether it is open how this restart ended, or it ended badly."""
        return self.state in (STARTED, FAILED)


def boot_id(host: Host) -> str:
    """The kernel's id of this boot."""
    return host.read("/proc/sys/kernel/random/boot_id") or ""


def now() -> str:
    """The time in UTC, as entries hold it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def read(host: Host) -> dict[str, Entry] | None:
    """Entries by PCI address; None for a journal that is there and cannot be understood."""
    data = host.read_bytes(PATH)
    if data is None:
        return None if host.path(PATH).exists() else {}
    try:
        return {name: documents.from_plain(Entry, value) for name, value in json.loads(data).items()}
    except (ValueError, AttributeError):
        return None


def write(host: Host, entries: dict[str, Entry]) -> None:
    """Replace the journal; on return it is on the disk, its name included."""
    text = json.dumps({name: asdict(entry) for name, entry in entries.items()}, indent=2, sort_keys=True)
    try:
        host.write(PATH, text.encode() + b"\n", 0o644)
    except OSError as error:
        raise HostError(
            f"{PATH} cannot be written ({error.strerror}), and without it no driver is restarted"
        ) from error


def note(host: Host, bdf: str, entry: Entry) -> None:
    """Make an entry the latest of its function."""
    write(host, {**(read(host) or {}), bdf: entry})


def suspended(host: Host) -> str:
    """Why no restart may be made at boot, in one sentence; empty where one may.

    An unfinished restart of this boot counts too: only a run that someone watches may go on from it.
    """
    entries = read(host)
    if entries is None:
        return f"{PATH} is damaged"
    open_ends = [(name, entry) for name, entry in sorted(entries.items()) if entry.unresolved]
    if not open_ends:
        return ""
    name, entry = open_ends[0]
    ending = entry.sentence or "it did not come to an end"
    return f"the driver restart of {entry.netdev} ({name}) begun at {entry.at} is not resolved: {ending}"


def owed(host: Host, bdf: str, restarts: int | None) -> bool:
    """Whether values of this boot were set for a restart that did not take place."""
    entry = (read(host) or {}).get(bdf)
    return entry is not None and entry.unresolved and entry.boot == boot_id(host) and entry.restarts == restarts
