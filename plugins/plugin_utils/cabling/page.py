"""The wiring of the rings of a run in lines for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.sparkring.cluster.plugins.plugin_utils.finding import ordered

from .declared import contradictions
from .discovery import Discovery


def shown(ring: str, found: Discovery) -> list[str]:
    """One ring's cables in arrow notation, then what is wrong with them."""
    lines = [f"{ring}: cables", *(f"  {line}" for line in found.lines())]
    return lines + [line for finding in found.findings for line in finding.lines()]


def gate(
    rings: Mapping[str, Discovery], layouts: Mapping[str, str | None], hosts: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The result of a task that must not go on where the wiring contradicts what is declared."""
    found = ordered(
        finding
        for ring, discovery in rings.items()
        for finding in contradictions(discovery, layouts[ring] or "", hosts[ring])
        if finding.severity == "fail"
    )
    return {
        "failed": bool(found),
        "msg": f"{len(found)} findings on the cables" if found else "",
        "sparkring_lines": [line for finding in found for line in finding.lines()],
        "sparkring_findings": len(found),
    }
