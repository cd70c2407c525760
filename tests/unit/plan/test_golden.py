"""Plans of made-up hardware, byte for byte; ``python -m tests.unit.plan.test_golden`` writes them again."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import degraded, planner, runs, store
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.degraded import Lost
from tests.rings import make_bindings, make_inventory

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "plan"
LAYOUTS = (
    "pair",
    "path-3",
    "path-5",
    "cycle-3",
    "cycle-4",
    "cycle-6",
    "cycle-8",
    "cycle-4-without-cable-2",
    "cycle-4-source-port",
)
DEGRADED = "cycle-4-without-cable-2"
"""A four-cycle that asks for the older source-port rule too: the line that is left has none."""
SOURCE_PORT = "cycle-4-source-port"
WHOLE = "cycle-4"
"""The layout whose whole folder is kept, as a ring named ``home``."""


def ring_text(layout: str) -> str:
    special = layout in (DEGRADED, SOURCE_PORT)
    given = make_inventory("cycle-4" if special else layout, "home", sparkring_source_port_rule=special)
    lost = Lost(cables=[2]) if layout == DEGRADED else degraded.NOTHING
    return documents.to_text(planner.plan(given, make_bindings(given), lost))


def write_whole(folder: Path) -> None:
    given = make_inventory(WHOLE, "home")
    store.bindings_change(folder, make_bindings(given)).write()
    runs.plan([given], folder, "create").write()


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_ring(layout: str) -> None:
    name = "home/ring.json" if layout == WHOLE else "ring.json"
    assert (GOLDEN / layout / name).read_text(encoding="utf-8") == ring_text(layout)


def test_whole_folder(tmp_path: Path) -> None:
    write_whole(tmp_path)
    assert files(tmp_path) == files(GOLDEN / WHOLE)


def test_nothing_else_is_kept() -> None:
    assert sorted(path.name for path in GOLDEN.iterdir()) == sorted(LAYOUTS)


if __name__ == "__main__":
    for item in LAYOUTS:
        if item != WHOLE:
            (GOLDEN / item).mkdir(parents=True, exist_ok=True)
            (GOLDEN / item / "ring.json").write_text(ring_text(item), encoding="utf-8")
    for path in (GOLDEN / WHOLE).rglob("*.*"):
        path.unlink()
    write_whole(GOLDEN / WHOLE)
