"""Run the host's tools: commands are lists, answers are JSON, failures are one sentence."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

DEATH_SECONDS = 2.0
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class HostError(Exception):
    """What is wrong on this host, as one sentence."""


class CommandFailed(HostError):
    """A tool failed; the message names the command and what the tool said."""


class Completed(NamedTuple):
    """Result of one command."""

    status: int
    output: str
    errors: str


class Runner:
    """Runs commands on this host. Tests put a recorded or simulated host in its place."""

    def execute(self, command: Sequence[str], stdin: str | None, timeout: float) -> Completed:
        """Start one command and wait for it; this and ``outlasting`` alone touch the host."""
        try:
            child = subprocess.Popen(
                list(command),
                stdin=None if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=dict(os.environ, LC_ALL="C", PATH=SEARCH_PATH),
            )
        except FileNotFoundError:
            return Completed(127, "", f"{command[0]} is not installed")
        except PermissionError:
            return Completed(126, "", f"only root may run {command[0]}")
        try:
            output, errors = child.communicate(stdin, timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                # One that hangs in the kernel does not even die; it is not waited for.
                child.communicate(timeout=DEATH_SECONDS)
            return Completed(124, "", f"no answer within {timeout:g} s")
        return Completed(child.returncode, output, errors)

    def outlasting(self, command: Sequence[str], timeout: float) -> Completed:
        """Like ``execute``, but a command that takes longer is left to run: ending it midway would do harm.

        Neither is it waited for, since one that hangs in the kernel cannot be ended.
        """
        with tempfile.TemporaryFile() as said:
            try:
                child = subprocess.Popen(
                    list(command),
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    env=dict(os.environ, LC_ALL="C", PATH=SEARCH_PATH),
                    start_new_session=True,
                )
                status = child.wait(timeout)
            except FileNotFoundError:
                return Completed(127, "", f"{command[0]} is not installed")
            except subprocess.TimeoutExpired:
                return Completed(124, "", f"no answer within {timeout:g} s")
            said.seek(0)
            return Completed(status, "", said.read().decode(errors="replace"))

    def run(self, command: Sequence[str], stdin: str | None = None, timeout: float = 30.0) -> str:
        """Output of a command that must succeed."""
        done = self.execute(command, stdin, timeout)
        if done.status != 0:
            raise CommandFailed(_sentence(command, stdin, done))
        return done.output

    def json(self, command: Sequence[str], timeout: float = 30.0) -> Any:
        """Parsed JSON output of a command; an empty answer is an empty list."""
        output = self.run(command, timeout=timeout).strip()
        if not output:
            return []
        try:
            return json.loads(output)
        except ValueError as error:
            raise CommandFailed(f"{' '.join(command)}: the answer is no JSON ({error})") from error

    def json_batch(self, tool: str, lines: list[str]) -> list[Any]:
        """Parsed answers of several questions to ``ip`` or ``tc`` in one process, one for each line."""
        if not lines:
            return []
        output = self.run([tool, "-j", "-batch", "-"], stdin="".join(line + "\n" for line in lines)).strip()
        answers = []
        decoder, place = json.JSONDecoder(), 0
        while place < len(output):
            answer, place = decoder.raw_decode(output, place)
            answers.append(answer)
            while place < len(output) and output[place].isspace():
                place += 1
        if len(answers) != len(lines):
            raise CommandFailed(f"{tool} -j -batch -: {len(answers)} answers to {len(lines)} questions")
        return answers

    def batch(self, tool: str, lines: list[str], keep_going: bool = False) -> None:
        """Feed lines to ``ip`` or ``tc`` in one process; nothing runs where there are none.

        With ``keep_going`` a line that fails does not keep the later ones away; it fails all the same in the end.
        """
        if lines:
            self.run(
                [tool, *(["-force"] if keep_going else []), "-batch", "-"], stdin="".join(line + "\n" for line in lines)
            )


def _sentence(command: Sequence[str], stdin: str | None, done: Completed) -> str:
    said = [line.strip() for line in (done.errors or done.output).splitlines() if line.strip()]
    where = " ".join(command)
    for line in said:
        if stdin and line.startswith("Command failed -:"):
            number = line.rpartition(":")[2]
            lines = stdin.splitlines()
            if number.isdigit() and 0 < int(number) <= len(lines):
                where = command[0] + " " + lines[int(number) - 1]
    said = [line for line in said if not line.startswith("Command failed -:")]
    return f"{where}: {'; '.join(said[:3]) or 'no message'} (exit {done.status})"
