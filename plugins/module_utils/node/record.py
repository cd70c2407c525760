"""The runtime record: what was here before us, so that removal can put it back.

It lives below /run: a reboot returns the kernel to its own state, and the record with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from ..contract import marks
from .host import Host

PATH = marks.RUN_DIR + "/owned.json"


@dataclass
class Record:
    """Prior values of settings we changed, and netdevs whose clsact qdisc we added."""

    sysctls: dict[str, str] = field(default_factory=dict)
    qdiscs: list[str] = field(default_factory=list)


def read(host: Host) -> Record:
    """The record; an empty one where there is none or it cannot be read."""
    try:
        value = json.loads(host.read(PATH) or "{}")
        return Record(dict(value.get("sysctls", {})), list(value.get("qdiscs", [])))
    except (ValueError, AttributeError, TypeError):
        return Record()


def write(host: Host, record: Record) -> None:
    """Store the record, or remove it when it holds nothing."""
    if not record.sysctls and not record.qdiscs:
        host.remove(PATH)
        host.remove_empty(marks.RUN_DIR)
        return
    value = {"sysctls": record.sysctls, "qdiscs": sorted(set(record.qdiscs))}
    host.write(PATH, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode(), 0o644)
