"""How QEMU is started and spoken to."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.lab import machine
from ansible_collections.sparkring.cluster.plugins.module_utils.lab.commands import LabError
from ansible_collections.sparkring.cluster.plugins.module_utils.lab.image import Image

IMAGE = Image("/image", "/repository")


def started(monkeypatch: pytest.MonkeyPatch, snapshot: str | None) -> list[str]:
    commands: list[list[str]] = []
    monkeypatch.setattr(machine, "run", lambda command, **_: commands.append(command))
    machine.Machine(2, "/lab/hosts/spark2", "/run/lab").start(IMAGE, "tcg", 1024, snapshot)
    return commands[0]


def test_start_inside_the_namespace_with_five_nics(monkeypatch: pytest.MonkeyPatch) -> None:
    command = started(monkeypatch, None)
    assert command[:4] == ["ip", "netns", "exec", "sparkring-lab"]
    nics = [part for part in command if part.startswith("virtio-net-pci")]
    assert [nic.split(",mac=")[1].split(",")[0] for nic in nics] == [f"52:54:00:02:00:0{index}" for index in range(5)]
    assert ["host_mtu=9000" in nic for nic in nics] == [False, True, True, True, True]
    assert "-loadvm" not in command


def test_start_from_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    assert started(monkeypatch, "booted")[-2:] == ["-loadvm", "booted"]


@pytest.fixture
def spoken(tmp_path: Path) -> Callable[[dict[str, Any]], tuple[machine.Machine, list[dict[str, Any]]]]:
    """A stand-in QMP server that answers every command of a kind with one message."""

    def serve(answers: dict[str, Any]) -> tuple[machine.Machine, list[dict[str, Any]]]:
        heard: list[dict[str, Any]] = []
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "spark0.sock"))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rw") as stream:
                stream.write('{"QMP": {"version": {}}}\n')
                stream.flush()
                for line in stream:
                    heard.append(json.loads(line))
                    stream.write('{"event": "SOMETHING"}\n')
                    stream.write(json.dumps(answers.get(heard[-1]["execute"], {"return": {}})) + "\n")
                    stream.flush()

        threading.Thread(target=answer, daemon=True).start()
        return machine.Machine(0, str(tmp_path), str(tmp_path)), heard

    return serve


def test_links_of_both_functions_go_down(spoken: Any) -> None:
    host, heard = spoken({})
    host.set_links((1, 2), False)
    assert heard[1:] == [
        {"execute": "set_link", "arguments": {"name": "nic1", "up": False}},
        {"execute": "set_link", "arguments": {"name": "nic2", "up": False}},
    ]


def test_what_the_monitor_says_is_an_error(spoken: Any) -> None:
    host, _ = spoken({"human-monitor-command": {"return": "Error: no such snapshot\r\n"}})
    with pytest.raises(LabError, match="spark0 refused `loadvm x`: Error: no such snapshot"):
        host.monitor("loadvm x")


def test_qmp_errors_are_told(spoken: Any) -> None:
    host, _ = spoken({"stop": {"error": {"class": "GenericError", "desc": "not now"}}})
    with pytest.raises(LabError, match="QEMU refused stop: not now"):
        host.tell({"execute": "stop"})


def test_another_process_with_the_same_id_is_not_the_machine(tmp_path: Path) -> None:
    (tmp_path / "spark0.pid").write_text("1\n")
    assert machine.Machine(0, str(tmp_path), str(tmp_path)).process() is None


def test_acceleration_is_asked_once_per_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Image] = []

    def probe(image: Image) -> bool:
        asked.append(image)
        return True

    monkeypatch.setattr(machine, "_runs_under_kvm", probe)
    monkeypatch.setattr(os.path, "exists", lambda path: True)
    cache = tmp_path / "acceleration.json"
    assert machine.find_acceleration(IMAGE, cache) == "kvm"
    assert machine.find_acceleration(IMAGE, cache) == "kvm"
    assert len(asked) == 1
    cache.write_text(json.dumps({"boot": "an earlier one", "acceleration": "kvm"}))
    monkeypatch.setattr(machine, "_runs_under_kvm", lambda image: False)
    assert machine.find_acceleration(IMAGE, cache) == "tcg"
