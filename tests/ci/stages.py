"""Run make targets one after another, time them, and close with one line that counts what they tested.

A target's count is its last line `N passed, N failed` or pytest's summary; a target that prints neither counts as one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass

PYTEST = re.compile(r"^=* ?(?=.*\bin [\d.]+s)((?:\d+ [a-z]+(?:, )?)+)")
CLOSING = re.compile(r"^(?:\w+: )?(\d+) passed, (\d+) failed$")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Stage:
    """One target, and what came of it."""

    target: str
    passed: int = 0
    failed: int = 0
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        return "ok" if not self.failed else "FAILED"


def counted(line: str) -> tuple[int, int] | None:
    """Passed and failed of a closing line, or None for any other line."""
    line = COLOUR.sub("", line).strip()
    if closing := CLOSING.match(line):
        return int(closing[1]), int(closing[2])
    if summary := PYTEST.match(line):
        words = {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", summary[1])}
        return words.get("passed", 0), words.get("failed", 0) + words.get("error", 0) + words.get("errors", 0)
    return None


def run(target: str) -> Stage:
    """Run one target with its output shown as it comes."""
    stage = Stage(target)
    begin = time.monotonic()
    count = None
    with subprocess.Popen(
        ["make", target], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            count = counted(line) or count
    stage.seconds = time.monotonic() - begin
    stage.passed, stage.failed = count or (1, 0)
    if process.returncode and not stage.failed:
        stage.passed, stage.failed = (count[0], 1) if count else (0, 1)
    return stage


def main(targets: list[str]) -> int:
    """Run every target, whatever the ones before it came to."""
    stages = []
    for target in targets:
        print(f"--- {target}", flush=True)
        stages.append(run(target))
    for stage in stages:
        counts = f"{stage.passed} passed, {stage.failed} failed"
        print(f"{stage.target:<20} {stage.verdict:<7} {stage.seconds:7.1f} s  {counts}")
    failed = sum(stage.failed for stage in stages)
    print(f"tests: {sum(stage.passed for stage in stages)} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
