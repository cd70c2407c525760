"""The report in its four forms, selection and silence, and the page that lists the checks."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import Degraded
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import examine, page, report
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor.examine import DoctorError
from tests import schemas
from tests.conftest import REPOSITORY

from .healthy import Healthy

PAGE = REPOSITORY / "docs/doctor.md"
NOW = datetime(2026, 12, 1, 7, tzinfo=UTC)
SILENCE = {"fleet": "On trial on sr1."}


def sick() -> Healthy:
    """A pair with a slow cable, a route of its own, and another kernel on one host."""
    ring = Healthy("pair", "foreign")
    for link in ring.surveys["sr0"]["links"][1:3]:
        link["speed_mbps"] = 100000
    ring.surveys["sr1"]["memory"]["shmem_kib"] = 31457280
    ring.surveys["sr1"]["kernel"]["release"] = "7.0.0-1019-nvidia"
    return ring


def made(*only: str, silence: dict[str, str] = SILENCE) -> report.DoctorReport:
    ring = sick()
    return report.make([examine.diagnose(ring.patient(ring.examined()), only, silence)], "0.1.0", NOW)


SLOW = "sr0 enp1s0f0np0 (cable to sr1 p0) runs at 100000 Mb/s, not 200000."
HELD = "sr1: 30 GiB of shared memory are held though nothing uses RDMA."
KERNELS = "Kernels differ: 6.17.0-1029-nvidia on sr0; 7.0.0-1019-nvidia on sr1."


def test_text_has_findings_fixes_what_is_silenced_and_totals() -> None:
    said = made()
    checks = 2 * len(examine.CHECKS)
    assert report.text(said) == [
        "Ring home: no layout declared, no plan, 2 of 2 hosts examined.",
        f"FAIL link.speed {SLOW}",
        "  To fix: reseat or replace the cable, then run doctor again.",
        f"WARN mem.not_released {HELD}",
        "  To fix: wait until it is released, or end what a killed model left (ls -l /dev/shm; nvidia-smi).",
        f"silenced fleet.kernel_skew {KERNELS} Reason: On trial on sr1.",
        f"{checks} checks on 2 of 2 hosts: 1 fail, 1 warning, 0 notes, 1 silenced.",
    ]
    assert report.outcome(said, ["x.json"])["sparkring_findings"] == 1
    assert report.outcome(said, ["x.json"])["sparkring_lines"][-1] == "Report: x.json"


def test_selection_by_id_and_by_kind() -> None:
    assert [finding.id for finding in made("mem.not_released", "link", silence={}).findings] == [
        "link.speed",
        "mem.not_released",
    ]
    assert made("mem").count("fail") == 0 and made("mem").asked == 4
    with pytest.raises(DoctorError, match=r"^sparkring_doctor_silence names lin, which is no check; docs/doctor.md"):
        examine.check_selection([], {"lin": "x"})
    with pytest.raises(
        DoctorError, match=r"^sparkring_doctor_silence gives no reason for link; write why it may be so"
    ):
        examine.check_selection([], {"link": " "})
    with pytest.raises(DoctorError, match=r"^sparkring_doctor_report: a.pdf has to end in .json, .xml, .md, .txt\.$"):
        report.check_paths(["a.pdf"])


def test_json_fits_its_schema(tmp_path: Path) -> None:
    report.write(made(), [str(tmp_path / "deep/r.json")])
    document = json.loads((tmp_path / "deep/r.json").read_text())
    schema = json.loads((schemas.FOLDER / "doctor.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["time"] == "2026-12-01T07:00:00Z"
    assert document["rings"][0]["silenced"][0]["reason"] == "On trial on sr1."


def test_junit_has_a_case_for_each_check() -> None:
    (suite,) = ET.fromstring(report.junit(made()).partition("\n")[2])
    assert suite.attrib == {
        "name": "home",
        "timestamp": "2026-12-01T07:00:00",
        "tests": str(len(examine.CHECKS)),
        "failures": "1",
        "skipped": "1",
    }
    cases = {case.get("name"): case for case in suite}
    failure = cases["link.speed"].find("failure")
    assert failure is not None and failure.get("message") == SLOW and "To fix: reseat" in str(failure.text)
    assert cases["mem.not_released"].find("failure") is None
    assert HELD in str(cases["mem.not_released"].findtext("system-out"))
    skipped = cases["fleet.kernel_skew"].find("skipped")
    assert skipped is not None and skipped.get("message") == "On trial on sr1."


def test_markdown_is_a_table() -> None:
    text = report.markdown(made())
    assert f"| fail | `link.speed` | {SLOW} | reseat or replace the cable, then run doctor again. |" in text
    assert f"| silenced | `fleet.kernel_skew` | {KERNELS} | Silenced: On trial on sr1. |" in text
    healthy = Healthy("pair", "foreign")
    good = report.make([examine.diagnose(healthy.patient(healthy.examined()))], "0.1.0", NOW)
    assert "Nothing was found." in report.markdown(good)


def test_no_check_made_is_a_failure_and_no_finding() -> None:
    ring = Healthy("pair", "bare")
    examined = {
        host: {"survey": None, "obstacle": "unreachable", "reason": "No route to host."} for host in ring.surveys
    }
    outcome = report.outcome(report.make([examine.diagnose(ring.patient(examined))], "0.1.0", NOW), [])
    assert outcome["failed"] and outcome["sparkring_findings"] == 0
    assert outcome["msg"] == "No host could be examined, so no check was made."


def test_hosts_of_no_ring_are_one_of_their_own() -> None:
    groups = {"attic": ["a", "b"], "cellar": ["c"]}
    assert examine.rings(groups, ["b", "a", "x"]) == {"attic": ["a", "b"], "sparkring": ["x"]}


def test_a_damaged_plan_is_a_finding_and_the_rest_is_examined(tmp_path: Path) -> None:
    ring = Healthy("pair", "planned")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/ring.json").write_text('{"schema": "sparkring.plan/1"}')
    (finding,) = examine.diagnose(ring.patient(ring.examined(), tmp_path)).findings
    assert finding.lines()[0] == (
        f"WARN plan.unreadable Ring home: its documents were left out ({tmp_path}/home: ring: missing)."
    )


def test_a_ring_that_is_planned_without_a_cable_says_so(tmp_path: Path) -> None:
    ring = Healthy("pair", "planned")
    lost = Degraded([1], [], [], ["sr0", "sr1"], "pair", ["Ring home is degraded: cable 1 is lost."])
    (tmp_path / "home").mkdir()
    (tmp_path / "home/ring.json").write_text(documents.to_text(dataclasses.replace(ring.plan, degraded=lost)))
    (finding,) = examine.diagnose(ring.patient(ring.examined(), tmp_path)).findings
    assert finding.lines()[0] == "WARN plan.degraded Ring home is degraded: cable 1 is lost."


def test_the_page_is_current() -> None:
    """To fix: make schemas."""
    assert PAGE.read_text(encoding="utf-8") == page.text()
