"""Every role has a scenario, and every scenario asserts something about what its role left."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if (path / "tasks/main.yml").exists())
SCENARIOS = sorted(path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml"))


def tasks(item: Any) -> list[dict[str, Any]]:
    """Every task of a playbook, those inside blocks too."""
    found = []
    for entry in item or []:
        found.append(entry)
        for key in ("pre_tasks", "tasks", "post_tasks", "block", "rescue", "always"):
            found += tasks(entry.get(key))
    return found


def test_there_are_roles() -> None:
    assert ROLES


@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_a_scenario(role: str) -> None:
    assert role in SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_converges_and_asserts(scenario: str) -> None:
    directory = ROOT / "molecule" / scenario
    assert yaml.safe_load((directory / "converge.yml").read_text())
    asserts = [
        task
        for task in tasks(yaml.safe_load((directory / "verify.yml").read_text()))
        if "ansible.builtin.assert" in task
    ]
    conditions = [task["ansible.builtin.assert"]["that"] for task in asserts]
    assert any(isinstance(condition, list) and len(condition) > 1 for condition in conditions)
    told = str(conditions)
    assert re.search(r"==| in |is search|not ", told)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_is_run(scenario: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    run = re.findall(r"^(?:RING_)?SCENARIOS := (.*)$", makefile, re.MULTILINE)
    assert scenario in " ".join(run).split()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_verify_step_is_never_left_out(scenario: str) -> None:
    own = yaml.safe_load((ROOT / "molecule" / scenario / "molecule.yml").read_text()) or {}
    shared = yaml.safe_load((ROOT / ".config/molecule/config.yml").read_text())
    sequence = own.get("scenario", shared["scenario"])["test_sequence"]
    assert {"converge", "verify"} <= set(sequence)
