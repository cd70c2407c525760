"""What the doctor says of rings with one thing wrong, and that it says nothing of what only looks like it.

Each case in tests/fixtures/doctor is a change to a healthy ring, the exact findings that follow, and near-misses.
"""

from __future__ import annotations

import copy
import ipaddress
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.documents import to_text
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor import examine, wiring
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor.registry import CHECKS

from .healthy import Healthy

FOLDER = Path(__file__).parents[2] / "fixtures/doctor"
CASES = {
    f"{path.stem}-{case['name']}": case
    for path in sorted(FOLDER.glob("*.yml"))
    for case in yaml.safe_load(path.read_text(encoding="utf-8"))
}
NAMED_BY = ("netdev", "active_on", "device", "mount", "file", "dst")
"""Fields by which an entry of a list is found."""


def step(place: Any, word: str) -> Any:
    """One step of a path: a key, a number, or the value of a naming field."""
    if isinstance(place, dict):
        return word
    if word.isdigit():
        return int(word)
    return next(
        number
        for number, entry in enumerate(place)
        if any(entry.get(field) == word for field in NAMED_BY if not isinstance(entry.get(field), dict))
    )


def change(surveys: dict[str, Any], entry: dict[str, Any]) -> None:
    """Make one change: ``at`` is a path of words, host first; ``*`` stands for every host."""
    if "address" in entry:
        return readdress(surveys, *entry["address"].split())
    host, *words = entry["at"].split()
    for name in surveys if host == "*" else [host]:
        place: Any = surveys[name]
        for word in words[:-1]:
            place = place[step(place, word)]
        last = step(place, words[-1])
        if "add" in entry:
            place[last] += copy.deepcopy(entry["add"])
        elif "first" in entry:
            place[last] = copy.deepcopy(entry["first"]) + place[last]
        elif "without" in entry:
            place[last] = [item for item in place[last] if not entry["without"].items() <= item.items()]
        elif entry.get("drop"):
            del place[last]
        else:
            place[last] = copy.deepcopy(entry["set"])
    return None


def readdress(surveys: dict[str, Any], host: str, netdev: str, address: str) -> None:
    """Give a port another address, and to its GIDs and its connected route what follows from that."""
    survey, given = surveys[host], ipaddress.ip_interface(address)
    link = survey["links"][step(survey["links"], netdev)]
    before = str(ipaddress.ip_interface(link["addresses"][0]).network)
    link["addresses"] = [address]
    packed = given.ip.packed.hex()
    for gid in survey["rdma"][step(survey["rdma"], netdev)]["gids"]:
        if ":ffff:" in gid["gid"]:
            gid["gid"] = f"0000:0000:0000:0000:0000:ffff:{packed[:4]}:{packed[4:]}"
    survey["routes"][step(survey["routes"], before)]["dst"] = str(given.network)


def said(case: dict[str, Any], changes: list[dict[str, Any]], folder: Path) -> list[str]:
    """First lines of all findings on the changed ring."""
    ring = Healthy(case["ring"], case["state"])
    surveys = copy.deepcopy(ring.surveys)
    for entry in changes:
        change(surveys, entry)
    ring.surveys = surveys
    examined = ring.examined()
    for host, obstacle in case.get("obstacles", {}).items():
        examined[host] |= obstacle
    if case["state"] == "planned":
        (folder / "home").mkdir()
        (folder / "home/bindings.json").write_text(to_text(ring.bindings.model_dump(by_alias=True)))
        (folder / "home/ring.json").write_text(to_text(ring.plan))
    patient = ring.patient(examined, folder if case["state"] == "planned" else None)
    patient.variables.update(case.get("variables", {}))
    findings = examine.diagnose(patient).findings
    assert all(len(line) <= 240 for finding in findings for line in finding.lines())
    return [finding.lines()[0] for finding in findings]


@pytest.mark.parametrize("name", CASES)
def test_the_finding_is_named(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    assert said(case, case["change"], tmp_path) == case["expect"]


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, case in CASES.items() for number in range(len(case.get("near", [])))]
)
def test_the_near_miss_is_silent(name: str, number: int, tmp_path: Path) -> None:
    case = CASES[name]
    near = case["near"][number]
    assert said({**case, "obstacles": {}, **near}, near["change"], tmp_path) == near.get("expect", [])


def test_every_check_has_a_case() -> None:
    told = {line.split()[1] for case in CASES.values() for line in case["expect"]}
    # tests/unit/doctor/test_wiring.py has those of wiring.
    assert set(CHECKS) - told - set(wiring.KINDS) == {"plan.degraded", "plan.unreadable"}
