"""What the events of a playbook run come to: where each host is, findings, and the exit code."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.sparkring.cluster.plugins.plugin_utils.cli.reporters import HostLine, Reporter

OK, FINDINGS, COULD_NOT_RUN = 0, 1, 2
STILL_SECONDS = 30.0


@dataclass
class Progress:
    """What the events have told so far; a reporter shows it."""

    reporter: Reporter
    diffs: bool = False
    """Whether what a task changes in files is shown."""
    lines: dict[str, HostLine] = field(default_factory=dict)
    findings: int = 0
    failures: int = 0
    tasks: int = 0
    last_shown: float = field(default_factory=time.monotonic)
    stopped: bool = False

    def handle(self, event: dict[str, Any]) -> bool:
        """Take one event of ansible-runner."""
        kind, data = str(event.get("event", "")), event.get("event_data") or {}
        host = str(data.get("host", ""))
        outcome = re.fullmatch(r"runner_(on|item_on)_(start|ok|failed|unreachable|skipped)", kind)
        if not outcome or not host:
            return False
        self.move(host, str(data.get("role") or data.get("play") or "").split(".")[-1], str(data.get("task") or ""))
        result = data.get("res") or {}
        if outcome[2] in ("ok", "failed"):
            for line in result.get("sparkring_lines") or ():
                self.reporter.say(host, self.lines[host].phase, str(line))
            for line in difference(result.get("diff")) if self.diffs else ():
                self.reporter.say(host, self.lines[host].phase, line)
        if outcome[1] == "item_on" or outcome[2] == "start":
            return False
        self.tasks += 1
        if outcome[2] == "ok" and result.get("changed"):
            self.lines[host].state = "changed"
        elif outcome[2] in ("failed", "unreachable") and not data.get("ignore_errors"):
            self.fail(host, outcome[2], result)
        return False

    def move(self, host: str, phase: str, task: str) -> None:
        """Note the task that a host is at; a new phase closes the line of the one before."""
        line = self.lines.get(host)
        if line is None or line.phase != phase:
            self.close(host)
            self.lines[host] = line = HostLine(phase, task, time.monotonic())
            self.reporter.begin(host, line)
            self.last_shown = time.monotonic()
        line.task = task
        self.reporter.show(self.lines)

    def close(self, host: str) -> None:
        """End a host's line with what its phase came to."""
        if line := self.lines.pop(host, None):
            self.reporter.end(host, line, time.monotonic() - line.since)
            self.last_shown = time.monotonic()

    def fail(self, host: str, state: str, result: dict[str, Any]) -> None:
        """Tell in one sentence what failed, and count it as findings or as could not run."""
        self.lines[host].state = state
        findings = result.get("sparkring_findings")
        self.findings += bool(findings)
        self.failures += not findings
        told = unreachable(result) if state == "unreachable" else sentence(result)
        self.reporter.fail(host, self.lines[host].phase, state, told)

    def tick(self) -> bool:
        """Say every 30 seconds that work goes on; true asks ansible-runner to stop."""
        now = time.monotonic()
        running = [line for line in self.lines.values() if line.state in ("running", "changed")]
        if running and now - self.last_shown >= STILL_SECONDS:
            self.last_shown = now
            oldest = min(running, key=lambda line: line.since)
            self.reporter.still(oldest, now - oldest.since)
        return self.stopped

    def stop(self, *_signal: object) -> None:
        """Ask for the end of the run."""
        self.stopped = True

    def finish(self) -> None:
        """Close every line that is still open."""
        for host in list(self.lines):
            self.close(host)

    def exit_code(self, playbook_code: int) -> int:
        """All good, findings, or could not run."""
        if playbook_code == 0:
            return OK if self.tasks else COULD_NOT_RUN
        return FINDINGS if self.findings and not self.failures and not self.stopped else COULD_NOT_RUN


def unreachable(result: dict[str, Any]) -> str:
    """What ssh says of a host that does not answer, and what to look at."""
    said = sentence(result).strip().splitlines()[-1].rstrip(". ")
    said = said.rpartition("Failed to connect to the host via ssh: ")[2]
    return f"it does not answer ({said}); see that it is on and that ssh reaches it, then run this again."


def sentence(result: dict[str, Any]) -> str:
    """What a failed task says, without the noise around it."""
    text = str(result.get("msg") or result.get("stderr") or result.get("module_stderr") or "the task failed").strip()
    if result.get("results") and text.startswith("One or more items failed"):
        failed = [item for item in result["results"] if item.get("failed")]
        text = "; ".join(dict.fromkeys(sentence(item) for item in failed)) or text
    return text


def difference(found: Any) -> Iterator[str]:
    """What a task changes in texts, as its result has it."""
    for entry in found if isinstance(found, list) else [found]:
        if isinstance(entry, dict) and isinstance(entry.get("before"), str) and isinstance(entry.get("after"), str):
            old, new = entry["before"].splitlines(), entry["after"].splitlines()
            before, after = (str(entry.get(f"{name}_header", name)) for name in ("before", "after"))
            yield from difflib.unified_diff(old, new, before, after, lineterm="")
