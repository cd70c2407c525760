"""The plan of a whole ring: cables, relay queues, and the section of each host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, List, Optional

from . import documents
from .host_plan import HostPlan


@dataclass(frozen=True)
class CableEnd:
    """Where one end of a cable is plugged in."""

    host: str
    port: int


@dataclass(frozen=True)
class CableSubnets:
    """Subnets of the two function pairs that share the cable."""

    primary: str
    secondary: str


@dataclass(frozen=True)
class Cable:
    """One cable; end ``a`` has address .1 in both subnets, end ``b`` .2, where they are not adopted."""

    index: int
    a: CableEnd
    b: CableEnd
    subnets: CableSubnets


@dataclass(frozen=True)
class Queue:
    """One relay queue: all that a host forwards from one ingress to one egress device.

    ``lanes`` is how many cross it; ``shares`` are the bytes that each origin may have in it.
    """

    id: str
    host: str
    ingress: str
    egress: str
    lanes: int
    shares: Dict[str, int]


@dataclass(frozen=True)
class Counts:
    """Objects of the whole ring (facts: fabric 5.5); ``source_port_rules`` are not among ``marker_rules``."""

    mesh_routes: int
    filters: int
    marker_rules: int
    markers: int
    baseline_routes: int
    lanes: int
    relays_max: int
    queue_lanes_max: int
    window_min: Optional[int]
    source_port_rules: int = 0


@dataclass(frozen=True)
class Degraded:
    """What a ring is planned without, and what is left of it.

    ``cables`` and ``hosts`` are lost; ``out`` are all hosts without a section, cut off ones too. ``line`` are the
    hosts that are left, along the cables; ``like`` is the layout that they are planned like. ``sentences`` say what
    the line can carry.
    """

    cables: List[int]
    hosts: List[str]
    out: List[str]
    line: List[str]
    like: str
    sentences: List[str]


@dataclass(frozen=True)
class RingPlan:
    """All that one ring shall be.

    ``digest`` is over this document with every digest in it empty. ``blockers`` are sentences
    that say why the plan may not be applied; none means that it may. ``degraded`` is None for a
    whole ring.
    """

    schema: str
    ring: str
    layout: str
    supernet: Optional[str]
    digest: str
    bound: bool
    research: bool
    blockers: List[str]
    counts: Counts
    cables: List[Cable]
    queues: List[Queue]
    hosts: Dict[str, HostPlan]
    degraded: Optional[Degraded] = None

    @classmethod
    def from_plain(cls, value: object) -> RingPlan:
        """Read a ring plan; raises ValueError naming the first wrong field."""
        plan: RingPlan = documents.from_plain(cls, value)
        if plan.schema != documents.PLAN:
            raise ValueError(f"schema: {documents.PLAN} is needed, not {plan.schema}")
        return plan
