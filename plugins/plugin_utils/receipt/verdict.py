"""From plans, check results and lane results to one receipt."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.drivers import DRIVERS
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan

from .model import CheckResult, HostVersions, LaneResult, Receipt, Versions

LANE = "pair.rdma.write"
CARRIER = "link.carrier"
RELAY_IN_HARDWARE = "mesh.relay.in_hw"
FIRMWARE_KEYS = ("fw.version", "fw")


class ReceiptError(Exception):
    """Why no receipt can be made, in one sentence."""


def make_receipt(
    plans: Mapping[str, Any],
    checks: Mapping[str, Sequence[Mapping[str, Any]]],
    lanes: Sequence[Mapping[str, Any]],
    surveys: Mapping[str, Any],
    collection: str,
    ansible_core: str,
    now: datetime,
) -> Receipt:
    """The receipt of one verification; raises ReceiptError when nothing was checked or the plans disagree.

    ``plans``, ``checks`` and ``surveys`` are by host. A check or lane of a plan that nobody
    answered counts as failed.
    """
    ordered = sorted((HostPlan.from_plain(plan) for plan in plans.values()), key=lambda plan: plan.position)
    first = _common(ordered)
    results = [CheckResult(host=plan.host, **_fields(item)) for plan in ordered for item in checks.get(plan.host, [])]
    lane_results = [LaneResult.model_validate(item) for item in lanes]
    if not results and not lane_results:
        raise ReceiptError(
            f"No check of ring {first.ring} was run, so nothing is verified: see why the checks were skipped."
        )
    results += _unanswered(ordered, results, lane_results)
    return Receipt(
        ring=first.ring,
        layout=first.layout,
        plan_digest=first.plan_digest,
        made=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        ok=all(item.ok for item in results) and all(item.ok for item in lane_results),
        summary=_summary(ordered, results, lane_results),
        evidence=_evidence(ordered, results, surveys),
        hosts=[plan.host for plan in ordered],
        versions=Versions(
            collection=collection,
            ansible_core=ansible_core,
            hosts={plan.host: _host_versions(plan, surveys.get(plan.host)) for plan in ordered},
        ),
        checks=results,
        lanes=lane_results,
        limitations=_limitations(ordered, lane_results),
    )


def write_receipt(receipt: Receipt, plans_dir: Path) -> Path:
    """Write the receipt below the ring's plans; its path."""
    folder = plans_dir / receipt.ring / "receipts"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{receipt.made.replace(':', '')}-{receipt.verb}.json"
    path.write_text(documents.to_text(receipt.model_dump(by_alias=True)), encoding="utf-8")
    return path


def collection_version(root: Path) -> str:
    """Version of the collection at ``root``, installed or checked out."""
    manifest, galaxy = root / "MANIFEST.json", root / "galaxy.yml"
    if manifest.is_file():
        return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    found = re.search(r"(?m)^version:\s*[\"']?([^\s\"']+)", galaxy.read_text(encoding="utf-8"))
    if found is None:
        raise ReceiptError(f"{galaxy} names no version.")
    return found.group(1)


def _common(plans: Sequence[HostPlan]) -> HostPlan:
    if not plans:
        raise ReceiptError("A receipt needs the host plans of a ring, and none was given.")
    for plan in plans[1:]:
        if (plan.ring, plan.plan_digest) != (plans[0].ring, plans[0].plan_digest):
            raise ReceiptError(
                f"{plan.host} and {plans[0].host} have different plans: run mesh-setup for the whole ring."
            )
    return plans[0]


def _fields(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: result.get(name) for name in ("id", "subject", "ok", "expected", "found", "fix")}


def _unanswered(
    plans: Sequence[HostPlan], results: Sequence[CheckResult], lanes: Sequence[LaneResult]
) -> list[CheckResult]:
    asked = [(plan.host, check.id, check.subject, check.expected) for plan in plans for check in plan.checks]
    asked += [(plan.host, LANE, lane.id, "an RDMA write") for plan in plans for lane in plan.lanes]
    answered = {(item.host, item.id, item.subject) for item in results}
    answered |= {(item.source, item.id, item.subject) for item in lanes}
    return [
        CheckResult(
            host=host,
            id=name,
            subject=subject,
            ok=False,
            expected=expected,
            found="not checked",
            fix="run verify again for the whole ring",
        )
        for host, name, subject, expected in asked
        if (host, name, subject) not in answered
    ]


def _summary(plans: Sequence[HostPlan], results: Sequence[CheckResult], lanes: Sequence[LaneResult]) -> str:
    relayed = sum(1 for item in lanes if item.relays)
    failed = [f"{item.id} on {item.host}" for item in results if not item.ok]
    failed += [f"{item.id} on {item.source}" for item in lanes if not item.ok]
    asked = f"{len(results)} checks and {len(lanes)} lanes ({relayed} relayed) of {len(plans)} hosts"
    if not failed:
        return f"Ring {plans[0].ring}: all {asked} hold."
    dark = dict.fromkeys(f"{item.host} has {item.found}" for item in results if not item.ok and item.id == CARRIER)
    if dark:
        return f"Ring {plans[0].ring}: {len(failed)} of {asked} do not hold: {', '.join(dark)}."
    counts = {name: failed.count(name) for name in dict.fromkeys(failed)}
    names = ", ".join(name if count == 1 else f"{name} ({count} times)" for name, count in counts.items())
    return f"Ring {plans[0].ring}: {len(failed)} of {asked} do not hold: {names}."


def _evidence(plans: Sequence[HostPlan], results: Sequence[CheckResult], surveys: Mapping[str, Any]) -> Any:
    drivers = [DRIVERS[plan.driver] for plan in plans]
    if not all(driver.relays_in_nic and driver.marks_in_nic for driver in drivers):
        return "rehearsed"
    in_hardware = {(item.host, item.subject) for item in results if item.id == RELAY_IN_HARDWARE and item.ok}
    wanted = {(plan.host, item.id) for plan in plans for item in plan.filters}
    firmware = all(_firmware(surveys.get(plan.host)) for plan in plans)
    return "hardware" if wanted <= in_hardware and firmware else "none"


def _host_versions(plan: HostPlan, survey: Any) -> HostVersions:
    kernel = (survey or {}).get("kernel") or {}
    return HostVersions(
        driver=plan.driver,
        kernel=kernel.get("release"),
        os=kernel.get("os"),
        machine=kernel.get("machine"),
        firmware=_firmware(survey),
    )


def _firmware(survey: Any) -> list[str]:
    """Firmware that runs, from ``devlink dev info`` of each function."""
    found = set()
    for function in ((survey or {}).get("devlink") or {}).values():
        for device in ((function.get("info") or {}).get("info") or {}).values():
            running = (device.get("versions") or {}).get("running") or {}
            found |= {str(running[key]) for key in FIRMWARE_KEYS if key in running}
    return sorted(found)


def _limitations(plans: Sequence[HostPlan], lanes: Sequence[LaneResult]) -> list[str]:
    limits = []
    if not all(DRIVERS[plan.driver].relays_in_nic for plan in plans):
        limits.append("Software relays and markers stand in for the NIC: nothing here shows what the hardware does.")
    if lanes:
        limits.append("Each lane carried one short write alone: that shows its path, not its speed or loss under load.")
    else:
        limits.append("No lane was tried.")
    return limits
