"""The example inventories can be planned, and hold nothing but inventory."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner, runs
from tests.conftest import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "inventories").glob("example-*"))


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_example(folder: Path) -> None:
    rings = yaml.safe_load((folder / "hosts.yml").read_text(encoding="utf-8"))["sparkring"]["children"]
    groups = [(ring, list(content["hosts"])) for ring, content in rings.items()]
    variables = {
        host: {**content["vars"], **values} for content in rings.values() for host, values in content["hosts"].items()
    }
    chosen = runs.choose(groups, variables, [str(folder)], list(variables))
    assert [planner.plan(ring, None).layout for ring in chosen] == [folder.name.removeprefix("example-")]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 3
