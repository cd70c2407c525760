"""The checks of the doctor: each one question with a stable id, and the function that answers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ansible_collections.sparkring.cluster.plugins.plugin_utils.finding import Finding, Severity

from .ring import Ring


class Found(NamedTuple):
    """What a check found: the subject it is about, one sentence, and one fix (empty where nothing is to be done).

    ``severity`` is given where this finding weighs otherwise than its check's.
    """

    subject: str
    sentence: str
    fix: str = ""
    severity: Severity | None = None


Examine = Callable[[Ring], Iterable[Found]]


@dataclass(frozen=True)
class Check:
    """One question. ``looks_at`` are the parts of a survey without which a host cannot be asked.

    ``says`` is the sentence of docs/doctor.md: what the finding means.
    """

    id: str
    severity: Severity
    looks_at: tuple[str, ...]
    says: str
    examine: Examine

    def findings(self, ring: Ring) -> Iterator[Finding]:
        """Findings on one ring; a host where a part could not be read is left out."""
        for found in self.examine(ring.having(self.looks_at)):
            yield Finding(self.id, found.severity or self.severity, found.subject, found.sentence, found.fix)


CHECKS: dict[str, Check] = {}


def check(identifier: str, severity: Severity, looks_at: str, says: str) -> Callable[[Examine], Examine]:
    """Register the function below as a check; ``looks_at`` names parts of a survey, bindings or plan."""

    def register(examine: Examine) -> Examine:
        if identifier in CHECKS:
            raise ValueError(f"check {identifier} is there twice")
        CHECKS[identifier] = Check(identifier, severity, tuple(looks_at.split()), says, examine)
        return examine

    return register
