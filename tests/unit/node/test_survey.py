"""The survey is raw, whole, and equal before setup and after removal."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, profiles, survey
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import (
    CommandFailed,
    Completed,
    Runner,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host
from tests.fake_kernel import FakeKernel

from . import ring

FIXTURES = Path(__file__).parents[2] / "fixtures/node"
CW = ring.NETDEV["cw_primary"]


class Recorded(Runner):
    """Answers from a table of recorded outputs; anything else is a tool that is not installed."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    def execute(self, command: Sequence[str], stdin: str | None, timeout: float) -> Completed:
        text = self.answers.get(" ".join(command))
        return Completed(127, "", f"{command[0]} is not installed") if text is None else Completed(0, text, "")


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    made = ring.fake(tmp_path, docker=True)
    made.file("proc/mounts", "/dev/vda1 / ext4 rw 0 0\nproc /proc proc rw 0 0")
    made.file("proc/meminfo", "MemTotal:       981700 kB\nMemFree: 5 kB\nMemAvailable:   752512 kB")
    made.file("etc/os-release", 'NAME=x\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"')
    return made


def test_survey_holds_what_its_schema_promises(kernel: FakeKernel) -> None:
    kernel.set_carrier(CW, False)
    found = survey.take(kernel.host())
    assert found["schema"] == "sparkring.survey/1" and found["hostname"] == "spark0"
    assert found["identity"] == ring.IDENTITY
    link = next(item for item in found["links"] if item["netdev"] == CW)
    assert link == {
        "netdev": CW,
        "mac": "52:54:00:00:00:01",
        "mtu": 1500,
        "operstate": "down",
        "carrier": False,
        "speed_mbps": None,
        "driver": None,
        "bdf": None,
        "master": None,
        "addresses": [],
        "link_local": [],
    }
    device = next(item for item in found["rdma"] if item["device"] == "rocep1s0f0")
    assert device["driver"] == "rdma_rxe" and device["active_mtu"] == 4096
    assert found["memory"] == {"total_kib": 981700, "available_kib": 752512}
    assert found["kernel"]["os"] == "Debian GNU/Linux 12 (bookworm)"
    assert found["forward"]["backend"] == "nf_tables" and found["forward"]["docker_user"] is True
    assert [item["mount"] for item in found["disk"]] == ["/"]
    assert kernel.changing() == []
    json.dumps(found)


def test_survey_after_removal_equals_the_one_before_setup(kernel: FakeKernel) -> None:
    before = survey.take(kernel.host())
    fabric.setup(kernel.host(), ring.host_plan(), ring.PROGRAM, None, False)
    during = survey.stable(survey.take(kernel.host()))
    assert {part for part in during if during[part] != survey.stable(before)[part]} == {
        "links",
        "routes",
        "sysctls",
        "tc",
        "forward",
        "networkmanager",
    }
    fabric.remove(kernel.host(), ring.host_plan(), False)
    assert survey.stable(survey.take(kernel.host())) == survey.stable(before)


def host(root: Path, answers: dict[str, str]) -> Host:
    return Host(
        Recorded({"ip -j -d addr show": "[]", "ip -j route show table all": "[]", "ip -j neigh show": "[]"} | answers),
        root,
        lambda name: None,
    )


def test_a_host_without_tools_is_still_surveyed(tmp_path: Path) -> None:
    found = survey.take(host(tmp_path, {}))
    assert found["identity"] == "" and found["networkmanager"]["running"] is False
    assert set(found["tools"].values()) == {None}


@pytest.mark.parametrize("name", ["lldp-many.json", "lldp-one.json", "lldp-none.json"])
def test_lldp_is_read_in_all_its_forms(tmp_path: Path, name: str) -> None:
    text = (FIXTURES / name).read_text()
    far = {
        "netdev": "enp1s0f0np0",
        "chassis_name": "spark1",
        "chassis_id": "52:54:00:01:00:00",
        "port_id": "52:54:00:01:00:03",
        "port_descr": "enp1s0f1np1",
    }
    sibling = {
        "netdev": "enp1s0f0np0",
        "chassis_name": None,
        "chassis_id": "52:54:00:00:00:00",
        "port_id": "52:54:00:00:00:02",
        "port_descr": None,
    }
    expected = {"lldp-many.json": [sibling, far], "lldp-one.json": [far], "lldp-none.json": []}[name]
    assert survey.take(host(tmp_path, {"lldpctl -f json": text}))["lldp"] == expected


def test_management_is_the_given_interface_or_the_one_of_the_ssh_session(tmp_path: Path) -> None:
    entry: dict[str, Any] = {
        "ifname": "enP7s7",
        "addr_info": [{"family": "inet", "local": "192.0.2.10", "prefixlen": 24}],
    }
    answers = {"ip -j -d addr show": json.dumps([entry])}
    expected = {"netdev": "enP7s7", "address": "192.0.2.10", "prefix": 24}
    assert survey.take(host(tmp_path, answers), "enP7s7")["management"] == expected
    assert survey.take(host(tmp_path, answers), "eth9")["management"] is None
    assert survey.take(host(tmp_path, answers))["management"] is None
    for process, parent, environment in (
        (os.getpid(), 77, b"A=1\0"),
        (77, 1, b"SSH_CONNECTION=192.0.2.1 5 192.0.2.10 22\0"),
    ):
        folder = tmp_path / f"proc/{process}"
        folder.mkdir(parents=True)
        (folder / "environ").write_bytes(environment)
        (folder / "status").write_text(f"Name: x\nPPid:\t{parent}\n")
    assert survey.take(host(tmp_path, answers))["management"] == expected


def test_multicast_neighbours_that_answered(kernel: FakeKernel) -> None:
    survey.take(kernel.host())
    asked = [line for line in kernel.log if "ff02::1" in line]
    assert len(asked) == 4 and all("-w 2 -I en" in line for line in asked)


def test_profile_rows_with_colons_are_read(tmp_path: Path) -> None:
    kernel = ring.fake(tmp_path)
    kernel.add_profile("odd: name", CW, active=True)
    (profile,) = profiles.observe(kernel.host()).profiles
    assert (profile.name, profile.active_on, profile.netdev, profile.role) == ("odd: name", CW, CW, None)


def test_errors_are_one_sentence_with_the_command_and_what_it_said() -> None:
    class Failing(Runner):
        def execute(self, command: Sequence[str], stdin: str | None, timeout: float) -> Completed:
            return Completed(2, "", "RTNETLINK answers: File exists\nCommand failed -:2\n")

    with pytest.raises(CommandFailed) as raised:
        Failing().batch("ip", ["route add a", "route add b"])
    assert str(raised.value) == "ip route add b: RTNETLINK answers: File exists (exit 2)"


def test_a_real_command_runs_without_a_shell() -> None:
    runner = Runner()
    assert runner.run(["printf", "%s", "a b; echo c"]) == "a b; echo c"
    with pytest.raises(CommandFailed, match=r"^no-such-tool: no-such-tool is not installed \(exit 127\)$"):
        runner.run(["no-such-tool"])
    with pytest.raises(CommandFailed, match=r"no answer within 0\.05 s"):
        runner.run(["sleep", "2"], timeout=0.05)
