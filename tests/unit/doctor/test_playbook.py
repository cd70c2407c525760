"""The playbook as a user runs it, on hosts with every obstacle, of which none keeps the others from being examined."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import REPOSITORY

REFUSED = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_common_args": "-o ConnectTimeout=5"}
HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "ansible_become_exe": "./sudo"}
NO_ROOT = {**HERE, "ansible_become_exe": "/nonexistent/sudo"}
NO_PYTHON = {**HERE, "ansible_python_interpreter": "/nonexistent/python3"}
ROOT = os.geteuid() == 0
"""An ordinary user has no root to give, whatever stands in for sudo."""
UNREACHED = (
    "FAIL probe.unreachable spark1 cannot be reached: ssh: connect to host 127.0.0.1 port 1: Connection refused."
)


def doctor(folder: Path, hosts: dict[str, Any], *arguments: str) -> tuple[int, list[str]]:
    """The command on hosts without bindings, plan or layout: exit code and what it said."""
    (folder / "hosts.yml").write_text(yaml.safe_dump({"sparkring": {"children": {"home": {"hosts": hosts}}}}))
    (folder / "sudo").write_text('#!/bin/sh\nwhile [ "$1" != /bin/sh ]; do shift; done\nexec "$@"\n')
    (folder / "sudo").chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_BECOME_ALLOW_SAME_USER": "1", "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")}
    ran = subprocess.run(
        [sys.executable, str(REPOSITORY / "bin/sparkring"), "doctor", "-i", "hosts.yml", *arguments],
        cwd=folder, env=environment, text=True, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    return ran.returncode, ran.stdout.splitlines() + ran.stderr.splitlines()


def test_obstacles_are_named_and_the_others_examined(tmp_path: Path) -> None:
    hosts = {"spark0": HERE, "spark1": REFUSED, "spark2": NO_PYTHON, "spark3": NO_ROOT}
    wanted = ["-e", "sparkring_doctor_only=probe", "-e", "sparkring_doctor_report=out/r.json,out/r.xml,out/r.md"]
    code, lines = doctor(tmp_path, hosts, *wanted)
    assert code == 1, lines
    begin = lines.index("Ring home: no layout declared, no plan, 2 of 4 hosts examined.")
    said = lines[begin + 1 :]
    assert said[0].startswith("FAIL probe.no_python spark2 has no Python where it was looked for (")
    assert said[2] == UNREACHED
    assert [line.split()[2] for line in said if "probe.no_privilege" in line] == ["spark0:", "spark3:"] * (not ROOT)
    end = next(number for number, line in enumerate(said) if line.startswith("8 checks"))
    assert said[end : end + 4] == [
        f"8 checks on 2 of 4 hosts: 2 fails, {0 if ROOT else 2} warnings, 0 notes.",
        "Report: out/r.json",
        "Report: out/r.xml",
        "Report: out/r.md",
    ]
    report = json.loads((tmp_path / "out/r.json").read_text())
    assert report["schema"] == "sparkring.doctor/1"
    lacking = None if ROOT else "no_privilege"
    obstacles = [host["obstacle"] for host in report["rings"][0]["hosts"]]
    assert obstacles == [lacking, "unreachable", "no_python", lacking]


def test_no_host_examined_is_not_all_good(tmp_path: Path) -> None:
    code, lines = doctor(tmp_path, {"spark1": REFUSED})
    assert code == 2, lines
    assert UNREACHED in lines
    assert any(line.endswith("No host could be examined, so no check was made.") for line in lines)


def test_an_unknown_check_is_refused(tmp_path: Path) -> None:
    code, lines = doctor(tmp_path, {"spark0": HERE}, "-e", "sparkring_doctor_only=link.sped")
    assert code == 2, lines
    sentence = "sparkring_doctor_only names link.sped, which is no check; docs/doctor.md lists them."
    assert any(line.endswith(sentence) for line in lines), lines


def test_a_silenced_finding_is_no_fault_and_its_reason_is_printed(tmp_path: Path) -> None:
    silence = json.dumps({"sparkring_doctor_silence": {"probe.unreachable": "It is in repair."}})
    code, lines = doctor(
        tmp_path, {"spark0": HERE, "spark1": REFUSED}, "-e", silence, "-e", "sparkring_doctor_only=probe"
    )
    assert code == 0, lines
    assert UNREACHED.replace("FAIL", "silenced") + " Reason: It is in repair." in lines
    assert any(line.startswith("4 checks on 1 of 2 hosts: 0 fails,") and "1 silenced." in line for line in lines)
