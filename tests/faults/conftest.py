"""A verified virtual ring to break, saved once and put back before each fault."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.green import Observed, times
from tests.virtual_ring import Ring


@pytest.fixture(scope="session")
def saved(ring: Ring, request: pytest.FixtureRequest) -> Ring:
    """The ring with a snapshot ``green``, set up and verified, and where a test asks for it ``bare``, prepared only."""
    ring.play("prepare")
    if any("bare" in getattr(item, "fixturenames", ()) for item in request.session.items):
        ring.lab(state="snapshot", name="bare")
    ring.play("mesh_setup")
    ring.lab(state="snapshot", name="green")
    return ring


@pytest.fixture
def green(saved: Ring) -> Observed:
    """The set-up ring, as it was when it was verified."""
    saved.lab(state="restored", name="green")
    observed = Observed(saved)
    observed.wait("restored snapshot", 180)
    return observed


@pytest.fixture
def bare(saved: Ring) -> Observed:
    """The prepared ring on which nothing of SparkRing lies; its plan is on the controller."""
    saved.lab(state="restored", name="bare")
    return Observed(saved)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None] | None:
    """What came back, and how long it took."""
    if times:
        terminalreporter.section("time to green")
        for fault, seconds, restored in times:
            terminalreporter.write_line(f"{seconds:6.0f} s  {fault}")
            for line in restored:
                terminalreporter.write_line(f"          {line}")
    return None
