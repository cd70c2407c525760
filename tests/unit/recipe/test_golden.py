"""Units of every recipe on an example ring, for review; ``python -m tests.unit.recipe.test_golden`` writes them again.

A file holds the head's unit and environment, then of each other rank the lines that differ.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.rank_unit import RankUnit
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import systemd
from tests.unit.recipe.examples import ALL, RENDERED, units

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "ranks"


def lines(unit: RankUnit) -> list[str]:
    found = [f"# GID index of {name}: {', '.join(devices)}" for name, devices in sorted(unit.gids.items())]
    checked = [f"# {item.path} {item.sha256}" for item in unit.files]
    return [
        *systemd.unit_text(unit).splitlines(),
        "",
        *systemd.environment_text(unit).splitlines(),
        *found,
        *checked,
        f"# Ports {', '.join(map(str, unit.ports))}",
    ]


def text(recipe: str) -> str:
    return "\n".join(_parts(units(ALL[recipe]))) + "\n"


def _parts(made: list[RankUnit]) -> Iterator[str]:
    head = lines(made[0])
    yield from head
    for unit in made[1:]:
        yield f"== rank {unit.rank}"
        diff = difflib.unified_diff(head, lines(unit), lineterm="", n=0)
        yield from (line for line in diff if not line.startswith(("---", "+++", "@@")))


@pytest.mark.parametrize("recipe", RENDERED)
def test_units(recipe: str) -> None:
    assert (GOLDEN / f"{recipe}.txt").read_text(encoding="utf-8") == text(recipe)


def test_no_other_unit_is_kept() -> None:
    assert {path.name.removesuffix(".txt") for path in GOLDEN.iterdir()} == set(RENDERED)


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name in RENDERED:
        (GOLDEN / f"{name}.txt").write_text(text(name), encoding="utf-8")
