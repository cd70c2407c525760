"""One host's section of the plan: everything that host shall own, and nothing it must work out.

Each object has an ``id`` that names it in diffs, journals and receipts. Addresses are
strings; ``address`` of a link has its prefix length, all others have none unless the field
says so. Lists are sorted by the planner, and their order is the order of application.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional

from . import documents


@dataclass(frozen=True)
class Management:
    """The interface by which the host is administered; never a fabric port."""

    netdev: str
    address: str
    prefix: int


@dataclass(frozen=True)
class Link:
    """One cabled endpoint. ``id`` is ``link/<role>``.

    ``cable`` is the cable's number; ``address`` like ``198.18.0.1/24``; ``peer_address``
    without prefix. ``bdf`` is None where the device is not on a PCI bus of its own. An ``adopted``
    link is configured by what the operator has on the host: it is checked, and no profile is laid.
    """

    id: str
    role: str
    port: int
    function: str
    cable: int
    netdev: str
    rdma_device: str
    mac: str
    bdf: Optional[str]
    address: str
    mtu: int
    profile: str
    profile_uuid: str
    peer_host: str
    peer_address: str
    adopted: bool = False


@dataclass(frozen=True)
class BaselineRoute:
    """Kernel route to a cable subnet. ``id`` is ``route/<subnet>``."""

    id: str
    destination: str
    via: str
    netdev: str


@dataclass(frozen=True)
class Sysctl:
    """Per-interface kernel setting. ``id`` is ``sysctl/<key>``.

    ``key`` uses slashes below /proc/sys (``net/ipv4/conf/enp1s0f0np0/forwarding``), since an
    interface name may hold a dot.
    """

    id: str
    key: str
    value: str


@dataclass(frozen=True)
class ForwardRule:
    """Accept packets from one fabric netdev to another. ``id`` is ``forward/<in>><out>``."""

    id: str
    ingress: str
    egress: str


@dataclass(frozen=True)
class MeshRoute:
    """Origin route to a far endpoint. ``id`` is ``mesh-route/<address>``; ``destination`` is that address with /32."""

    id: str
    destination: str
    netdev: str
    source: str


@dataclass(frozen=True)
class Neighbour:
    """Permanent neighbour: far address at the first relay's MAC. ``id`` is ``neighbour/<address>``."""

    id: str
    address: str
    netdev: str
    mac: str


@dataclass(frozen=True)
class Qdisc:
    """A clsact qdisc that filters or virtual markers hang on. ``id`` is ``qdisc/<netdev>``."""

    id: str
    netdev: str


@dataclass(frozen=True)
class Filter:
    """Relay filter on an ingress netdev. ``id`` is ``filter/<netdev>/<tag>``.

    A packet with EtherType ``tag`` gets destination MAC ``set_mac`` and EtherType ``set_tag``
    and leaves by ``egress``. ``in_nic`` demands skip_sw and proof of in_hw.
    """

    id: str
    netdev: str
    tag: str
    preference: int
    handle: int
    set_mac: str
    set_tag: str
    egress: str
    in_nic: bool


@dataclass(frozen=True)
class MarkerRule:
    """Tag packets at their origin. ``id`` is ``marker/<rdma device>/<destination>``.

    ``destination`` is one far address, or ``source-port/65535``: the older rule, which tags every packet of the
    device with that UDP source port for which no address rule holds.
    """

    id: str
    rdma_device: str
    netdev: str
    destination: str
    tag: str


@dataclass(frozen=True)
class Hairpin:
    """Driver setting that a relaying mlx5 host needs (facts: fabric 5.6)."""

    needed: bool
    queue_size: int
    num_queues: int


@dataclass(frozen=True)
class LaneEnd:
    """Endpoint of a lane."""

    netdev: str
    rdma_device: str
    address: str


@dataclass(frozen=True)
class LaneRelay:
    """One relay that a lane crosses, in the order of crossing; ``filter`` is the id at ``host``."""

    host: str
    ingress: str
    egress: str
    filter: str


@dataclass(frozen=True)
class Lane:
    """One RDMA path to a peer. ``id`` is ``lane/<from>><to>/<index>``.

    ``window`` is the bytes that may be unacknowledged on it; None on a lane without relays.
    """

    id: str
    peer: str
    index: int
    function: str
    source: LaneEnd
    target: LaneEnd
    relays: List[LaneRelay]
    window: Optional[int]


@dataclass(frozen=True)
class QueueShare:
    """This host's share, in bytes, of one relay queue. ``queue`` is ``queue/<host>/<in>><out>``."""

    queue: str
    bytes: int


@dataclass(frozen=True)
class Peer:
    """Another host of the ring and where it is administered."""

    host: str
    position: int
    management_address: str


@dataclass(frozen=True)
class Check:
    """One question with a stable id (``link.mtu``), about one ``subject`` (an object id or netdev)."""

    id: str
    subject: str
    expected: str


@dataclass(frozen=True)
class HostPlan:
    """All that one host of one ring shall be."""

    schema: str
    ring: str
    layout: str
    host: str
    position: int
    plan_digest: str
    driver: str
    identity: str
    management: Management
    links: List[Link]
    routes: List[BaselineRoute]
    sysctls: List[Sysctl]
    forward_rules: List[ForwardRule]
    mesh_routes: List[MeshRoute]
    neighbours: List[Neighbour]
    qdiscs: List[Qdisc]
    filters: List[Filter]
    marker_rules: List[MarkerRule]
    hairpin: Hairpin
    units: List[str]
    lanes: List[Lane]
    shares: List[QueueShare]
    peers: List[Peer]
    checks: List[Check]

    @classmethod
    def from_plain(cls, value: object) -> HostPlan:
        """Read a host plan; raises ValueError naming the first wrong field."""
        plan: HostPlan = documents.from_plain(cls, value)
        if plan.schema != documents.HOST_PLAN:
            raise ValueError(f"schema: {documents.HOST_PLAN} is needed, not {plan.schema}")
        return plan
