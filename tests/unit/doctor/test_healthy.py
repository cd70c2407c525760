"""Nothing is said against a healthy ring, whoever laid it and whatever its layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, survey
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import examine
from tests.rings import LAYOUTS, make_survey, size
from tests.unit.node import ring as fake_host

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


def test_the_order_in_which_hosts_answer_says_nothing(tmp_path: Path) -> None:
    ring = Healthy("cycle-4", "foreign")
    ring.surveys["sr2"]["forward"]["rules"] = []
    ring.surveys["sr1"]["links"][1]["mtu"] = 1500
    ring.surveys["sr3"]["kernel"]["release"] = "7.0.0"
    examined = ring.examined()
    backwards = dict(reversed(list(examined.items())))
    assert examine.diagnose(ring.patient(backwards)).findings == examine.diagnose(ring.patient(examined)).findings != []


@pytest.mark.parametrize("layout", ["pair", "cycle-4"])
def test_a_survey_with_little_in_it_is_examined(layout: str) -> None:
    """One of an earlier version, or of a host that lacks most tools."""
    examined = {
        f"sr{position}": {"survey": make_survey(position), "obstacle": None} for position in range(size(layout))
    }
    ring = Healthy(layout, "bare")
    assert examine.diagnose(ring.patient(examined)).findings == []


def test_what_a_host_really_shows_is_understood(tmp_path: Path) -> None:
    """The survey of the node library's own pretend host, before and after it got its plan."""
    kernel = fake_host.fake(tmp_path, docker=True)
    before = survey.take(kernel.host())
    fabric.setup(kernel.host(), fake_host.host_plan(), fake_host.PROGRAM, None, False)
    after = survey.take(kernel.host())
    found = []
    for one in (before, after):
        patient = examine.Patient("lab", ["spark0"], {"spark0": {"survey": one, "obstacle": None}})
        found.append({finding.id for finding in examine.diagnose(patient).findings})
    # Nobody answers on the pretend host's cables.
    assert found == [{"addr.none", "cabling.unseen"}, {"cabling.unseen", "gid.index", "mesh.no_plan"}]
