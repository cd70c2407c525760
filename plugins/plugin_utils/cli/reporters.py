"""What the command shows: lines for a log, lines kept up to date on a terminal, or JSON events."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

COLOURS = {"ok": "green", "changed": "yellow", "failed": "red", "unreachable": "red"}


@dataclass
class HostLine:
    """Where one host is now."""

    phase: str
    task: str
    since: float
    state: str = "running"


class Reporter:
    """Plain lines for a log; a terminal's lines are kept up to date in place."""

    def __init__(self, live: bool) -> None:
        self.console = Console(highlight=False, markup=False, soft_wrap=True)
        self.live = Live(console=self.console, transient=True, refresh_per_second=4) if live else None

    def __enter__(self) -> Reporter:
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self.live:
            self.live.stop()

    def command(self, words: list[str]) -> None:
        """Echo the playbook command."""
        self.console.print("$ " + shlex.join(words), style="bold")

    def begin(self, host: str, line: HostLine) -> None:
        """A host enters a phase; a log hears of it at the phase's end."""

    def show(self, lines: dict[str, HostLine]) -> None:
        """Redraw the terminal's lines."""
        if self.live:
            self.live.update(Board(lines))

    def end(self, host: str, line: HostLine, seconds: float) -> None:
        """A host leaves a phase."""
        state = "ok" if line.state == "running" else line.state
        self.console.print(f"{host:<12} {line.phase:<20} {state:<11} {seconds:6.1f} s", style=COLOURS.get(state, ""))

    def say(self, host: str, phase: str, text: str) -> None:
        """Show a line that a playbook means for the user."""
        self.console.print(text)

    def still(self, line: HostLine, seconds: float) -> None:
        """Tell a log that work goes on; a terminal shows it all the time."""
        if not self.live:
            self.console.print(f"still working: {line.phase}: {line.task} ({seconds:.0f} s)")

    def fail(self, host: str, phase: str, state: str, text: str) -> None:
        """Tell what failed."""
        self.console.print(f"{host}: {text}", style=COLOURS["failed"])

    def done(self, code: int, text: str) -> None:
        """Close the run."""
        if text:
            self.console.print(text, style=COLOURS["failed"])


@dataclass
class Board:
    """One line per host, timed anew at each drawing."""

    lines: dict[str, HostLine]

    def __rich__(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for host, line in list(self.lines.items()):
            table.add_row(host, line.phase, line.task, f"{time.monotonic() - line.since:.0f} s")
        return table


class JsonReporter(Reporter):
    """JSON lines with the schema sparkring.event/1."""

    def emit(self, state: str, phase: str = "", host: str = "", **more: Any) -> None:
        """Write one event."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        event = {"schema": "sparkring.event/1", "time": stamp, "phase": phase, "host": host, "state": state, **more}
        print(json.dumps(event), flush=True)

    def command(self, words: list[str]) -> None:
        self.emit("command", message=shlex.join(words))

    def begin(self, host: str, line: HostLine) -> None:
        self.emit("running", line.phase, host)

    def end(self, host: str, line: HostLine, seconds: float) -> None:
        self.emit("ok" if line.state == "running" else line.state, line.phase, host, seconds=round(seconds, 1))

    def say(self, host: str, phase: str, text: str) -> None:
        self.emit("message", phase, host, message=text)

    def still(self, line: HostLine, seconds: float) -> None:
        self.emit("working", line.phase, message=f"{line.task} ({seconds:.0f} s)")

    def fail(self, host: str, phase: str, state: str, text: str) -> None:
        self.emit("error", phase, host, message=text)

    def done(self, code: int, text: str) -> None:
        self.emit("done", exit=code, **({"message": text} if text else {}))
