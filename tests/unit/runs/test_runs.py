"""Whose run it is, and which earlier one it may go on with."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils import runs


def test_the_operator_is_user_and_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.getpass, "getuser", lambda: "ann")
    monkeypatch.setattr(runs.socket, "gethostname", lambda: "desk")
    assert runs.operator() == "ann@desk"


def test_a_living_run_has_not_ended() -> None:
    assert not runs.ended(runs.name(os.getpid()))
    assert not runs.ended(str(os.getpid()))


def test_a_killed_run_has_ended_before_anyone_has_waited_for_it() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        run = runs.name(child.pid)
        assert not runs.ended(run)
        child.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert runs.ended(run)
    assert runs.ended(run) and runs.ended(run.partition("/")[0])


def test_another_process_of_that_number_is_another_run() -> None:
    process, start = runs.name(os.getpid()).split("/")
    assert runs.ended(f"{process}/{int(start) - 1}")


def test_a_system_that_shows_no_start_is_asked_for_the_process_alone(tmp_path: Path) -> None:
    assert runs.name(os.getpid(), tmp_path) == str(os.getpid())
    assert not runs.ended(f"{os.getpid()}/1", tmp_path)


GONE = {"failed": True, "pending": {"operator": "ann@desk", "run": "gone"}}


@pytest.mark.parametrize(
    ("answer", "continued"),
    [
        (GONE, "gone"),
        ({**GONE, "pending": {"operator": "ann@desk", "run": "alive"}}, None),
        ({**GONE, "pending": {"operator": "bob@desk", "run": "gone"}}, None),
        ({**GONE, "failed": False}, None),
        ({"failed": True, "msg": "No space left"}, None),
        ({"changed": True, "pending": True}, None),
    ],
)
def test_only_a_gone_run_of_the_same_operator_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any], continued: str | None
) -> None:
    monkeypatch.setattr(runs, "ended", lambda run: run == "gone")
    assert runs.continued(answer, "ann@desk") == continued
