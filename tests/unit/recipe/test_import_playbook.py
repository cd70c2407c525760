"""The playbook as a user runs it: it writes once, shows in check mode, refuses, and never writes over a file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GIVEN = Path(__file__).with_name("community") / "given"


def run(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    environment["ANSIBLE_CONFIG"] = str(ROOT / "ansible.cfg")
    return subprocess.run(
        [
            Path(sys.executable).with_name("ansible-playbook"), ROOT / "playbooks/import-recipe.yml",
            "-e", f"sparkring_import={GIVEN / source}", "-e", f"sparkring_recipes_dir={folder}", *arguments,
        ],
        cwd=ROOT, env=environment, text=True, capture_output=True, check=False, timeout=60,
    )  # fmt: skip


@pytest.fixture
def source() -> str:
    return "sparkrun-pinned-tp4.yaml"


def test_it_shows_writes_and_then_changes_nothing(tmp_path: Path, source: str) -> None:
    shown = run(tmp_path, source, "--check", "--diff")
    assert "changed=1" in shown.stdout and "+id: sparkrun-pinned-tp4" in shown.stdout, shown
    assert not list(tmp_path.iterdir())
    written = run(tmp_path, source)
    assert "changed=1" in written.stdout and "mapped   model -> model.repository" in written.stdout, written
    assert [path.name for path in tmp_path.iterdir()] == ["sparkrun-pinned-tp4.yml"]
    again = run(tmp_path, source)
    assert again.returncode == 0 and "changed=0" in again.stdout, again


def test_another_recipe_is_left_alone(tmp_path: Path, source: str) -> None:
    mine = tmp_path / "mine.yml"
    mine.write_text("mine\n", encoding="utf-8")
    ran = run(tmp_path, source, "-e", f"sparkring_import_to={mine}", "-e", "sparkring_import_layout=path-4")
    assert ran.returncode and "mine.yml exists and is another recipe" in ran.stdout.replace("\n", ""), ran
    assert mine.read_text(encoding="utf-8") == "mine\n"


def test_a_refusal_writes_nothing(tmp_path: Path) -> None:
    ran = run(tmp_path, "sparkrun-minimax-m3-sglang.yaml")
    assert ran.returncode and "refused  runtime: it is sglang, and SparkRing serves with vLLM" in ran.stdout, ran
    assert "1 part cannot be carried, so nothing is written." in ran.stdout
    assert not list(tmp_path.iterdir())
