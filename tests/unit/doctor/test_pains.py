"""Every report of what people suffer from has its place: a finding with a near-miss, a test, or why there is none."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from .test_cases import CASES

TESTS = Path(__file__).parents[2]
PAINS: list[dict[str, Any]] = yaml.safe_load((TESTS / "fixtures/pains.yml").read_text(encoding="utf-8"))
NUMBERS = [
    *(1, 3, 4, 5, 6, 7, 8, 9),
    *(12, 14, 15, 16, 17, 18, 19, 20, 21, 22),
    *(24, 25, 26),
    *(28, 29, 30, 31, 32, 33, 34, 36, 37, 38, 40, 41, 42),
    *(53, 54, 55, 56, 57),
    *(64, 66, 67, 68, 69, 70),
    *(75, 76, 77),
    *(78, 79, 80, 81, 82, 83),
]


def test_none_is_left_out() -> None:
    assert [pain["pain"] for pain in PAINS] == NUMBERS


@pytest.mark.parametrize("pain", PAINS, ids=lambda pain: pain["what"])
def test_what_shows_it_is_there(pain: dict[str, Any]) -> None:
    assert set(pain) <= {"pain", "what", "cases", "tests", "not_here"}
    assert pain.get("not_here") or pain.get("cases") or pain.get("tests")
    for name in pain.get("cases", []):
        case = CASES[name]
        assert case.get("near") or not case["expect"], f"{name} has no near-miss"
    for test in pain.get("tests", []):
        path, name = test.split("::")
        tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_cases_that_name_a_pain_are_in_the_table() -> None:
    """A case says which pain it is made from; the table must know it."""
    listed = {(number["pain"], name) for number in PAINS for name in number.get("cases", [])}
    for name, case in CASES.items():
        first = str(case["why"]).partition(";")[0]
        if first.startswith("pain "):
            told = {int(word) for word in first.removeprefix("pain ").split(",")}
            assert {(number, name) for number in told} & listed, f"{name} is made from pain {told}"
