"""No pauses: the simulated host has a time of its own."""

from __future__ import annotations

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, profiles


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr(profiles, "IDLE_SECONDS", 0)
