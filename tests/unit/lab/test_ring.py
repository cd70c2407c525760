"""The ring as a whole, with recorded machines and network."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.lab import network, ring
from ansible_collections.sparkring.cluster.plugins.module_utils.lab.commands import LabError
from ansible_collections.sparkring.cluster.plugins.module_utils.lab.image import Image

IMAGE = Image("/image", "/repository")


class RecordedMachine:
    """Says what it was asked to do; runs unless its host is switched off."""

    def __init__(self, host: int, log: list[Any], off: set[int]) -> None:
        self.host, self.log, self.off, self.console = host, log, off, "console.log"

    def process(self) -> int | None:
        return None if self.host in self.off else 1000 + self.host

    def tell(self, *commands: dict[str, Any]) -> list[Any]:
        self.log += [(self.host, command["execute"]) for command in commands]
        return [{}]

    def monitor(self, line: str) -> None:
        self.log.append((self.host, line))

    def set_links(self, nics: tuple[int, ...], up: bool) -> None:
        self.log.append((self.host, nics, up))

    def start(self, image: Image, acceleration: str, memory_mib: int, snapshot: str | None) -> None:
        self.off.discard(self.host)
        self.log.append((self.host, "start", snapshot))

    def stop(self) -> None:
        self.off.add(self.host)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A path of three that runs; everything it is told lands in the list."""
    said: list[Any] = []
    off: set[int] = set()
    (tmp_path / "hosts").mkdir()
    monkeypatch.setattr(ring, "STATE", str(tmp_path / "lab.json"))
    monkeypatch.setattr(ring, "check_requirements", lambda: None)
    monkeypatch.setattr(network, "exists", lambda: True)
    monkeypatch.setattr(network, "set_cable", lambda layout, cable, plugged: said.append((cable, plugged)))
    monkeypatch.setattr(network, "recable", lambda layout: said.append(("recable", layout.wiring)))
    monkeypatch.setattr(ring, "DARK_SECONDS", 0)
    monkeypatch.setattr(ring.Lab, "machines", property(lambda lab: [RecordedMachine(h, said, off) for h in range(3)]))
    monkeypatch.setattr(ring, "_each", lambda machines, action: [action(machine) for machine in machines])
    monkeypatch.setattr(ring, "_start_services", lambda lab: said.append("services start"))
    monkeypatch.setattr(ring, "_stop_services", lambda: said.append("services stop"))
    monkeypatch.setattr(ring, "_wait", lambda lab, machines, then: said.append(("wait", len(machines), then.__name__)))
    ring.Lab(str(tmp_path), "path-3", 1024, IMAGE, "tcg", []).save()
    return said


def test_running_lab_is_left_alone(log: list[Any], tmp_path: Path) -> None:
    result = ring.up(str(tmp_path), "path-3", 1024, IMAGE)
    assert (result["changed"], result["start"], log) == (False, "running", [])


def test_a_dead_host_is_started_again(log: list[Any], tmp_path: Path) -> None:
    ring.power(1, "off")
    result = ring.up(str(tmp_path), "path-3", 1024, IMAGE)
    assert result["changed"] is True
    assert log[0] == (1, "start", None) and log[-1] == ("wait", 1, "_finish_boot")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"layout": "cycle-3"}, "a path-3 with 1024 MiB a host, not what is asked for; run: make lab-down"),
        ({"memory_mib": 2048}, "not what is asked for; run: make lab-down"),
        ({"image": Image("/newer", "/repository")}, "not what is asked for; run: make lab-down"),
        ({"directory": "/elsewhere"}, "runs on this machine already; run: make lab-down"),
    ],
)
def test_another_lab_is_refused(log: list[Any], tmp_path: Path, other: dict[str, Any], message: str) -> None:
    asked = {"directory": str(tmp_path), "layout": "path-3", "memory_mib": 1024, "image": IMAGE, **other}
    with pytest.raises(LabError, match=message):
        ring.up(**asked)
    assert log == []


def test_pulled_cable_takes_both_ends(log: list[Any]) -> None:
    assert ring.set_cable(1, False) is True
    assert (0, True) in log and (1, False) in log
    assert (1, (1, 2), False) in log and (2, (3, 4), False) in log
    assert (0, (3, 4), False) in log, "the open port of the path's end never has carrier"
    assert (0, (1, 2), True) in log and (1, (3, 4), True) in log
    assert ring.set_cable(1, False) is False
    assert ring.set_cable(1, True) is True
    assert log[-1] == (2, (3, 4), True) or (2, (3, 4), True) in log


def test_snapshot_stands_still_and_remembers_cables(log: list[Any]) -> None:
    ring.set_cable(0, False)
    del log[:]
    ring.save_snapshot("before")
    assert log == [(host, step) for step in ("stop", "savevm before", "cont") for host in range(3)]
    ring.set_cable(0, True)
    ring.power(2, "off")
    del log[:]
    ring.restore_snapshot("before")
    assert log[:8] == [
        "services stop",
        *((host, step) for step in ("stop", "loadvm before") for host in range(2)),
        ("recable", ()),
        *((host, "cont") for host in range(2)),
    ]
    assert (2, "start", "before") in log and (0, False) in log
    assert log[-2:] == ["services start", ("wait", 3, "_set_clock")]
    restored = ring.running()
    assert restored is not None and restored.pulled == [0]


def test_snapshot_names(log: list[Any]) -> None:
    for name in ("", "booted", "a b", "x;quit"):
        with pytest.raises(LabError, match="cannot name a snapshot"):
            ring.save_snapshot(name)
    with pytest.raises(LabError, match="no snapshot 'never'; it has none"):
        ring.restore_snapshot("never")
    ring.power(0, "off")
    with pytest.raises(LabError, match="spark0 is off; run lab_up first"):
        ring.save_snapshot("a")


def test_power(log: list[Any]) -> None:
    assert ring.power(0, "reset") is True and log == [(0, "system_reset")]
    assert (ring.power(0, "off"), ring.power(0, "off"), ring.power(0, "on"), ring.power(0, "on")) == (
        True,
        False,
        True,
        False,
    )
    with pytest.raises(LabError, match="no host 3; its hosts are 0 to 2"):
        ring.power(3, "on")


def test_saved_boot_depends_on_what_it_was_made_from(log: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring, "run", lambda command: "QEMU emulator version 7.2\n")
    lab = ring.running()
    assert lab is not None
    stamp = ring._stamp(lab, [b"identity"])
    assert stamp == ring._stamp(lab, [b"identity"])
    assert stamp != ring._stamp(lab, [b"another"])
    assert stamp != ring._stamp(dataclasses.replace(lab, acceleration="kvm"), [b"identity"])
    assert stamp != ring._stamp(dataclasses.replace(lab, image=Image("/newer", "/repository")), [b"identity"])


def test_commands_need_a_lab(log: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "exists", lambda: False)
    with pytest.raises(LabError, match="No lab runs on this machine; run: make lab"):
        ring.set_cable(0, False)


def test_cabling_the_ring_otherwise_and_back(log: list[Any]) -> None:
    wiring = (((0, 0), (0, 1)), ((1, 0), (2, 0)))
    assert ring.set_cables("spark0.p0-spark0.p1,spark1.p0-spark2.p0") is True
    assert [step for step in log if step[0] == "recable"] == [("recable", wiring)]
    assert log.index((0, (1, 2, 3, 4), False)) < log.index(("recable", wiring)) < log.index((0, (1, 2), True))
    assert log[-1] == (2, (3, 4), False) and (2, (1, 2), True) in log
    assert ring.set_cables("spark0.p0-spark0.p1 spark1.p0-spark2.p0") is False
    ring.save_snapshot("wrong")
    assert ring.set_cables("") is True
    assert ring.set_cables("spark0.p0-spark1.p1,spark1.p0-spark2.p1") is False, "these are the layout's own"
    del log[:]
    ring.restore_snapshot("wrong")
    assert ("recable", wiring) in log


@pytest.mark.parametrize(
    ("cables", "message"),
    [
        ("spark0-spark1", "'spark0-spark1' is no cable; write it as spark0.p0-spark1.p1."),
        ("spark0.p0-spark3.p1", "The lab has no host 3; its hosts are 0 to 2."),
        ("spark0.p0-spark1.p1,spark2.p0-spark1.p1", "spark1.p1 has two cables; give each port one at most."),
    ],
)
def test_cables_that_cannot_be(log: list[Any], cables: str, message: str) -> None:
    with pytest.raises(LabError) as refused:
        ring.set_cables(cables)
    assert (str(refused.value), log) == (message, [])
