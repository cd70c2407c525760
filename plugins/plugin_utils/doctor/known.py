"""What is known of parts and versions, from ``known.json``: every entry with its source and date.

A version is listed as bad only where someone reported that it, and not another, is what failed; what is merely
old or unusual is not here. The comparison between hosts finds the odd one out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .registry import Found, check
from .ring import Node, Ring


@dataclass(frozen=True)
class Bad:
    """One known-bad version. ``match`` is a regular expression over the whole of what ``what`` names."""

    what: str
    match: str
    says: str
    fix: str
    source: str
    date: str


_KNOWN = json.loads((Path(__file__).with_name("known.json")).read_text(encoding="utf-8"))
CABLES: dict[str, dict[str, str]] = {entry["part"]: entry for entry in _KNOWN["cables"]}
"""Cables that were seen to carry 200 Gb/s, by part number: vendor, source and date."""
BAD = [Bad(**entry) for entry in _KNOWN["bad"]]


def versions(node: Node) -> Iterator[tuple[str, str, str]]:
    """What can be known bad on a host: kind, version, and the words for it."""
    survey = node.survey
    if survey.kernel.release:
        yield "kernel", survey.kernel.release, f"kernel {survey.kernel.release}"
    if survey.kernel.gpu_driver:
        yield "gpu_driver", survey.kernel.gpu_driver, f"GPU driver {survey.kernel.gpu_driver}"
    if survey.docker.version:
        yield "docker", survey.docker.version, f"Docker {survey.docker.version}"
    for firmware in sorted({port.device.firmware for port in node.ports.values() if port.device.firmware}):
        yield "firmware", firmware, f"NIC firmware {firmware}"
    administered = {survey.management.netdev} if survey.management else set()
    administered |= {route["dev"] for route in survey.routes if route.get("dst") == "default" and "dev" in route}
    for link in survey.links:
        if link.netdev in administered and link.driver:
            yield "netdev_driver", link.driver, f"driver {link.driver} of {link.netdev}"


@check("version.known_bad", "warn", "kernel rdma docker links routes", "A version that is reported to fail is in use.")
def known_bad(ring: Ring) -> Iterator[Found]:
    """Versions of every host against the list."""
    for node in ring.nodes.values():
        for what, version, words in versions(node):
            for bad in BAD:
                if bad.what == what and re.fullmatch(bad.match, version):
                    sentence = f"{node.name} has {words}: {bad.says} (reported {bad.date})."
                    yield Found(f"{node.name} {version}", sentence, bad.fix + ".")
