"""Nothing is said against a healthy ring, whoever laid it and whatever its layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import examine
from tests.rings import LAYOUTS

from .healthy import Healthy


def plans(ring: Healthy, folder: Path) -> Path:
    """The ring's bindings and plan on disk."""
    (folder / "home").mkdir()
    (folder / "home/bindings.json").write_text(documents.to_text(ring.bindings.model_dump(by_alias=True)))
    (folder / "home/ring.json").write_text(documents.to_text(ring.plan))
    return folder


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("state", ["planned", "foreign", "bare"])
def test_a_healthy_ring_has_no_finding(layout: str, state: str, tmp_path: Path) -> None:
    ring = Healthy(layout, state)
    folder = plans(ring, tmp_path) if state == "planned" else None
    diagnosis = examine.diagnose(ring.patient(ring.examined(), folder))
    assert [finding for finding in diagnosis.findings if finding.severity != "info"] == []
    assert [finding.id for finding in diagnosis.findings] == (["addr.none"] if state == "bare" else [])
    assert all(diagnosis.asked.values())
    assert (diagnosis.ring.plan is not None) == (state == "planned")
