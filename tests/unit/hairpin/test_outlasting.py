"""A command that hangs is left to run, and the verb of the boot unit says what is wrong."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import commands, units
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import Runner
from ansible_collections.sparkring.cluster.plugins.module_utils.node.program import program_bytes

LIBRARY = Path(__file__).parents[3] / "plugins/module_utils"


def test_a_command_that_ends_gives_status_and_words() -> None:
    done = Runner().outlasting(["sh", "-c", "echo said; echo more >&2; exit 3"], 20)
    assert (done.status, done.errors.split()) == (3, ["said", "more"])
    assert Runner().outlasting(["no-such-tool"], 1).errors == "no-such-tool is not installed"


def test_a_command_that_hangs_is_neither_ended_nor_waited_for(tmp_path: Path) -> None:
    mark = tmp_path / "process"
    begun = time.monotonic()
    done = Runner().outlasting(["sh", "-c", f"echo $$ > {mark}; exec sleep 60"], 0.5)
    assert (done.status, done.errors) == (124, "no answer within 0.5 s")
    assert time.monotonic() - begun < 20
    process = int(mark.read_text())
    try:
        assert Path(f"/proc/{process}/comm").read_text() == "sleep\n"
        assert os.getsid(process) == process
    finally:
        os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)


def test_a_command_in_time_has_its_answer_and_one_that_is_late_is_ended() -> None:
    done = Runner().execute(["sh", "-c", "cat; echo more >&2; exit 3"], "given", 20)
    assert done == (3, "given", "more\n")
    assert Runner().execute(["no-such-tool"], None, 1).status == 127
    begun = time.monotonic()
    assert Runner().execute(["sleep", "60"], None, 0.3) == (124, "", "no answer within 0.3 s")
    assert time.monotonic() - begun < 20


def test_a_command_that_cannot_be_ended_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that hangs in the kernel: the signal has no effect."""
    held: list[subprocess.Popen[str]] = []
    monkeypatch.setattr(commands, "DEATH_SECONDS", 0.2)
    kill = subprocess.Popen.kill
    monkeypatch.setattr(subprocess.Popen, "kill", lambda child: held.append(child))
    assert Runner().execute(["sleep", "60"], None, 0.2).status == 124
    kill(held[0])
    held[0].communicate()


def test_the_verb_of_the_boot_unit(tmp_path: Path) -> None:
    path = tmp_path / "node.pyz"
    path.write_bytes(program_bytes(LIBRARY))
    done = subprocess.run([sys.executable, "-I", str(path), "hairpin"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    words = ["ExecStart=/usr/bin/python3", "-IS", "/usr/local/lib/sparkring-node/node.pyz", "hairpin", "boot"]
    assert " ".join(words) in units.HAIRPIN_TEXT.splitlines()


def test_the_unit_comes_before_the_network_and_is_not_killed_midway() -> None:
    lines = units.HAIRPIN_TEXT.splitlines()
    before = {word for line in lines if line.startswith("Before=") for word in line[7:].split()}
    assert {"network-pre.target", "NetworkManager.service", "sparkring-node-fabric.service"} <= before
    assert {"DefaultDependencies=no", "KillMode=mixed", "RemainAfterExit=yes"} <= set(lines)
