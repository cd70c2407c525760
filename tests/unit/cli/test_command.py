"""The command over small playbooks of our own, run as a user runs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLAY = """
- name: Look
  hosts: all
  gather_facts: false
  connection: local
  tasks:
    - name: See
      said: {}
- name: Work
  hosts: all
  gather_facts: false
  connection: local
  tasks:
    - name: Do
      said: %s
"""


class Command:
    """A checkout with the real command and playbooks of the test's own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir()
        (root / "playbooks").mkdir()
        shutil.copy2(ROOT / "bin/sparkring", root / "bin")
        shutil.copy2(ROOT / "galaxy.yml", root)
        shutil.copytree(Path(__file__).parent / "action_plugins", root / "playbooks/action_plugins")
        (root / ".cache").symlink_to(ROOT / ".cache")
        (root / "hosts.yml").write_text("all: {hosts: {spark0: {}, spark1: {}}}\n")

    def play(self, verb: str, **result: Any) -> None:
        (self.root / "playbooks" / f"{verb}.yml").write_text(PLAY % json.dumps(result))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
        return subprocess.Popen(
            [sys.executable, "bin/sparkring", *arguments],
            cwd=self.root, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def test_a_green_run_shows_the_playbook_command_and_one_line_per_host_and_phase(command: Command) -> None:
    command.play("verify", changed=True, sparkring_lines=["4 of 4 lanes hold"])
    ran = command("verify", "-i", "hosts.yml")
    assert ran.returncode == 0, ran
    lines = ran.stdout.splitlines()
    assert lines[0] == "$ ansible-playbook -i hosts.yml playbooks/verify.yml"
    assert lines.count("4 of 4 lanes hold") == 2
    told = sorted(line.split()[:3] for line in lines if line.endswith(" s"))
    assert told == [[host, *end] for host in ("spark0", "spark1") for end in (("Look", "ok"), ("Work", "changed"))]


def test_findings_end_with_one(command: Command) -> None:
    command.play("status", failed=True, msg="2 filters are missing.", sparkring_findings=2)
    ran = command("status", "-i", "hosts.yml")
    assert ran.returncode == 1, ran
    assert "spark0: 2 filters are missing." in ran.stdout


def test_any_other_failure_ends_with_two(command: Command) -> None:
    command.play("status", failed=True, msg="tc is not installed: run prepare.")
    ran = command("status", "-i", "hosts.yml")
    assert ran.returncode == 2, ran
    assert "spark1: tc is not installed: run prepare." in ran.stdout


def test_json_is_nothing_but_events(command: Command) -> None:
    command.play("verify", failed=True, msg="one lane fails", sparkring_findings=1, sparkring_lines=["a line"])
    ran = command("verify", "-i", "hosts.yml", "--json")
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    assert {event["schema"] for event in events} == {"sparkring.event/1"}
    assert all({"time", "phase", "host", "state"} <= set(event) for event in events)
    assert [event["message"] for event in events if event["state"] == "message"] == ["a line"] * 2
    assert {event["host"] for event in events if event["state"] == "error"} == {"spark0", "spark1"}
    assert [event["phase"] for event in events if event["state"] == "ok"] == ["Look"] * 2
    assert events[-1]["state"] == "done" and events[-1]["exit"] == 1


def test_no_host_is_not_all_good(command: Command) -> None:
    command.play("verify")
    (command.root / "hosts.yml").write_text("all: {hosts: {}}\n")
    ran = command("verify", "-i", "hosts.yml")
    assert ran.returncode == 2
    assert "No task ran" in ran.stdout


def test_what_ansible_refuses_is_told_in_its_words(command: Command) -> None:
    command.play("verify")
    ran = command("verify", "-i", "hosts.yml", "--limit", "spark9")
    assert ran.returncode == 2
    assert "--limit leaves us with no hosts" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify"], "verify needs an inventory: name it with -i inventories/<ring>/hosts.yml."),
        (["verify", "-i", "none.yml"], "The inventory none.yml does not exist"),
        (["fly", "-i", "hosts.yml"], "invalid choice: 'fly'"),
        (["verify", "-i", "hosts.yml", "x.yml"], "verify takes no file: x.yml is too much."),
        (["import"], "import-recipe needs a file: name it after the verb."),
    ],
)
def test_a_wrong_call_is_told_in_one_sentence(command: Command, arguments: list[str], message: str) -> None:
    ran = command(*arguments)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert not ran.stdout


def test_every_option_reaches_the_playbook_command(command: Command) -> None:
    command.play("mesh_setup")
    arguments = ["--limit", "spark0", "--check", "--diff", "-e", "a=b c", "--yes", "--", "--tags", "configure"]
    ran = command("setup", "-i", "hosts.yml", *arguments)
    assert ran.stdout.splitlines()[0] == (
        "$ ansible-playbook -i hosts.yml playbooks/mesh_setup.yml --limit spark0 -e 'a=b c'"
        " --check --diff --tags configure"
    )


def test_a_verb_that_takes_a_file_needs_no_inventory(command: Command) -> None:
    command.play("import_recipe")
    ran = command("import", "-e", "a=b", "my recipe.yml")
    assert ran.stdout.splitlines()[0] == (
        """$ ansible-playbook playbooks/import_recipe.yml -e '{"sparkring_import": "my recipe.yml"}' -e a=b"""
    )


def test_host_keys_stay_strict(command: Command) -> None:
    book = command.root / "playbooks/status.yml"
    command.play("status")
    book.write_text(book.read_text().replace("said: {}", 'said: {sparkring_lines: ["{{ told }}"]}', 1))
    told = "told={{ lookup('config', 'HOST_KEY_CHECKING') }}"
    ran = command("status", "-i", "hosts.yml", "-e", told)
    assert "True" in ran.stdout.splitlines(), ran


CONFIRMED = """
- name: Ask
  hosts: all
  gather_facts: false
  tasks:
    - name: Ask
      ansible.builtin.pause:
        prompt: "{{ item }} shows host key abc. Type yes if its own console shows the same"
      register: answer
      loop: "{{ ansible_play_hosts }}"
      run_once: true
    - name: Nobody confirmed
      ansible.builtin.assert:
        that: answer.results | rejectattr('user_input', 'equalto', 'yes') | length == 0
        fail_msg: Nobody confirmed the key abc.
"""


@pytest.mark.parametrize(("switches", "code"), [(["--yes"], 0), ([], 2)], ids=["confirmed", "unanswered"])
def test_what_a_playbook_asks_is_confirmed_by_yes_alone(command: Command, switches: list[str], code: int) -> None:
    (command.root / "playbooks/prepare.yml").write_text(CONFIRMED)
    ran = command("prepare", "-i", "hosts.yml", *switches)
    assert ran.returncode == code, ran
    assert ("spark0: Nobody confirmed the key abc." in ran.stdout) == (code == 2)


def test_ctrl_c_stops_the_playbook(command: Command) -> None:
    command.play("verify", seconds=30)
    process = command.start("verify", "-i", "hosts.yml", "--json")
    assert process.stdout
    for line in process.stdout:
        if json.loads(line)["phase"] == "Work":
            break
    process.send_signal(signal.SIGINT)
    out, _err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert json.loads(out.splitlines()[-1])["message"] == "Stopped: run the same command again to go on."


def test_every_verb_has_its_playbook() -> None:
    text = subprocess.run([sys.executable, str(ROOT / "bin/sparkring"), "--help"], capture_output=True, text=True)
    verbs = [line.split()[0] for line in text.stdout.split("verbs:\n")[1].split("\n\n")[0].splitlines()]
    assert "mesh-setup" in verbs
    missing = [verb for verb in verbs if not (ROOT / "playbooks" / (verb.replace("-", "_") + ".yml")).exists()]
    assert not missing
