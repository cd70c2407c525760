"""What the marker must ask of the NIC, written out from the device's documented layout.

Nothing here is computed with the marker's code: in the 384 bytes of a match the EtherType lies at byte 6 and the
IPv4 destination at byte 60, in network order; an action's first word is "set, outer EtherType, 16 bits", its second
the new EtherType; the flow table is RDMA-TX (4), the priority 0, the criteria are the outer headers (1).
"""

from __future__ import annotations

import signal
from typing import Any

from .conftest import Marker

MASK = "000000000000ffff" + "00" * 52 + "ffffffff" + "00" * 320
VALUE = "0000000000000800" + "00" * 52 + "{destination}" + "00" * 320
MATCHER = {
    "call": "create_matcher",
    "type": 0,
    "flags": 0,
    "priority": 0,
    "criteria": 1,
    "comp_mask": 1,
    "ft_type": 4,
    "size": 384,
    "mask": MASK,
}
WORDS = {
    "0x88b5": "10030010000088b5",
    "0x88b6": "10030010000088b6",
    "0x88b7": "10030010000088b7",
    "0x88b8": "10030010000088b8",
    "0x88b9": "10030010000088b9",
    "0x88ba": "10030010000088ba",
    "0x88bb": "10030010000088bb",
}


def rules_of(rules: dict[str, str]) -> list[str]:
    return [part for address, tag in rules.items() for part in ("--rule", f"{address}={tag}")]


def hold(
    marker: Marker, *arguments: str, stop: signal.Signals = signal.SIGTERM, devices: str = "rocep1s0f0:mlx5"
) -> tuple[str, str, int]:
    """Start, wait for its line, stop it; the line, standard error and the exit status."""
    process = marker.start(*arguments, environment=marker.environment(devices))
    assert process.stdout is not None
    line = process.stdout.readline()
    process.send_signal(stop)
    rest, error = process.communicate(timeout=30)
    assert rest == ""
    return line, error, process.returncode


def create_calls(rules: dict[str, str], addresses: dict[str, str]) -> list[dict[str, Any]]:
    """What installing the rules must look like to the NIC."""
    calls: list[dict[str, Any]] = [MATCHER]
    for number, (address, tag) in enumerate(rules.items(), 1):
        calls.append({"call": "create_action", "size": 8, "words": WORDS[tag], "ft_type": 4})
        value = VALUE.format(destination=addresses[address])
        calls.append(
            {"call": "create_flow", "flow": number, "size": 384, "value": value, "actions": 1, "words": WORDS[tag]}
        )
    return calls
