"""A receipt as lines for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from .model import CheckResult, LaneResult, Receipt
from .verdict import CARRIER

HOLDS, FAILS = "✓", "✗"


def lines(receipt: Receipt) -> list[str]:
    """Heading, matrix of lanes, one line for each finding, summary."""
    heading = f"{receipt.ring}: {receipt.layout}, {len(receipt.hosts)} hosts, evidence: {receipt.evidence}"
    return [heading, *matrix(receipt.hosts, receipt.lanes), *_findings(receipt), receipt.summary]


def _findings(receipt: Receipt) -> list[str]:
    """Each finding in a line; of a ring with a cable that has no carrier, the cables alone.

    Such a cable takes many checks and lanes with it, and their lines would hide the one that matters.
    """
    answers: list[CheckResult | LaneResult] = [*receipt.checks, *receipt.lanes]
    found = [item for item in answers if not item.ok]
    dark = [item for item in receipt.checks if not item.ok and item.id == CARRIER]
    if not dark:
        return [finding(item) for item in found]
    named = dict.fromkeys(f"{item.host}: {item.found}. To fix: {item.fix}." for item in dark)
    rest = len(found) - len(dark)
    return [*named, *([f"{rest} more checks and lanes do not hold; the receipt has them all."] if rest else [])]


def findings(receipt: Receipt) -> int:
    """How many checks and lanes do not hold."""
    return sum(not item.ok for item in [*receipt.checks, *receipt.lanes])


def matrix(hosts: Sequence[str], lanes: Sequence[LaneResult]) -> list[str]:
    """Who reaches whom: a row for each source, a column for each target, in a cell one mark for each lane."""
    if not lanes:
        return []
    cells = {(source, target): _cell(source, target, lanes) for source in hosts for target in hosts}
    table = [["from \\ to", *hosts], *[[source, *[cells[source, target] for target in hosts]] for source in hosts]]
    widths = [max(len(row[column]) for row in table) for column in range(len(hosts) + 1)]
    rows = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return [*rows, f"each lane: {HOLDS} holds or {FAILS} does not, Gb/s, +relays"]


def finding(item: CheckResult | LaneResult) -> str:
    """One line: what was asked, what was expected and found, and what to do."""
    host = item.host if isinstance(item, CheckResult) else item.source
    return f"{host} {item.id} {item.subject}: expected {item.expected}, found {item.found}. To fix: {item.fix}"


def _cell(source: str, target: str, lanes: Sequence[LaneResult]) -> str:
    if source == target:
        return "·"
    between = [item for item in lanes if (item.source, item.target) == (source, target)]
    return " ".join(_mark(item) for item in sorted(between, key=lambda item: item.index)) or "-"


def _mark(lane: LaneResult) -> str:
    speed = "" if lane.gbps is None else f"{lane.gbps:.3g}"
    relays = f"+{len(lane.relays)}" if lane.relays else ""
    return f"{HOLDS if lane.ok else FAILS}{speed}{relays}"
