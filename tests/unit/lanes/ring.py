"""A path of three hosts on loopback: the middle one relays between the ends, in both directions."""

from __future__ import annotations

import dataclasses
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents, marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import (
    Filter,
    Hairpin,
    HostPlan,
    Lane,
    LaneEnd,
    LaneRelay,
    Management,
    Peer,
)

KEY = b"0123456789abcdef0123456789abcdef"
HOSTS = ("spark0", "spark1", "spark2")
MANAGEMENT = {"spark0": "127.0.18.1", "spark1": "127.0.18.2", "spark2": "127.0.18.3"}
CW = {host: LaneEnd(f"{host}cw", f"roce{host}cw", f"198.18.{2 * i}.1") for i, host in enumerate(HOSTS)}
CCW = {host: LaneEnd(f"{host}ccw", f"roce{host}ccw", f"198.18.{2 * (i - 1)}.2") for i, host in enumerate(HOSTS)}
THERE = LaneRelay("spark1", "spark1ccw", "spark1cw", "filter/spark1ccw/0x88b5")
BACK = LaneRelay("spark1", "spark1cw", "spark1ccw", "filter/spark1cw/0x88b5")


def lane(source: str, target: str, near: LaneEnd, far: LaneEnd, *relays: LaneRelay) -> Lane:
    return Lane(f"lane/{source}>{target}/0", target, 0, "primary", near, far, list(relays), 786432 if relays else None)


LANES = {
    "spark0": [
        lane("spark0", "spark1", CW["spark0"], CCW["spark1"]),
        lane("spark0", "spark2", CW["spark0"], CCW["spark2"], THERE),
    ],
    "spark1": [
        lane("spark1", "spark0", CCW["spark1"], CW["spark0"]),
        lane("spark1", "spark2", CW["spark1"], CCW["spark2"]),
    ],
    "spark2": [
        lane("spark2", "spark0", CCW["spark2"], CW["spark0"], BACK),
        lane("spark2", "spark1", CCW["spark2"], CW["spark1"]),
    ],
}


def relay_filter(relay: LaneRelay) -> Filter:
    return Filter(
        relay.filter,
        relay.ingress,
        "0x88b5",
        marks.INGRESS_PREFERENCE_BASE + 1,
        1,
        "02:00:00:00:00:01",
        "0x0800",
        relay.egress,
        in_nic=False,
    )


def host_plan(host: str) -> HostPlan:
    return HostPlan(
        schema=documents.HOST_PLAN,
        ring="bench",
        layout="path-3",
        host=host,
        position=HOSTS.index(host),
        plan_digest="sha256:00",
        driver="virtual",
        identity="",
        management=Management("lo", MANAGEMENT[host], 8),
        links=[],
        routes=[],
        sysctls=[],
        forward_rules=[],
        mesh_routes=[],
        neighbours=[],
        qdiscs=[],
        filters=[relay_filter(THERE), relay_filter(BACK)] if host == "spark1" else [],
        marker_rules=[],
        hairpin=Hairpin(False, 8192, 4),
        units=[],
        lanes=LANES[host],
        shares=[],
        peers=[Peer(other, HOSTS.index(other), MANAGEMENT[other]) for other in HOSTS if other != host],
        checks=[],
    )


def plain_plan(host: str, **changes: Any) -> dict[str, Any]:
    plain: dict[str, Any] = documents.to_plain(dataclasses.replace(host_plan(host), **changes))
    return plain
