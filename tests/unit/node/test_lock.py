"""One piece of work on a host at a time."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import lock
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    (tmp_path / "run").mkdir()
    return Host(root=tmp_path)


def test_the_holder_is_named(host: Host) -> None:
    with (
        lock.hold(host, "mesh-setup of root@desk"),
        pytest.raises(HostError) as refused,
        lock.hold(host, "x", wait=0),
    ):
        pass
    assert str(refused.value) == (
        f"mesh-setup of root@desk (process {os.getpid()}) is at work on this host: wait for it to end, then run again"
    )


def test_nothing_is_left_after_it(host: Host) -> None:
    with pytest.raises(HostError, match="broke"), lock.hold(host, "x"):
        raise HostError("broke")
    assert not list((host.root / "run").iterdir())


def test_the_next_one_waits_its_turn(host: Host) -> None:
    inside: list[str] = []
    begun = threading.Event()

    def first() -> None:
        with lock.hold(host, "first"):
            begun.set()
            time.sleep(0.5)
            inside.append("first")

    other = threading.Thread(target=first)
    other.start()
    begun.wait()
    with lock.hold(host, "second", wait=5):
        inside.append("second")
    other.join()
    assert inside == ["first", "second"]


def test_many_never_hold_it_together(host: Host) -> None:
    """The file goes with each holder, so one that waits may have opened a file that is gone."""
    at_work, most, done = [0], [0], []

    def one() -> None:
        for _ in range(10):
            with lock.hold(host, "x", wait=60):
                at_work[0] += 1
                most[0] = max(most[0], at_work[0])
                time.sleep(0.001)
                at_work[0] -= 1
        done.append(True)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most[0], len(done)) == (1, 4)


def test_a_started_process_does_not_hold_it(host: Host) -> None:
    with lock.hold(host, "x"):
        child = subprocess.Popen(["sleep", "20"])
    try:
        with lock.hold(host, "y", wait=0):
            pass
    finally:
        child.kill()
        child.wait()
