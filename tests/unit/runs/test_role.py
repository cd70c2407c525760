"""The role and the removal over a ring of four, with a module that writes down what it is asked for."""

from __future__ import annotations

import getpass
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.rings import make_inventory

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests/golden/plan/cycle-4"
STAND_IN = '''#!/usr/bin/python
"""Writes down what it is asked for."""
import json
from ansible.module_utils.basic import AnsibleModule
names = ("plan", "program", "marker_source", "state", "take_over", "operator", "run", "continues", "revert_after")
module = AnsibleModule({{name: {{"type": "raw"}} for name in names}}, supports_check_mode=True)
given, case = module.params, {case!r}
host = given["plan"]["host"]
state = ("check " if module.check_mode else "") + (given["state"] or "present")
asked = {{"host": host, "state": state, "operator": given["operator"], "run": given["run"]}}
asked.update(revert_after=given["revert_after"])
asked.update(continues=given["continues"], program=bool(given["program"]), marker=bool(given["marker_source"]))
with open({log!r}, "a") as log:
    log.write(json.dumps(asked) + "\\n")
if case["refused"] and not given["continues"]:
    module.fail_json(msg="refused", pending=case["refused"])
if case["failing"] == state + " " + host:
    module.fail_json(msg=host + " does not answer")
changes = [{{"id": "plan"}}] if host in case["differing"] else []
pending = host in case["pending"] or bool(changes and not module.check_mode)
module.exit_json(changed=bool(changes), changes=changes, pending=pending)
'''
PLAY = """- hosts: sparkring
  gather_facts: false
  any_errors_fatal: true
  roles:
    - role: sparkring.cluster.fabric
      vars:
        sparkring_file: "{{ sparkring_plans_dir }}/home/hosts/{{ inventory_hostname }}.json"
        sparkring_host_plan: "{{ lookup('file', sparkring_file) | from_json }}"
"""
HOSTS = [f"spark{number}" for number in range(4)]


def play(root: Path, *words: str, book: str = "", **case: Any) -> tuple[int, list[dict[str, Any]]]:
    """Exit code, and what was written down; by default every host differs and nothing fails."""
    case = {"failing": "", "differing": HOSTS, "pending": [], "refused": None, **case}
    home = root / "ansible_collections/sparkring/cluster"
    (home / "plugins/modules").mkdir(parents=True)
    for name in ("galaxy.yml", "meta", "roles", "playbooks"):
        (home / name).symlink_to(ROOT / name)
    for path in (ROOT / "plugins").iterdir():
        if path.name != "modules":
            (home / "plugins" / path.name).symlink_to(path)
    for path in (ROOT / "plugins/modules").glob("*.py"):
        if path.name != "fabric.py":
            (home / "plugins/modules" / path.name).symlink_to(path)
    log = root / "log"
    (home / "plugins/modules/fabric.py").write_text(STAND_IN.format(log=str(log), case=case))
    (root / "plans").symlink_to(GOLDEN)
    (root / "play.yml").write_text(PLAY)
    given = make_inventory("cycle-4", "home")
    hosts = {host.name: {"ansible_host": host.address, "ansible_connection": "local"} for host in given.hosts}
    variables = {
        "sparkring_layout": "cycle-4",
        "sparkring_plans_dir": str(root / "plans"),
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
    }
    inventory = {"sparkring": {"children": {"home": {"hosts": hosts, "vars": variables}}}}
    (root / "hosts.json").write_text(json.dumps(inventory))
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(root / "hosts.json"), *words]
    with subprocess.Popen(
        [*command, book or str(root / "play.yml")],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(root), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        told = process.communicate(timeout=300)[0]
    assert log.exists(), told
    asked = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["run"].partition("/")[0] for line in asked} == {str(process.pid)}, told
    return process.returncode, asked


def steps(asked: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """States in turn, each with its hosts."""
    found: list[tuple[str, list[str]]] = []
    for line in asked:
        if not found or found[-1][0] != line["state"]:
            found.append((line["state"], []))
        found[-1][1].append(line["host"])
    return [(state, sorted(hosts)) for state, hosts in found]


def test_all_are_compared_then_laid_then_proved_then_kept(tmp_path: Path) -> None:
    code, asked = play(tmp_path)
    assert (code, steps(asked)) == (
        0,
        [
            ("check present", HOSTS),
            ("present", HOSTS),
            ("check confirmed", HOSTS),
            ("confirmed", HOSTS),
        ],
    )
    assert {line["operator"] for line in asked} == {f"{getpass.getuser()}@{socket.gethostname()}"}
    assert {(line["state"], line["program"]) for line in asked} == {
        ("check present", True),
        ("present", True),
        ("check confirmed", False),
        ("confirmed", False),
    }


def test_one_that_does_not_answer_keeps_all_from_being_kept(tmp_path: Path) -> None:
    code, asked = play(tmp_path, failing="check confirmed spark2")
    assert (code, steps(asked)[-1]) == (2, ("check confirmed", HOSTS))


def test_only_what_is_changed_is_confirmed(tmp_path: Path) -> None:
    code, asked = play(tmp_path, differing=["spark1"], pending=["spark3"])
    assert (code, steps(asked)) == (
        0,
        [
            ("check present", HOSTS),
            ("present", ["spark1", "spark3"]),
            ("check confirmed", ["spark1", "spark3"]),
            ("confirmed", ["spark1", "spark3"]),
        ],
    )


def test_check_mode_confirms_nothing(tmp_path: Path) -> None:
    code, asked = play(tmp_path, "--check", pending=HOSTS)
    assert (code, steps(asked)) == (0, [("check present", HOSTS)])


def test_a_removal_is_confirmed(tmp_path: Path) -> None:
    code, asked = play(tmp_path, book=str(ROOT / "playbooks/remove.yml"))
    assert (code, steps(asked)) == (
        0,
        [("absent", HOSTS), ("check confirmed", HOSTS), ("confirmed", HOSTS)],
    )
    assert all(line["program"] and not line["marker"] for line in asked if line["state"] == "absent")


def test_a_gone_run_of_the_same_operator_is_gone_on_with(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    pending = {"operator": f"{getpass.getuser()}@{socket.gethostname()}", "run": f"{process.pid}/1"}
    code, asked = play(tmp_path, "--limit", "spark1", refused=pending)
    assert code == 0
    states = [(line["state"], line["continues"]) for line in asked]
    assert states[:4] == [
        ("check present", None),
        ("check present", pending["run"]),
        ("present", None),
        ("present", pending["run"]),
    ]


def test_any_other_is_refused_at_the_first_step(tmp_path: Path) -> None:
    code, asked = play(tmp_path, refused={"operator": "ann@laptop", "run": str(os.getpid())})
    assert (code, steps(asked)) == (2, [("check present", HOSTS)])
    assert {line["continues"] for line in asked} == {None}


@pytest.mark.parametrize(
    ("words", "seconds"),
    [([], 180), (["--forks", "3"], 360), (["-e", "sparkring_hosts_at_once=1"], 720)],
    ids=["all at once", "as forks let them", "one after the other"],
)
def test_the_first_host_waits_until_the_last_one_is_laid(tmp_path: Path, words: list[str], seconds: int) -> None:
    code, asked = play(tmp_path, *words)
    assert code == 0
    assert {line["revert_after"] for line in asked if line["state"] == "present"} == {seconds}
