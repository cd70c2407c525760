"""The marker asks of the NIC exactly the bytes that the mesh needs, and takes them back."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from .conftest import SOURCE, Marker
from .wire import MASK, MATCHER, VALUE, WORDS, create_calls, hold, rules_of

ADDRESSES = {"198.18.2.2": "c6120202", "198.18.15.1": "c6120f01", "10.255.0.128": "0aff0080"}


@pytest.mark.parametrize("tag", list(WORDS))
def test_the_bytes_of_every_tag(marker: Marker, tag: str) -> None:
    rules = {"198.18.2.2": tag}
    hold(marker, "--device", "rocep1s0f0", *rules_of(rules), "--managed")
    assert marker.calls("create_matcher", "create_action", "create_flow") == create_calls(rules, ADDRESSES)
    assert len(MASK) == len(VALUE.format(destination="00000000")) == 2 * 384


def test_the_source_port_stands_at_byte_28_behind_the_destinations(marker: Marker) -> None:
    """The older rule: a matcher of its own, priority 1, that looks at the UDP source port alone."""
    arguments = ["--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--source-port", "65535=0x88b5"]
    line, error, status = hold(marker, *arguments, "--managed")
    assert (status, error) == (0, "")
    rules = {"198.18.2.2": "0x88b5", "source-port/65535": "0x88b5"}
    assert json.loads(line) == {"device": "rocep1s0f0", "rules": rules, "installed": 2}
    port = "00" * 28 + "ffff" + "00" * 354
    destination = create_calls({"198.18.2.2": "0x88b5"}, ADDRESSES)
    words = {"size": 8, "words": WORDS["0x88b5"], "ft_type": 4}
    assert marker.calls("create_matcher", "create_action", "create_flow") == [
        destination[0],
        {**MATCHER, "priority": 1, "mask": port},
        *destination[1:],
        {"call": "create_action", **words},
        {"call": "create_flow", "flow": 2, "size": 384, "value": port, "actions": 1, "words": WORDS["0x88b5"]},
    ]
    assert [call["flow"] for call in marker.calls("destroy_flow")] == [2, 1]
    assert len(marker.calls("destroy_matcher")) == 2


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_rules_are_announced_held_and_removed(marker: Marker, stop: signal.Signals) -> None:
    rules = dict(zip(ADDRESSES, ["0x88b5", "0x88b6", "0x88b7"], strict=True))
    line, error, status = hold(marker, "--device", "rocep1s0f0", *rules_of(rules), "--managed", stop=stop)
    assert (status, error) == (0, "")
    assert json.loads(line) == {"device": "rocep1s0f0", "rules": rules, "installed": 3}
    calls = [{"call": "open", "device": "rocep1s0f0"}, *create_calls(rules, ADDRESSES)]
    for flow in (3, 2, 1):
        calls += [{"call": "destroy_flow", "flow": flow}, {"call": "destroy_action"}]
    assert marker.calls() == [*calls, {"call": "destroy_matcher"}, {"call": "close"}]


def test_the_device_is_chosen_by_name(marker: Marker) -> None:
    environment = marker.environment(devices="rocep1s0f1:mlx5,rocep1s0f0:mlx5")
    process = marker.start(
        "--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--run-seconds", "1", environment=environment
    )
    assert process.wait(30) == 0
    assert marker.calls("open") == [{"call": "open", "device": "rocep1s0f0"}]


def test_sixty_four_rules_fit_and_no_more(marker: Marker) -> None:
    rules = {f"198.18.{number}.1": "0x88b5" for number in range(64)}
    addresses = {f"198.18.{number}.1": f"c612{number:02x}01" for number in range(64)}
    result = marker.run("--device", "rocep1s0f0", *rules_of(rules), "--run-seconds", "1")
    assert result.returncode == 0
    assert marker.calls("create_matcher", "create_action", "create_flow") == create_calls(rules, addresses)
    marker.recording.unlink()
    result = marker.run("--device", "rocep1s0f0", *rules_of({**rules, "198.18.64.1": "0x88b5"}), "--managed")
    assert (result.returncode, result.stderr) == (2, "marker-mlx5: more than 64 rules\n")
    assert marker.calls() == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rule", "198.18.2.2=0x0800"], "rule 198.18.2.2=0x0800: the tag must be 0x88b5..0x88bb"),
        (["--rule", "198.18.2.2=0"], "rule 198.18.2.2=0: the tag must be 0x88b5..0x88bb"),
        (["--rule", "198.18.2.2=0x0"], "rule 198.18.2.2=0x0: the tag must be 0x88b5..0x88bb"),
        (["--rule", "198.18.2.2=0x88b4"], "rule 198.18.2.2=0x88b4: the tag must be 0x88b5..0x88bb"),
        (["--rule", "198.18.2.2=0x88bc"], "rule 198.18.2.2=0x88bc: the tag must be 0x88b5..0x88bb"),
        (["--rule", "198.18.2.2=0x88b5 "], "rule 198.18.2.2=0x88b5 : the tag must be 0x88b5..0x88bb"),
        (["--rule", "198.18.2.2=35001"], "rule 198.18.2.2=35001: the tag must be 0x88b5..0x88bb"),
        (["--rule", "198.18.2.2="], "rule 198.18.2.2=: the tag must be 0x88b5..0x88bb"),
        (["--rule", "198.18.2.256=0x88b5"], "rule 198.18.2.256=0x88b5: 198.18.2.256 is not an IPv4 address"),
        (["--rule", "=0x88b5"], "rule =0x88b5:  is not an IPv4 address"),
        (["--rule", "198.18.2.2"], "rule 198.18.2.2: IP=TAG is needed"),
        (["--rule", "1" * 99 + "=0x88b5"], "rule " + "1" * 99 + "=0x88b5: IP=TAG is needed"),
        (
            ["--rule", "198.18.2.2=0x88b5", "--rule", "198.18.2.2=0x88b6"],
            "rule 198.18.2.2=0x88b6: 198.18.2.2 has a rule already",
        ),
        (["--source-port", "65535=0x0800"], "rule 65535=0x0800: the tag must be 0x88b5..0x88bb"),
        (["--source-port", "65536=0x88b5"], "rule 65536=0x88b5: PORT=TAG is needed"),
        (["--source-port", "0=0x88b5"], "rule 0=0x88b5: PORT=TAG is needed"),
        (["--source-port", "65535"], "rule 65535: PORT=TAG is needed"),
        (
            ["--source-port", "65535=0x88b5", "--source-port", "65534=0x88b5"],
            "rule 65534=0x88b5: there is a source port already",
        ),
        ([], "--device, one --rule or more, and --managed or --run-seconds are needed"),
    ],
)
def test_a_wrong_rule_is_refused_before_the_device_is_touched(
    marker: Marker, arguments: list[str], complaint: str
) -> None:
    result = marker.run("--device", "rocep1s0f0", *arguments, "--managed")
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"marker-mlx5: {complaint}\n")
    assert marker.calls() == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rule", "198.18.2.2=0x88b5", "--managed"],
        ["--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5"],
        ["--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--managed", "--run-seconds", "5"],
        ["--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--managed", "more"],
        ["--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--run-seconds", "0"],
        ["--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--run-seconds", "7201"],
        ["--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--run-seconds", "5s"],
        ["--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--destination-port", "4791=0x88b5", "--managed"],
    ],
)
def test_wrong_arguments_are_refused(marker: Marker, arguments: list[str]) -> None:
    result = marker.run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert marker.calls() == []


@pytest.mark.parametrize(
    ("devices", "complaint"),
    [
        ("rocep1s0f1:mlx5", "rocep1s0f0: there is no such RDMA device"),
        ("", "rocep1s0f0: there is no such RDMA device"),
        ("rocep1s0f0:other", "rocep1s0f0: it is not an mlx5 device"),
    ],
)
def test_a_wrong_device_is_named(marker: Marker, devices: str, complaint: str) -> None:
    result = marker.run("--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--managed", devices=devices)
    assert (result.returncode, result.stdout, result.stderr) == (1, "", f"marker-mlx5: {complaint}\n")
    assert marker.calls() == []


@pytest.mark.parametrize(
    ("refuse", "complaint", "flows_destroyed"),
    [
        ("open:1", "it cannot be opened: Operation not permitted", []),
        ("create_matcher:1", "RDMA-TX flow rules are refused: Operation not permitted", []),
        ("create_action:2", "the rule for 198.18.15.1 was refused: Operation not permitted", [1]),
        ("create_flow:3", "the rule for 10.255.0.128 was refused: Operation not permitted", [2, 1]),
        ("destroy_flow:2", "not all rules could be removed one by one", [3, 2, 1]),
    ],
)
def test_what_the_nic_refuses_is_named_and_the_rest_removed(
    marker: Marker, refuse: str, complaint: str, flows_destroyed: list[int]
) -> None:
    rules = dict.fromkeys(ADDRESSES, "0x88b5")
    result = marker.run("--device", "rocep1s0f0", *rules_of(rules), "--run-seconds", "1", refuse=refuse)
    assert (result.returncode, result.stderr) == (1, f"marker-mlx5: rocep1s0f0: {complaint}\n")
    assert [call["flow"] for call in marker.calls("destroy_flow")] == flows_destroyed
    created = len(marker.calls("create_action")) - refuse.startswith("create_action")
    assert len(marker.calls("destroy_action")) == created
    assert (result.stdout == "") == (not refuse.startswith("destroy_flow"))
    if not refuse.startswith("open"):
        assert marker.calls()[-1] == {"call": "close"}


def test_it_ends_when_the_device_goes_away(marker: Marker) -> None:
    result = marker.run("--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--managed", event="fatal")
    assert result.returncode == 1
    assert result.stderr == "marker-mlx5: rocep1s0f0: the device is gone, and its rules with it\n"
    assert marker.calls()[-1] == {"call": "close"}


def test_other_events_do_not_end_it(marker: Marker) -> None:
    result = marker.run("--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--run-seconds", "1", event="port")
    assert (result.returncode, result.stderr) == (0, "")
    assert len(marker.calls("ack_event")) == 1


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_hears_when_the_rules_are_in(marker: Marker, tmp_path: Path, abstract: bool) -> None:
    address = f"\0sparkring-{tmp_path}"[:100] if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(address)
        notify.settimeout(30)
        environment = {**marker.environment(), "NOTIFY_SOCKET": address.replace("\0", "@")}
        process = marker.start(
            "--device", "rocep1s0f0", "--rule", "198.18.2.2=0x88b5", "--managed", environment=environment
        )
        assert notify.recv(100) == b"READY=1"
        assert len(marker.calls("create_flow")) == 1
        process.terminate()
        assert process.communicate(timeout=30)[1] == ""
        assert process.returncode == 0


def test_it_builds_against_the_installed_libraries(tmp_path: Path) -> None:
    program = str(tmp_path / "marker-mlx5")
    build = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", str(SOURCE), "-o", program, "-libverbs", "-lmlx5"]
    subprocess.run(build, check=True)
    command = [program, "--device", "none", "--rule", "198.18.2.2=0x88b5", "--managed"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.startswith("marker-mlx5: none: ")
