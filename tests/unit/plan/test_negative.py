"""Inventories that are refused: each with its exact sentence, and nothing written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_plain, to_text
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner
from tests.conftest import COLLECTIONS, REPOSITORY
from tests.rings import make_bindings, make_inventory, make_survey

CASES = sorted((REPOSITORY / "tests" / "negative").glob("*.yml"))
BIND = """
- hosts: sparkring
  gather_facts: false
  tasks:
    - sparkring.cluster.bind:
        mode: create
        plans_dir: plans
        surveys: "{{ lookup('file', 'surveys.json') | from_json }}"
      run_once: true
"""


def change(documents: dict[str, Any], entry: dict[str, Any]) -> None:
    """Set a value in a document, copy its neighbour there, or remove it."""
    place: Any = documents[entry["in"]]
    for step in entry["path"][:-1]:
        place = place[step]
    last = entry["path"][-1]
    if "copy" in entry:
        place[last] = place[entry["copy"]]
    elif "value" in entry:
        place[last] = entry["value"]
    else:
        del place[last]


def lay(case: dict[str, Any], folder: Path) -> None:
    """The case's inventory and documents as files."""
    files: dict[str, str] = {
        "inventory/hosts.yml": yaml.safe_dump(case["inventory"], sort_keys=False),
        "bind.yml": BIND,
    }
    files |= case.get("files", {})
    rings = case["inventory"]["sparkring"].get("children", {})
    documents: dict[str, Any] = {"bindings": {}, "surveys": {}, "plans": {}}
    for ring in case.get("bindings", []):
        given = make_inventory(rings[ring]["vars"]["sparkring_layout"], ring, list(rings[ring]["hosts"]))
        documents["bindings"][ring] = make_bindings(given).model_dump(by_alias=True)
        documents["plans"][ring] = to_plain(planner.plan(given, make_bindings(given)))
    for ring in case.get("surveys", []):
        documents["surveys"] |= {host: make_survey(place) for place, host in enumerate(rings[ring]["hosts"])}
    for entry in case.get("change", []):
        change(documents, entry)
    files |= {f"plans/{ring}/bindings.json": to_text(value) for ring, value in documents["bindings"].items()}
    files |= {f"plans/{ring}/ring.json": to_text(documents["plans"][ring]) for ring in case.get("plans", [])}
    files["surveys.json"] = json.dumps(documents["surveys"])
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def run(case: dict[str, Any], folder: Path) -> tuple[int, str]:
    playbook = "bind.yml" if case.get("playbook") == "bind" else str(REPOSITORY / "playbooks" / "plan.yml")
    command = [str(Path(sys.executable).with_name("ansible-playbook")), playbook]
    command += ["-i", case.get("source", "inventory/hosts.yml"), *case.get("arguments", [])]
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(COLLECTIONS),
        "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCAL_TEMP": str(folder.parent / "ansible"),
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def failure(output: str) -> str:
    """The message of the failed task."""
    assert "FAILED! => " in output, output
    result, _end = json.JSONDecoder().raw_decode(output.partition("FAILED! => ")[2])
    return str(result["msg"])


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_refused(path: Path, tmp_path: Path) -> None:
    case = yaml.safe_load(path.read_text(encoding="utf-8"))
    folder = tmp_path / "work"
    lay(case, folder)
    before = tree(folder)
    status, output = run(case, folder)
    assert failure(output) == case["message"]
    assert status != 0
    assert tree(folder) == before


def test_the_same_harness_accepts_what_is_right(tmp_path: Path) -> None:
    """Otherwise the cases above could all fail for one foreign reason."""
    case = yaml.safe_load((REPOSITORY / "tests/negative/survey-contradicts-bindings.yml").read_text())
    del case["change"]
    folder = tmp_path / "work"
    lay(case, folder)
    for playbook in ("bind", "plan"):
        status, output = run({**case, "playbook": playbook}, folder)
        assert status == 0, output
    assert json.loads((folder / "plans/home/ring.json").read_text())["bound"] is True
