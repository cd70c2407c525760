# SPDX-License-Identifier: Apache-2.0
"""Whose run this is: what hosts are told of it, and whether an earlier one has ended."""

from __future__ import annotations

import getpass
import math
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROC = Path("/proc")
TURN_SECONDS = 180
"""What the slowest host may take for its part of a change and for the proof after it, with room."""


def patience(hosts: int, at_once: int) -> int:
    """Seconds that a change stays unconfirmed: the first hosts wait until the last ones are changed too."""
    return TURN_SECONDS * max(1, math.ceil(hosts / at_once))


def operator() -> str:
    """``user@controller`` of this run."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def name(process: int, proc: Path = PROC) -> str:
    """What tells a run from every other on this controller: its process and, where the system says, its start."""
    started = _stat(process, proc)
    return f"{process}/{started[1]}" if started else str(process)


def ended(run: str, proc: Path = PROC) -> bool:
    """Whether the process of a run on this controller is gone."""
    process, _, start = run.partition("/")
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, ValueError):
        return False
    now = _stat(int(process), proc)
    return now is not None and (now[0] == "Z" or (bool(start) and now[1] != start))


def continued(refused: Mapping[str, Any], who: str) -> str | None:
    """The run that this one may go on with, when a host refused because that one's change is pending there.

    Only one of the same operator on the same controller, and only when it is gone.
    """
    pending = refused.get("pending")
    if not refused.get("failed") or not isinstance(pending, Mapping) or pending.get("operator") != who:
        return None
    run = str(pending.get("run"))
    return run if ended(run) else None


def _stat(process: int, proc: Path) -> tuple[str, str] | None:
    """State and start of a process, where the system shows them in files."""
    try:
        fields = (proc / str(process) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], fields[19]
