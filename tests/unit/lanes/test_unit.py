"""The responder's unit starts only on the planned host, and its key never leaves a 0600 file."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.node import responder
from ansible_collections.sparkring.cluster.plugins.module_utils.node.responder import ResponderError

from . import ring
from .conftest import free_port

KEY = ring.KEY.decode()
TOOL = """#!{python} -SE
import json, os, stat, sys
with open({calls!r}, "a") as calls:
    calls.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
if "systemd-run" in sys.argv[0]:
    assert stat.S_IMODE(os.stat({key!r}).st_mode) == 0o600
    sys.exit(open({verdict!r}).read() or 0)
"""


class Machine:
    """A host whose marks point into a folder, with stand-ins for systemd's tools."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plan = root / "plan.json"
        self.program = root / "node.pyz"
        self.key = root / "run/responder.key"
        self.verdict = root / "verdict"
        self._calls = root / "calls"
        self.plan.write_text(json.dumps(ring.plain_plan("spark0")))
        self.program.write_text("")
        self.verdict.write_text("")
        (root / "bin").mkdir()
        for tool in ("systemctl", "systemd-run"):
            values = {"calls": str(self._calls), "key": str(self.key), "verdict": str(self.verdict)}
            (root / "bin" / tool).write_text(TOOL.format(python=sys.executable, **values))
            (root / "bin" / tool).chmod(0o755)
        monkeypatch.setenv("PATH", f"{root / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setattr(marks, "PLAN_PATH", str(self.plan))
        monkeypatch.setattr(marks, "PROGRAM_PATH", str(self.program))
        monkeypatch.setattr(marks, "RUN_DIR", str(root / "run"))
        monkeypatch.setattr(marks, "RESPONDER_KEY_PATH", str(self.key))

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self._calls.read_text().splitlines()] if self._calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_start_runs_a_transient_unit_that_finds_its_key_in_a_file(machine: Machine) -> None:
    responder.start(ring.plain_plan("spark0"), KEY)
    assert machine.key.read_text() == KEY
    stopped, reset, started = machine.calls()
    assert (stopped[:2], reset[:2]) == (["systemctl", "stop"], ["systemctl", "reset-failed"])
    assert started[:4] == ["systemd-run", "--quiet", "--collect", "--unit=sparkring-node-responder.service"]
    assert "--property=Type=notify" in started
    assert started[-4:] == [sys.executable, "-IS", str(machine.program), "respond"]
    assert not any(KEY in word for call in machine.calls() for word in call)


def test_a_unit_that_does_not_start_leaves_no_key(machine: Machine) -> None:
    machine.verdict.write_text("Job failed")
    with pytest.raises(ResponderError) as caught:
        responder.start(ring.plain_plan("spark0"), KEY)
    assert str(caught.value) == (
        "spark0: sparkring-node-responder.service did not start (Job failed): "
        "read journalctl -u sparkring-node-responder.service"
    )
    assert not machine.key.exists()


def test_another_plan_is_refused(machine: Machine) -> None:
    with pytest.raises(ResponderError, match=r"^spark0 holds another plan at .*: run mesh-setup first$"):
        responder.start(ring.plain_plan("spark0", ring="other"), KEY)
    machine.plan.unlink()
    with pytest.raises(ResponderError, match=r"^spark0 holds no plan at .*: run mesh-setup first$"):
        responder.start(ring.plain_plan("spark0"), KEY)
    assert (machine.calls(), machine.key.exists()) == ([], False)


def test_a_missing_program_is_named(machine: Machine) -> None:
    machine.program.unlink()
    with pytest.raises(ResponderError, match=r"^spark0 lacks .*node.pyz: run mesh-setup first$"):
        responder.start(ring.plain_plan("spark0"), KEY)
    assert machine.calls() == []


def test_stop_removes_the_key(machine: Machine) -> None:
    responder.start(ring.plain_plan("spark0"), KEY)
    responder.stop()
    assert not machine.key.exists()
    assert machine.calls()[-2] == ["systemctl", "stop", "sparkring-node-responder.service"]


def test_the_unit_takes_its_key_and_says_when_it_listens(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.key.parent.mkdir()
    machine.key.write_text(KEY)
    monkeypatch.setattr(responder, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(responder.Responder.__init__, "__defaults__", (free_port(),))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        assert responder.main() == 0
        assert systemd.recv(100).startswith(b"READY=1")
    assert not machine.key.exists()


def test_the_unit_without_key_says_so(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert responder.main() == 1
    assert capsys.readouterr().err.startswith("The responder cannot start: ")
