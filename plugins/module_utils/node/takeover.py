"""The reference tool's objects on this host: known by its marks, and taken away only by their ids.

Its marks (facts: fabric 4-6): route and neighbour protocol 82, ingress preferences 10 to 18 on our EtherTypes, rule
comments ``sparkring:<16 hexadecimal digits>``, and its units.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..contract import tags
from . import tc, units
from .host import Host
from .observe import State

PROTOCOL = "82"
PREFERENCES = range(10, 19)
TAGS = range(tags.TAG_BASE + 1, tags.TAG_BASE + tags.MAX_RELAYS + 1)
COMMENT = re.compile(r"sparkring:[0-9a-f]{16}")
UNITS = (
    "sparkring-agent.service",
    "sparkring-relay-marker.service",
    "sparkring-fabric.service",
    "sparkring-hairpin.service",
)
"""In the order of stopping: the first puts back what the others laid."""


@dataclass(frozen=True)
class Other:
    """One object of the reference tool. ``id`` begins with ``reference/``; ``command`` takes it away."""

    id: str
    command: list[str]
    raw: Any = None

    def plain(self) -> dict[str, str]:
        """The object's removal as it is reported."""
        return {"id": self.id, "action": "remove", "reason": "taken over from the reference tool"}


def found(host: Host, state: State) -> list[Other]:
    """What the reference tool has here, in the order of taking it away."""
    kernel = [*_filters(host, state), *_neighbours(state), *_routes(state), *_rules(state)]
    if not kernel:
        return []
    shown = units.show(host, list(UNITS))
    held = [name for name in UNITS if shown.get(name, {}).get("LoadState") == "loaded"]
    return [Other(f"reference/unit/{name}", ["systemctl", "disable", "--now", name]) for name in held] + kernel


def forget(state: State, others: list[Other], ids: Collection[str]) -> list[Other]:
    """The objects of these ids, which no longer stand in the way of the plan."""
    chosen = [item for item in others if item.id in ids]
    gone = [id(item.raw) for item in chosen]
    state.routes = [entry for entry in state.routes if id(entry) not in gone]
    state.neighbours = [entry for entry in state.neighbours if id(entry) not in gone]
    state.ingress_qdiscs -= {item.raw["qdisc"] for item in chosen if item.id.startswith("reference/qdisc/")}
    sentences = {item.raw for item in chosen if isinstance(item.raw, str)}
    state.foreign_filters = [sentence for sentence in state.foreign_filters if sentence not in sentences]
    return chosen


def take(host: Host, chosen: list[Other]) -> None:
    """Take them away."""
    for item in chosen:
        host.runner.run(item.command, timeout=120)


def held(host: Host, chosen: list[Other]) -> list[dict[str, Any]]:
    """The units among them, and whether each starts at boot and runs."""
    names = [item.command[-1] for item in chosen if item.id.startswith("reference/unit/")]
    shown = units.show(host, names)
    return [
        {
            "name": name,
            "enabled": shown.get(name, {}).get("UnitFileState") == "enabled",
            "active": shown.get(name, {}).get("ActiveState") in ("active", "activating", "reloading"),
        }
        for name in names
    ]


def put_back(host: Host, reference: list[dict[str, Any]]) -> list[str]:
    """Let units that were taken over start again, those first that lay what the others need; their names.

    They lay their own objects. One that does not start now is left to the next boot, and one whose file has gone
    meanwhile is no more than told: it must not keep a revert from ending.
    """
    told = []
    for unit in reversed(reference):
        good = True
        if unit["enabled"]:
            good = host.runner.execute(["systemctl", "enable", unit["name"]], None, 60).status == 0
        if unit["active"] and good:
            host.runner.execute(["systemctl", "start", unit["name"]], None, 120)
        if unit["enabled"] or unit["active"]:
            told.append(f"put back {unit['name']}" if good else f"could not enable {unit['name']} again")
    return told


def lines(chosen: Sequence[Other]) -> str:
    """Each object in one line, for diffs: the command that takes it away."""
    return "".join(f"{item.id} {shlex.join(item.command)}\n" for item in chosen)


def words(others: list[Other], ids: Collection[str]) -> str:
    """The sentence that lists what could be taken over; empty where nothing is left to list."""
    left = [item.id for item in others if item.id not in ids]
    if not left:
        return ""
    return (
        f"the reference tool has {', '.join(left)} here: to take these over, run mesh-setup with "
        "sparkring_take_over set to the list of those ids"
    )


def _filters(host: Host, state: State) -> list[Other]:
    result: list[Other] = []
    if not state.foreign_filters and not state.ingress_qdiscs:
        return result
    for netdev in sorted(state.clsact | state.ingress_qdiscs):
        entries = tc.entries(host.runner.json(["tc", "-j", "filter", "show", "dev", netdev, "ingress"]))
        before = len(result)
        for entry in entries:
            number, preference = tc.protocol_number(entry.get("protocol")), entry.get("pref")
            if number is not None and preference in PREFERENCES and number in TAGS:
                command = ["tc", "filter", "del", "dev", netdev, "ingress", "pref", str(preference)]
                sentence = (
                    f"{netdev} has another tool's filter for {tags.hexadecimal(number)}"
                    f" at ingress preference {preference}"
                )
                result.append(Other(f"reference/filter/{netdev}/{preference}", command, sentence))
        if netdev in state.ingress_qdiscs and 0 < len(entries) == len(result) - before:
            command = ["tc", "qdisc", "del", "dev", netdev, "ingress"]
            result.append(Other(f"reference/qdisc/{netdev}", command, {"qdisc": netdev}))
    return result


def _neighbours(state: State) -> list[Other]:
    return [
        Other(
            f"reference/neighbour/{entry['dst']}",
            ["ip", "neigh", "del", entry["dst"], "dev", entry["dev"]],
            entry,
        )
        for entry in state.neighbours
        if str(entry.get("protocol")) == PROTOCOL
    ]


def _routes(state: State) -> list[Other]:
    return [
        Other(
            f"reference/route/{entry['dst']}",
            ["ip", "route", "del", entry["dst"], "dev", entry["dev"], "proto", PROTOCOL],
            entry,
        )
        for entry in state.routes
        if str(entry.get("protocol")) == PROTOCOL and str(entry.get("table", "main")) == "main"
    ]


def _rules(state: State) -> list[Other]:
    result = []
    for line in state.firewall.rules:
        parts = shlex.split(line)
        if any(COMMENT.fullmatch(part) for part in parts):
            way = ">".join(parts[parts.index(flag) + 1] for flag in ("-i", "-o") if flag in parts)
            result.append(Other(f"reference/forward/{way}", ["iptables", "-w", "-D", *parts[1:]]))
    return result
