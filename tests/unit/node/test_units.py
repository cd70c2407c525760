"""Unit files, byte for byte; ``python -m tests.unit.node.test_units`` writes them again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.node import units

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "units"
TEXTS = {name: text for names in units.FILES.values() for name, text in names.items()} | {
    marks.REVERT_UNIT: units.REVERT_TEXT,
    marks.REVERT_TIMER: units.REVERT_TIMER_TEXT,
}


def test_every_unit_file_is_the_reviewed_one() -> None:
    assert {path.name: path.read_text() for path in GOLDEN.iterdir()} == TEXTS


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_understands_them(tmp_path: Path) -> None:
    """Unknown sections, settings and values are warnings, which fail here; the program need not be there."""
    for name, text in TEXTS.items():
        (tmp_path / name.replace("@.", "@device.")).write_text(text.replace(marks.PROGRAM_PATH, "/dev/null"))
    names = sorted(str(path) for path in tmp_path.iterdir())
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    assert ours == []


def test_what_is_planned_brings_its_files_and_no_others() -> None:
    planned = [marks.FABRIC_UNIT, marks.marker_unit("rocep1s0f0"), marks.marker_unit("rocep1s0f1")]
    assert set(units.files(planned)) == {marks.FABRIC_UNIT, marks.MARKER_UNIT_TEMPLATE}
    assert set(units.files([marks.RECONCILE_TIMER])) == {marks.RECONCILE_UNIT, marks.RECONCILE_TIMER}
    assert units.files([]) == {}


if __name__ == "__main__":
    for unit, content in TEXTS.items():
        (GOLDEN / unit).write_text(content)
