"""The survey is raw, whole, and equal before setup and after removal."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, profiles, survey, survey_system
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
        "link_local": ["fe80::1"],
        "phys_port_name": None,
        "wireless": False,
        "pcie": None,
    }
    device = next(item for item in found["rdma"] if item["device"] == "rocep1s0f0")
    assert device["driver"] == "rdma_rxe" and device["active_mtu"] == 4096
    memory = {name: value for name, value in found["memory"].items() if value is not None}
    assert memory == {"total_kib": 981700, "available_kib": 752512, "free_kib": 5}
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
        "rdma",
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


def test_a_real_command_runs_without_a_shell(tmp_path: Path) -> None:
    runner = Runner()
    assert runner.run(["printf", "%s", "a b; echo c"]) == "a b; echo c"
    with pytest.raises(CommandFailed, match=r"^no-such-tool: no-such-tool is not installed \(exit 127\)$"):
        runner.run(["no-such-tool"])
    shut = tmp_path / "shut"
    shut.touch(mode=0o600)
    with pytest.raises(CommandFailed, match=rf"^{shut}: only root may run {shut} \(exit 126\)$"):
        runner.run([str(shut)])
    with pytest.raises(CommandFailed, match=r"no answer within 0\.05 s"):
        runner.run(["sleep", "2"], timeout=0.05)


def test_without_root_the_interfaces_are_still_listed_and_what_was_not_read_is_named(kernel: FakeKernel) -> None:
    found = survey.take(kernel.host(), root=False)
    assert len(found["links"]) == 4
    assert found["privilege"] == {"root": False, "unread": list(survey.WITHOUT_ROOT)}
    assert survey.take(kernel.host(), root=True)["privilege"] == {"root": True, "unread": []}


def test_owners_of_the_network_are_read_without_what_is_secret(kernel: FakeKernel) -> None:
    kernel.file("etc/netplan/60-mine.yaml", f"  {CW}: # enp1s0f1np1\n   addresses: [10.77.0.1/24]\n   password: x")
    kernel.file("run/systemd/netif/links/3", "ADMIN_STATE=configured\nNETWORK_FILE=/run/systemd/network/10-a.network")
    found = survey.take(kernel.host())
    assert found["netplan"] == [{"file": "/etc/netplan/60-mine.yaml", "netdevs": [CW], "addresses": ["10.77.0.1/24"]}]
    assert survey_system.networkd(kernel.host(), {CW: 3, "lo": 1}) == {
        CW: {"state": "configured", "file": "/run/systemd/network/10-a.network"}
    }


def test_machine_id_is_kept_as_a_digest(kernel: FakeKernel) -> None:
    kernel.file("etc/machine-id", "0123456789abcdef0123456789abcdef")
    found = survey.take(kernel.host())["machine_id"]
    assert len(found) == 16 and found not in "0123456789abcdef0123456789abcdef"


# Written from the tools' documented forms, since no such host is at hand.
VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.173.02  Release Build  (x@y)  Tue Jul 22\n"
MODULE = """\tIdentifier                                : 0x11 (QSFP28)
\tConnector                                 : 0x23 (No separable connector)
\tLength (Copper or Active cable)           : 1m
\tVendor name                               : Amphenol
\tVendor PN                                 : NJAAKK-N911
\tVendor SN                                 : SECRET
"""
QUEUE_PAIRS = json.dumps(
    [
        {
            "ifindex": 0,
            "ifname": "rocep1s0f0",
            "port": 1,
            "lqpn": 1,
            "type": "GSI",
            "state": "RTS",
            "comm": "[ib_core]",
        },
        {"ifname": "rocep1s0f0", "lqpn": 411, "type": "RC", "state": "RTS", "pid": 9123, "comm": "VLLM::Worker"},
    ]
)


def test_a_card_is_asked_for_modules_lanes_and_users(tmp_path: Path) -> None:
    entry = {"ifname": CW, "address": "02:00:00:00:00:01", "addr_info": [], "operstate": "UP"}
    device = tmp_path / f"sys/class/net/{CW}/device"
    (tmp_path / "drivers/mlx5_core").mkdir(parents=True)
    device.mkdir(parents=True)
    (device / "driver").symlink_to(tmp_path / "drivers/mlx5_core")
    (device / "uevent").write_text("PCI_SLOT_NAME=0000:01:00.0\n")
    (device / "current_link_speed").write_text("32.0 GT/s PCIe\n")
    (device / "current_link_width").write_text("4\n")
    (device.parent / "phys_port_name").write_text("p0\n")
    (tmp_path / "var/log/journal/x").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(VERSION)
    journal = "journalctl -k -b -1 -q -o cat --no-pager -n 200 -g AER|PCIe Bus Error|mlx5"
    found = survey.take(
        host(
            tmp_path,
            {
                "ip -j -d addr show": json.dumps([entry]),
                f"ethtool -m {CW}": MODULE,
                "rdma -j resource show qp": QUEUE_PAIRS,
                journal: "mlx5_core 0000:01:00.0: Detected insufficient power on the PCIe slot (27W).\n",
            },
        )
    )
    assert found["modules"] == {
        CW: {
            "identifier": "0x11 (QSFP28)",
            "connector": "0x23 (No separable connector)",
            "length": "1m",
            "vendor": "Amphenol",
            "part": "NJAAKK-N911",
        }
    }
    (link,) = found["links"]
    assert link["phys_port_name"] == "p0" and link["pcie"]["width"] == 4 and link["pcie"]["max_width"] is None
    assert found["users"] == [
        {"ifname": "rocep1s0f0", "pid": 9123, "comm": "VLLM::Worker", "type": "RC", "state": "RTS"}
    ]
    assert found["kernel"]["gpu_driver"] == "580.173.02"
    assert found["previous_boot"] == ["mlx5_core 0000:01:00.0: Detected insufficient power on the PCIe slot (27W)."]
