"""Examine rings: put together what is known of each, ask every selected check, keep apart what is silenced."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils import cabling
from ansible_collections.sparkring.cluster.plugins.plugin_utils.finding import Finding, ordered
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import layouts, selection, store
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.bindings import Bindings
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.errors import RingError
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.survey import Survey

from . import addresses, fleet, hairpin, known, links, management, mesh, probes, routing, wiring
from .registry import CHECKS, Check
from .ring import End, Node, Obstacle, Port, Ring, ports_of

MODULES = (probes, links, wiring, known, addresses, routing, management, mesh, hairpin, fleet)
"""Importing these registers their checks."""
DEFAULT_SUPERNET = "198.18.0.0/20"


class DoctorError(Exception):
    """Why nothing could be examined, as one sentence."""


@dataclass(frozen=True)
class Patient:
    """One ring as the inventory has it, and what was read of its hosts.

    ``examined`` are results of the action ``examine`` by host; ``variables`` are those of the ring's head.
    """

    name: str
    hosts: Sequence[str]
    examined: Mapping[str, Mapping[str, Any]]
    variables: Mapping[str, Any] = field(default_factory=dict)
    plans_dir: Path | None = None


@dataclass(frozen=True)
class Diagnosis:
    """What the doctor says of one ring. ``asked`` is on how many hosts each check was answered."""

    ring: Ring
    asked: dict[str, int]
    findings: list[Finding]
    silenced: list[tuple[Finding, str]]


def checks() -> list[Check]:
    """All checks, by id."""
    return sorted(CHECKS.values(), key=lambda check: check.id)


def check_selection(only: Sequence[str], silence: Mapping[str, str]) -> None:
    """Refuse ids that no check has, and silence without a reason."""
    for variable, names in (("sparkring_doctor_only", only), ("sparkring_doctor_silence", silence)):
        for name in names:
            if not any(_selects(name, identifier) for identifier in CHECKS):
                raise DoctorError(f"{variable} names {name}, which is no check; docs/doctor.md lists them.")
    for name, reason in silence.items():
        if not reason.strip():
            raise DoctorError(f"sparkring_doctor_silence gives no reason for {name}; write why it may be so.")


def _selects(name: str, identifier: str) -> bool:
    """Whether a name means a check: its id, or the part before a dot for all of that kind."""
    return identifier == name or identifier.startswith(name + ".")


def rings(groups: Mapping[str, Sequence[str]], examined: Sequence[str]) -> dict[str, list[str]]:
    """Hosts of each ring that were examined, in inventory order; hosts of no ring are one of their own."""
    found = {name: [host for host in hosts if host in examined] for name, hosts in groups.items()}
    found = {name: hosts for name, hosts in found.items() if hosts}
    placed = {host for hosts in found.values() for host in hosts}
    if rest := [host for host in examined if host not in placed]:
        found[selection.GROUP] = rest
    return found


def diagnose(patient: Patient, only: Sequence[str] = (), silence: Mapping[str, str] | None = None) -> Diagnosis:
    """All findings on one ring."""
    ring = assemble(patient)
    asked: dict[str, int] = {}
    found: list[Finding] = []
    for identifier, check in CHECKS.items():
        if not only or any(_selects(name, identifier) for name in only):
            asked[identifier] = len(ring.having(check.looks_at).nodes)
            found += check.findings(ring)
    reasons = silence or {}
    kept, silenced = [], []
    for finding in ordered(found):
        reason = next((text for name, text in reasons.items() if _selects(name, finding.id)), None)
        if reason is None:
            kept.append(finding)
        else:
            silenced.append((finding, reason))
    return Diagnosis(ring, asked, kept, silenced)


def assemble(patient: Patient) -> Ring:
    """The ring from surveys, and from the bindings and plan on disk where there are any."""
    nodes: dict[str, Node] = {}
    obstacles: dict[str, Obstacle] = {}
    for host in patient.hosts:
        seen = patient.examined[host]
        if seen.get("obstacle"):
            obstacles[host] = Obstacle(seen["obstacle"], seen.get("reason", ""))
        if seen.get("survey"):
            try:
                survey = Survey.model_validate(seen["survey"])
            except ValidationError as error:
                place = ".".join(str(part) for part in error.errors()[0]["loc"])
                obstacles[host] = Obstacle(probes.FAILED, f"its survey is damaged at {place}.")
                continue
            nodes[host] = Node(host, survey, ports_of(host, survey), _skew(survey, seen))
    plan, bound, fault = _documents(patient)
    layout = plan.layout if plan else patient.variables.get("sparkring_layout")
    ring = Ring(
        name=patient.name,
        names=patient.hosts,
        nodes=nodes,
        wiring=cabling.discover({host: patient.examined[host]["survey"] for host in nodes}, patient.hosts),
        obstacles=obstacles,
        plan=plan,
        bindings=bound,
        layout=layout,
        fault=fault,
        supernet=patient.variables.get("sparkring_supernet") or _default_supernet(layout),
    )
    return _with_cables(ring)


def _default_supernet(layout: str | None) -> str:
    shape = layouts.layout(layout or "")
    return str(layouts.default_supernet(shape)) if shape and shape.cables else DEFAULT_SUPERNET


def _documents(patient: Patient) -> tuple[RingPlan | None, Bindings | None, str | None]:
    """Plan and bindings on disk, and what is wrong with them."""
    if patient.plans_dir is None:
        return None, None, None
    path = patient.plans_dir / patient.name / store.RING
    try:
        plan = RingPlan.from_plain(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
        return plan, store.read_bindings(patient.plans_dir, patient.name), None
    except (RingError, ValueError, OSError) as error:
        return None, None, f"{path.parent}: {error}"


def _skew(survey: Survey, seen: Mapping[str, Any]) -> float | None:
    """Seconds by which the host's clock lies outside the time in which it was read."""
    host, before, after = survey.clock.host, seen.get("before"), seen.get("after")
    if host is None or before is None or after is None:
        return None
    return min(0.0, host - float(before)) + max(0.0, host - float(after))


def _with_cables(ring: Ring) -> Ring:
    """The ring with its cables: planned, else seen by both ends, else told by subnets that two hosts share."""
    if ring.plan is not None:
        cables = [((one.a.host, one.a.port), (one.b.host, one.b.port)) for one in ring.plan.cables]
    else:
        cables = wiring.cables(ring)
        seen = {end for pair in cables for end in pair}
        cables += [pair for pair in by_subnets(ring.ports) if not seen & set(pair)]
    return dataclasses.replace(ring, cables=cables)


def by_subnets(ports: Sequence[Port]) -> list[tuple[End, End]]:
    """Cables that addresses tell: subnets in which exactly two hosts have one port each."""
    shared: dict[IPv4Network, list[Port]] = {}
    for port in ports:
        for address in port.static:
            shared.setdefault(address.network, []).append(port)
    found: list[tuple[End, End]] = []
    taken: set[End] = set()
    for members in shared.values():
        if len(members) == 2 and members[0].host != members[1].host:
            one, other = sorted((port.host, port.number) for port in members)
            if (one, other) not in found and not {one, other} & taken:
                found.append((one, other))
                taken |= {one, other}
    return found
