"""What a host is and how it stands, in lines for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FINDINGS_SHOWN = 3
"""Findings of one host that its state shows; the receipt of verify has them all."""


def survey_lines(surveys: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One heading line a host, and one line for each RDMA device: netdev, link, MAC and LLDP neighbour."""
    lines: list[str] = []
    for host, survey in surveys.items():
        management = survey["management"] or {"netdev": "unknown interface", "address": "no address"}
        kernel = survey["kernel"]["release"]
        lines.append(f"{host}: {management['netdev']} {management['address']}, kernel {kernel}")
        links = {link["netdev"]: link for link in survey["links"]}
        for device in survey["rdma"]:
            link = links.get(device["netdev"])
            if link is not None:
                lines.append(f"  {device['device']} {_link_words(link)}{_seen(survey['lldp'], link['netdev'])}")
    return lines


def status_lines(
    plan: Mapping[str, Any], changes: Sequence[Mapping[str, Any]], checks: Sequence[Mapping[str, Any]]
) -> list[str]:
    """How one host stands against its plan, then what is wrong with it.

    A link without carrier fails many other checks, so where there is one, only the cables are named.
    """
    failed = [check for check in checks if not check["ok"]]
    digest = plan["plan_digest"].removeprefix("sha256:")[:12]
    head = f"{plan['host']}: position {plan['position']} of {plan['ring']}, plan {digest}, "
    head += f"{_differences(changes)}, {len(checks) - len(failed)}/{len(checks)} checks hold"
    cables = [check for check in failed if check["id"] == "link.carrier"]
    if cables:
        named = {check["found"]: check["fix"] for check in cables}
        return [head, *[f"  {plan['host']}: {found}. To fix: {fix}." for found, fix in named.items()]]
    shown = [
        f"  {plan['host']}: {check['id']} {check['subject']}: {check['found']}. To fix: {check['fix']}."
        for check in failed[:FINDINGS_SHOWN]
    ]
    more = len(failed) - len(shown)
    return [head, *shown, *([f"  {plan['host']}: {more} more findings; verify lists all."] if more else [])]


def _differences(changes: Sequence[Mapping[str, Any]]) -> str:
    if not changes:
        return "as planned"
    names = ", ".join(change["id"] for change in changes[:3])
    return f"{len(changes)} objects differ ({names}{', …' if len(changes) > 3 else ''})"


def _link_words(link: Mapping[str, Any]) -> str:
    speed = "" if link["speed_mbps"] is None else f" {link['speed_mbps']} Mb/s"
    addresses = ", ".join(link["addresses"]) or "no address"
    return f"{link['netdev']} {link['mac']} {'up' if link['carrier'] else 'no carrier'}{speed}, {addresses}"


def _seen(lldp: Sequence[Mapping[str, Any]], netdev: str) -> str:
    names = sorted({f"{item['chassis_name']} {item['port_descr']}" for item in lldp if item["netdev"] == netdev})
    return f" sees {', '.join(names)}" if names else ""
