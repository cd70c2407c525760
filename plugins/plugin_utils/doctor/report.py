"""What the doctor says, as a document and in its four forms: text, JSON, JUnit and Markdown."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.plugin_utils.finding import SEVERITIES, Finding, Severity

from .examine import Diagnosis, DoctorError

WORDS = {"fail": "fail", "warn": "warning", "info": "note"}
"""What the totals call a severity."""


class Part(BaseModel):
    """A part of the document: no unknown field, no change afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class ReportHost(Part):
    """One host; ``obstacle`` is the last part of a probe's id, null where all could be read."""

    name: str
    examined: bool
    obstacle: str | None


class ReportCheck(Part):
    """One check, and on how many hosts it was answered."""

    id: str
    hosts: int


class ReportFinding(Part):
    """One finding; ``reason`` is why it is silenced, null where it is not."""

    id: str
    severity: Severity
    subject: str
    sentence: str
    fix: str
    reason: str | None = None

    @classmethod
    def of(cls, finding: Finding, reason: str | None = None) -> ReportFinding:
        """The document's form of a finding."""
        return cls(
            id=finding.id,
            severity=finding.severity,
            subject=finding.subject,
            sentence=finding.sentence,
            fix=finding.fix,
            reason=reason,
        )

    def lines(self) -> list[str]:
        """At most two lines, or one with the reason."""
        if self.reason is not None:
            return [f"silenced {self.id} {self.sentence} Reason: {self.reason}"]
        return Finding(self.id, self.severity, self.subject, self.sentence, self.fix).lines()


class ReportRing(Part):
    """One ring."""

    name: str
    layout: str | None
    planned: bool
    hosts: list[ReportHost]
    checks: list[ReportCheck]
    findings: list[ReportFinding]
    silenced: list[ReportFinding]


class DoctorReport(Part):
    """What the doctor says of all rings of a run."""

    schema_name: Literal["sparkring.doctor/1"] = Field(default="sparkring.doctor/1", alias="schema")
    time: str = Field(description="Start of the judgement, UTC, like 2026-12-01T07:00:00Z")
    collection: str
    rings: list[ReportRing]

    @property
    def findings(self) -> list[ReportFinding]:
        """Findings of all rings that are not silenced."""
        return [finding for ring in self.rings for finding in ring.findings]

    def count(self, severity: Severity) -> int:
        """How many findings have a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def examined(self) -> int:
        """How many hosts were surveyed."""
        return sum(host.examined for ring in self.rings for host in ring.hosts)

    @property
    def asked(self) -> int:
        """How many checks were answered on a surveyed host."""
        return sum(check.hosts for ring in self.rings for check in ring.checks)

    @property
    def summary(self) -> str:
        """Counts and totals in one sentence."""
        hosts = sum(len(ring.hosts) for ring in self.rings)
        words = [_counted(self.count(severity), WORDS[severity]) for severity in SEVERITIES]
        if silenced := sum(len(ring.silenced) for ring in self.rings):
            words.append(f"{silenced} silenced")
        return f"{self.asked} checks on {self.examined} of {_counted(hosts, 'host')}: {', '.join(words)}."


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def make(diagnoses: Sequence[Diagnosis], collection: str, now: datetime) -> DoctorReport:
    """The document of a run."""
    return DoctorReport(
        time=now.strftime("%Y-%m-%dT%H:%M:%SZ"), collection=collection, rings=[_ring(one) for one in diagnoses]
    )


def _ring(diagnosis: Diagnosis) -> ReportRing:
    ring = diagnosis.ring
    hosts = [
        ReportHost(
            name=name,
            examined=name in ring.nodes,
            obstacle=ring.obstacles[name].kind if name in ring.obstacles else None,
        )
        for name in ring.names
    ]
    return ReportRing(
        name=ring.name,
        layout=ring.layout,
        planned=ring.plan is not None,
        hosts=hosts,
        checks=[ReportCheck(id=identifier, hosts=count) for identifier, count in diagnosis.asked.items()],
        findings=[ReportFinding.of(finding) for finding in diagnosis.findings],
        silenced=[ReportFinding.of(finding, reason) for finding, reason in diagnosis.silenced],
    )


def text(report: DoctorReport) -> list[str]:
    """Lines for the terminal: each ring's heading, its findings, what is silenced, then the totals."""
    lines: list[str] = []
    for ring in report.rings:
        seen = sum(host.examined for host in ring.hosts)
        layout = ring.layout or "no layout declared"
        plan = "with its plan" if ring.planned else "no plan"
        lines.append(f"Ring {ring.name}: {layout}, {plan}, {seen} of {_counted(len(ring.hosts), 'host')} examined.")
        lines += [line for finding in [*ring.findings, *ring.silenced] for line in finding.lines()]
    return [*lines, report.summary]


def to_json(report: DoctorReport) -> str:
    """The document itself."""
    return documents.to_text(report.model_dump(by_alias=True))


def junit(report: DoctorReport) -> str:
    """JUnit: a suite for each ring, a case for each check; only a fail is a failure, the rest is its output."""
    root = ET.Element("testsuites", name="sparkring doctor")
    for ring in report.rings:
        suite = ET.SubElement(root, "testsuite", name=ring.name, timestamp=report.time.removesuffix("Z"))
        failures = skipped = 0
        for check in ring.checks:
            case = ET.SubElement(
                suite, "testcase", name=check.id, classname=f"{ring.name}.{check.id.partition('.')[0]}"
            )
            found = [item for item in ring.findings if item.id == check.id]
            failed = [item for item in found if item.severity == "fail"]
            quiet = [item for item in ring.silenced if item.id == check.id]
            if failed:
                failures += 1
                body = ET.SubElement(case, "failure", message=failed[0].sentence, type=check.id)
                body.text = "\n".join(line for item in failed for line in item.lines())
            elif quiet or not check.hosts:
                skipped += 1
                ET.SubElement(case, "skipped", message=quiet[0].reason or "" if quiet else "no host could be asked")
            if rest := [line for item in [*found, *quiet] if item not in failed for line in item.lines()]:
                ET.SubElement(case, "system-out").text = "\n".join(rest)
        suite.set("tests", str(len(ring.checks)))
        suite.set("failures", str(failures))
        suite.set("skipped", str(skipped))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def markdown(report: DoctorReport) -> str:
    """One table for each ring."""
    lines = ["# SparkRing doctor", "", report.summary, f"{report.time}, sparkring.cluster {report.collection}"]
    for ring in report.rings:
        lines += ["", f"## {ring.name}" + (f" ({ring.layout})" if ring.layout else ""), ""]
        rows = [*ring.findings, *ring.silenced]
        if not rows:
            lines.append("Nothing was found.")
            continue
        lines += ["| | Check | Finding | To fix |", "|---|---|---|---|"]
        for item in rows:
            word = "silenced" if item.reason is not None else item.severity
            fix = f"Silenced: {item.reason}" if item.reason is not None else item.fix
            lines.append(f"| {word} | `{item.id}` | {_cell(item.sentence)} | {_cell(fix)} |")
    return "\n".join(lines) + "\n"


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


FORMS: dict[str, Callable[[DoctorReport], str]] = {
    ".json": to_json,
    ".xml": junit,
    ".md": markdown,
    ".txt": lambda report: "\n".join(text(report)) + "\n",
}
"""How a report is written, by the end of the file's name."""


def check_paths(paths: Sequence[str]) -> None:
    """Refuse names whose ending says no form."""
    for path in paths:
        if Path(path).suffix not in FORMS:
            raise DoctorError(f"sparkring_doctor_report: {path} has to end in {', '.join(FORMS)}.")


def write(report: DoctorReport, paths: Sequence[str]) -> None:
    """Write the report to files, each in the form that its name says."""
    for path in map(Path, paths):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FORMS[path.suffix](report), encoding="utf-8")


def outcome(report: DoctorReport, paths: Sequence[str]) -> dict[str, Any]:
    """What the action returns: lines, and whether that is a failure. No check at all is one, and no finding."""
    faults = report.count("fail")
    message = f"{_counted(faults, 'finding')} to mend." if faults else ""
    if not report.asked:
        message = "No host could be examined, so no check was made."
    return {
        "failed": bool(message),
        "msg": message,
        "sparkring_lines": [*text(report), *(f"Report: {path}" for path in paths)],
        "sparkring_findings": faults if report.asked else 0,
    }
