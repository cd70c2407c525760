"""One piece of work on a host at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ..contract import marks
from .commands import HostError
from .host import Host

PATH = marks.RUN_DIR + "/lock"
POLL_SECONDS = 0.2


class Held(HostError):
    """Somebody else is at work on the host."""


@contextlib.contextmanager
def hold(host: Host, purpose: str, wait: float = 30.0) -> Iterator[None]:
    """Be the only one at work on the host; ``purpose`` is what others read of it, like ``mesh-setup of root@desk``.

    Raises Held, which names the holder when the lock is still held after ``wait`` seconds. It ends with the
    process, and processes that this one starts do not inherit it. It cannot be held twice by one process.
    """
    path = host.path(PATH)
    deadline = time.monotonic() + wait
    while True:
        handle = _open(path)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another run"
            os.close(handle)
            if time.monotonic() >= deadline:
                raise Held(f"{holder} is at work on this host: wait for it to end, then run again") from None
            time.sleep(POLL_SECONDS)
            continue
        if _is_still(path, handle):
            break
        os.close(handle)
    try:
        with contextlib.suppress(OSError):
            # Who holds it is good to know, and not worth failing for on a full disk.
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{purpose} (process {os.getpid()})\n".encode(), 0)
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        os.close(handle)
        host.remove_empty(marks.RUN_DIR)


def _open(path: Path) -> int:
    """The open file; its folder is made again where the last holder took it away just now."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _is_still(path: Path, handle: int) -> bool:
    """Whether the locked file is the one at the path: the last holder removes it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False
