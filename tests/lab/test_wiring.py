"""The ring really cabled wrongly: a survey names it as the unit tests' table says, and no setup begins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.virtual_ring import LAB, LAYOUT, REPOSITORY, Ring

TABLE = REPOSITORY / "tests" / "unit" / "cabling" / "wirings.yml"
CASES = [case for case in yaml.safe_load(TABLE.read_text(encoding="utf-8")) if len(case["hosts"]) == 4]
LLDP_SECONDS = 60

pytestmark = pytest.mark.skipif(LAYOUT != "cycle-4", reason="the table's wirings have four hosts")


@pytest.fixture(scope="module")
def prepared(ring: Ring) -> Iterator[None]:
    """The ring with its packages, and its own cables again after the last case."""
    ring.play("prepare")
    yield
    ring.lab(state="cabled")


def surveyed(ring: Ring, says: list[str]) -> list[str]:
    """What a survey says of the cables, once that is what is expected or LLDP has had its time."""
    until = time.monotonic() + LLDP_SECONDS
    while True:
        code, said = ring.command("survey")
        assert code == 0, said
        lines = [line for line in said.splitlines() if line.startswith(("FAIL ", "WARN ", "INFO ", "  To fix: "))]
        if lines == says or time.monotonic() > until:
            return lines
        time.sleep(5)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_wrong_wiring_is_named(ring: Ring, prepared: None, case: dict[str, Any]) -> None:
    ring.lab(state="cabled", cables=case["cables"].replace(" ", ","))
    assert surveyed(ring, case["says"]) == case["says"]


def test_a_wrong_wiring_is_refused_before_any_change(ring: Ring, prepared: None) -> None:
    case = CASES[0]
    ring.lab(state="cabled", cables=case["cables"].replace(" ", ","))
    assert surveyed(ring, case["says"]) == case["says"]
    code, said = ring.command("mesh-setup")
    assert code == 1 and case["says"][0] in said.splitlines(), said
    assert not (LAB / "plans").exists()


def test_the_ring_s_own_cables_are_no_finding(ring: Ring, prepared: None) -> None:
    ring.lab(state="cabled")
    assert surveyed(ring, []) == []
    _code, said = ring.command("survey")
    for line in (
        "  spark0 p0 ↔ spark1 p1",
        "  spark1 p0 ↔ spark2 p1",
        "  spark2 p0 ↔ spark3 p1",
        "  layout cycle-4, hosts in order: spark0, spark1, spark2, spark3",
    ):
        assert line in said.splitlines(), said
