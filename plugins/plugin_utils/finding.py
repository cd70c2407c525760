"""A finding: what is wrong or worth knowing on the hosts, in one sentence with one fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["fail", "warn", "info"]
SEVERITIES: tuple[Severity, ...] = ("fail", "warn", "info")


@dataclass(frozen=True)
class Finding:
    """One answer that is not simply good.

    ``id`` is stable (``link.mtu_mismatch``); ``subject`` is the host, port, cable or object it is about;
    ``sentence`` says what is wrong and where; ``fix`` what to do about it, empty where there is nothing
    to do. Only a ``fail`` makes the command end with exit code 1.
    """

    id: str
    severity: Severity
    subject: str
    sentence: str
    fix: str = ""

    def lines(self) -> list[str]:
        """The finding for the terminal: at most two lines."""
        first = f"{self.severity.upper()} {self.id} {self.sentence}"
        return [first, f"  To fix: {self.fix}"] if self.fix else [first]


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """Without doubles, the gravest first, then by id and subject, whatever order they were found in."""
    return sorted(
        set(findings), key=lambda item: (SEVERITIES.index(item.severity), item.id, item.subject, item.sentence)
    )
