"""Setups that hosts stand in the way of: one exact sentence, exit code 2, and no host changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.virtual_ring import LAB, LAYOUT, Ring

CASES = yaml.safe_load(Path(__file__).with_name("refusals.yml").read_text())

pytestmark = pytest.mark.skipif(LAYOUT != "cycle-4", reason="the sentences name four hosts")


@pytest.fixture(scope="module")
def prepared(ring: Ring) -> None:
    """Save the ring once its packages are there."""
    ring.play("prepare")
    ring.lab(state="snapshot", name="prepared")


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_refused_in_one_sentence(ring: Ring, prepared: None, case: dict[str, Any]) -> None:
    ring.lab(state="restored", name="prepared")
    for command in case.get("spoil", []):
        ring.shell(case["host"], command)
    if "lab" in case:
        ring.lab(**case["lab"])
    code, said = ring.command("mesh-setup", **case.get("variables", {}))
    assert code == 2
    assert any(re.fullmatch(case["says"].strip(), line) for line in said.splitlines()), said
    assert not (LAB / "plans").exists()
    for host in ring.hosts:
        if case.get("lab", {}).get("state") != "off" or host != f"spark{case['lab']['host']}":
            assert ring.shell(host, "ls /etc/sparkring-node /usr/local/lib/sparkring-node", must=False) == ""
