"""The virtual ring as the tests see it: playbooks and modules run against it, with their results."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ansible_runner

REPOSITORY = Path(__file__).resolve().parents[1]
LAB = REPOSITORY / ".lab"
LAYOUT = os.environ.get("LAYOUT", "cycle-4")

ON_CONTROLLER = {
    "ansible.builtin.assert",
    "ansible.builtin.pause",
    "ansible.builtin.set_fact",
    "ansible.builtin.validate_argument_spec",
    "sparkring.cluster.bind",
    "sparkring.cluster.cabling",
    "sparkring.cluster.doctor",
    "sparkring.cluster.explain",
    "sparkring.cluster.host_key",
    "sparkring.cluster.plan",
    "sparkring.cluster.receipt",
    "sparkring.cluster.recipes",
    "sparkring.cluster.report",
}
"""Actions that run nothing on a host."""


@dataclass
class Run:
    """One finished playbook run."""

    rc: int
    events: list[dict[str, Any]]

    def results(self, task: str) -> dict[str, dict[str, Any]]:
        """The result of a task by host."""
        return {
            event["event_data"]["host"]: event["event_data"]["res"]
            for event in self.events
            if event["event"] in ("runner_on_ok", "runner_on_failed")
            and event["event_data"]["task"].rpartition(" : ")[2] == task
        }

    def changed(self) -> list[str]:
        """Tasks that changed something, with their hosts."""
        return [
            f"{event['event_data']['task']} on {event['event_data']['host']}"
            for event in self.events
            if event["event"] == "runner_on_ok" and event["event_data"]["res"].get("changed")
        ]

    def executions(self) -> dict[str, int]:
        """How many modules ran on each host."""
        counts: dict[str, int] = {}
        for event in self.events:
            data = event["event_data"]
            if event["event"] == "runner_on_ok" and data["resolved_action"] not in ON_CONTROLLER:
                counts[data["host"]] = counts.get(data["host"], 0) + 1
        return counts

    def told(self) -> str:
        """What went wrong, for a failing test."""
        return "\n".join(
            f"{data['host']}: {data['task']}: {json.dumps(data['res'])[:3000]}"
            for event, data in ((event["event"], event["event_data"]) for event in self.events)
            if event in ("runner_on_failed", "runner_on_unreachable")
        )


@dataclass
class Ring:
    """The running lab."""

    hosts: list[str]

    def play(self, playbook: str, *, check: bool = False, must: bool = True, **variables: Any) -> Run:
        """Run a playbook of the collection against the ring; ``must`` it succeed, a failure fails the test."""
        return self.run(
            must,
            playbook=str(REPOSITORY / "playbooks" / f"{playbook}.yml"),
            inventory=str(LAB / "inventory" / "hosts.yml"),
            cmdline="--check --diff" if check else None,
            extravars=variables or None,
        )

    def each(self, module: str, arguments: str = "", pattern: str = "sparkring") -> dict[str, dict[str, Any]]:
        """Run one module as root on the hosts of ``pattern``; its results by host."""
        run = self.run(
            True,
            host_pattern=pattern,
            module=module,
            module_args=arguments,
            cmdline="--become",
            inventory=str(LAB / "inventory" / "hosts.yml"),
        )
        return {
            event["event_data"]["host"]: event["event_data"]["res"]
            for event in run.events
            if event["event"] == "runner_on_ok"
        }

    def shell(self, host: str, command: str, must: bool = True, seconds: float = 120) -> str:
        """Run a command line as root on one host by ssh alone; what it printed."""
        number = self.hosts.index(host)
        done = subprocess.run(
            [
                *("ssh", "-n", "-i", str(LAB / "keys" / "operator_ed25519"), "-p", str(2200 + number)),
                *("-o", f"UserKnownHostsFile={LAB / 'known_hosts'}", "-o", "GlobalKnownHostsFile=/dev/null"),
                *(
                    "-o",
                    "IdentitiesOnly=yes",
                    "-o",
                    "ConnectTimeout=5",
                    "-o",
                    "BatchMode=yes",
                    "-o",
                    "ServerAliveInterval=20",
                ),
                *("operator@127.0.0.1", "sudo /bin/sh -c " + shlex.quote(command)),
            ],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0 or not must, f"{host}: {command}: {done.stdout}{done.stderr}"
        return done.stdout

    def command(self, verb: str, *options: str, **variables: Any) -> tuple[int, str]:
        """Run a verb of the command on the ring; its exit code and what it printed."""
        words = [str(REPOSITORY / "bin" / "sparkring"), verb, "-i", str(LAB / "inventory" / "hosts.yml"), *options]
        for name, value in variables.items():
            words += ["-e", json.dumps({name: value})]
        done = subprocess.run(
            words, cwd=REPOSITORY, env={**os.environ, "COLUMNS": "1000"}, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def lab(self, **arguments: Any) -> None:
        """Do something to the lab itself, as the module ``lab_ring`` does."""
        given = " ".join(
            f"{key}={value}" for key, value in {"directory": str(LAB), "layout": LAYOUT, **arguments}.items()
        )
        self.run(
            True,
            host_pattern="localhost",
            module="sparkring.cluster.lab_ring",
            module_args=given,
            inventory="localhost,",
            cmdline="--connection local -e ansible_python_interpreter={{ansible_playbook_python}}",
        )

    def run(self, must: bool, **arguments: Any) -> Run:
        with tempfile.TemporaryDirectory() as directory:
            runner = ansible_runner.run(
                private_data_dir=directory,
                project_dir=str(REPOSITORY),
                envvars={"ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg")},
                quiet=True,
                **{key: value for key, value in arguments.items() if value is not None},
            )
            run = Run(runner.rc, [event for event in runner.events if event["event"].startswith("runner_on_")])
            told = run.told() or runner.stdout.read()[-3000:]
        assert run.rc == 0 or not must, told
        return run
