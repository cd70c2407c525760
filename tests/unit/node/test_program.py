"""The node program: the same bytes everywhere, and it runs by itself on every supported Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node.program import program_bytes

LIBRARY = Path(__file__).parents[3] / "plugins/module_utils"
VERSIONS = sorted((Path.home() / ".pyenv/versions").glob("3.*/bin/python3"))
PYTHONS = [str(path) for path in VERSIONS if int(path.parts[-3].split(".")[1]) >= 9] or [sys.executable]


def test_bytes_depend_on_the_texts_alone(tmp_path: Path) -> None:
    copied = tmp_path / "copy"
    for package in ("contract", "node"):
        shutil.copytree(LIBRARY / package, copied / package, ignore=shutil.ignore_patterns("__pycache__"))
    first = program_bytes(LIBRARY)
    assert program_bytes(copied) == first
    (copied / "node/tc.py").write_text((copied / "node/tc.py").read_text() + "\n")
    assert program_bytes(copied) != first


@pytest.mark.parametrize("python", PYTHONS)
def test_it_runs_isolated(tmp_path: Path, python: str) -> None:
    path = tmp_path / "node.pyz"
    path.write_bytes(program_bytes(LIBRARY))
    wrong = subprocess.run([python, "-I", str(path), "dance"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "usage: node.pyz hairpin boot | restore | revert | reconcile | differences | gids | marker DEVICE"
        " | respond | observe\n",
    )
    for module in ("fabric", "survey", "responder", "checks", "hairpin_run", "revert", "confirm", "rank_states"):
        load = f"import sys; sys.path.insert(0, {str(path)!r}); import sparkring_node.node.{module}"
        subprocess.run([python, "-I", "-c", load], check=True)


@pytest.mark.parametrize(
    ("module", "expected"),
    [("main, sparkring_node.node.markers", {"markers", "tc"}), ("main, sparkring_node.node.glance", {"glance"})],
)
def test_what_starts_often_loads_little(tmp_path: Path, module: str, expected: set[str]) -> None:
    path = tmp_path / "node.pyz"
    path.write_bytes(program_bytes(LIBRARY))
    names = {Path(name).stem for name in zipfile.ZipFile(path).namelist()}
    assert "fabric" in names
    load = f"import sys; sys.path.insert(0, {str(path)!r}); import sparkring_node.node.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-c", load], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in done.stdout.split() if name.startswith("sparkring_node.node.")}
    assert loaded == {"main", "commands", "host"} | expected
