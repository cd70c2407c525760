"""Lanes between hosts, the relay queues they cross, their windows and each origin's shares.

Rules: facts fabric 5.5 and 5.6, DESIGN section 4.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import FUNCTIONS, PRIMARY, SECONDARY

from .layouts import Hop, Layout, Path

KIB = 1024
CHUNK = 32 * KIB
USABLE_QUEUE = 384 * KIB
"""Three quarters of a relay's 512 KiB queue."""
LARGEST_WINDOW = 128 * KIB

QueueKey = tuple[int, int, str]
"""A relay's position, ingress port and function; it leaves by the same function of the other port."""


@dataclass(frozen=True)
class LanePath:
    """One lane by positions: which path, in which function."""

    start: int
    end: int
    index: int
    function: str
    path: Path


def lane_paths(shape: Layout) -> list[LanePath]:
    """Two lanes for each ordered pair of hosts.

    With one shortest path both lanes use it, primary and secondary. With two, lane 0 is primary on
    the path that leaves the lower position's p0, and lane 1 is secondary on the other.
    """
    lanes = []
    for (start, end), paths in shape.paths.items():
        if start > end:
            continue
        for index, function in enumerate(FUNCTIONS):
            path = paths[index % len(paths)]
            back = tuple(hop.reverse for hop in reversed(path))
            lanes += [LanePath(start, end, index, function, path), LanePath(end, start, index, function, back)]
    return sorted(lanes, key=lambda lane: (lane.start, lane.end, lane.index))


def queue_keys(path: Path, function: str) -> list[QueueKey]:
    """Relay queues that a path crosses, in order."""
    return [(hop.end, hop.in_port, function) for hop in path[:-1]]


def relays(path: Path) -> tuple[Hop, ...]:
    """Hops that end at a relay."""
    return path[:-1]


def queue_loads(lanes: list[LanePath]) -> Counter[QueueKey]:
    """Lanes that cross each queue."""
    return Counter(key for lane in lanes for key in queue_keys(lane.path, lane.function))


def window(lane: LanePath, loads: Counter[QueueKey]) -> int | None:
    """Unacknowledged bytes that a relayed lane may have: its part of the busiest queue it crosses, in whole chunks."""
    crossed = [loads[key] for key in queue_keys(lane.path, lane.function)]
    if not crossed:
        return None
    part = USABLE_QUEUE // max(crossed) // CHUNK * CHUNK
    return max(CHUNK, min(LARGEST_WINDOW, part))


def queue_shares(shape: Layout, lanes: list[LanePath]) -> dict[QueueKey, dict[int, int]]:
    """Bytes of each queue by origin.

    One chunk goes to each origin that has a route but no lane there; the others divide the rest by
    their lanes.
    """
    with_route: dict[QueueKey, set[int]] = {}
    for (start, _end), paths in shape.paths.items():
        for path in paths:
            for function in (PRIMARY, SECONDARY):
                for key in queue_keys(path, function):
                    with_route.setdefault(key, set()).add(start)
    with_lanes: dict[QueueKey, Counter[int]] = {key: Counter() for key in with_route}
    for lane in lanes:
        for key in queue_keys(lane.path, lane.function):
            with_lanes[key][lane.start] += 1
    result = {}
    for key in sorted(with_route):
        counts = with_lanes[key]
        laneless = len(with_route[key] - set(counts))
        rest = USABLE_QUEUE - laneless * CHUNK
        result[key] = {
            origin: rest * counts[origin] // counts.total() if counts[origin] else CHUNK
            for origin in sorted(with_route[key])
        }
    return result
