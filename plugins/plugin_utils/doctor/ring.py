"""A ring as the doctor sees it: hosts with their ports, the cables between them, and what was planned."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network
from typing import TYPE_CHECKING

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.drivers import DRIVERS
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import (
    FUNCTIONS,
    PRIMARY,
    ROLE_BY_PLACE,
    ROLES,
    SECONDARY,
)
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.bindings import Bindings
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.survey import Survey, SurveyDevice, SurveyLink

if TYPE_CHECKING:
    from ansible_collections.sparkring.cluster.plugins.plugin_utils.cabling import Discovery

LINK_LOCAL = IPv4Network("169.254.0.0/16")
KNOWN_DRIVERS = {name: driver for driver in DRIVERS.values() for name in driver.kernel_drivers}
ROLE_BY_DEVICE = {role.rdma_device: role for role in ROLES}
_NETDEV = re.compile(r"en(P?)\d*p\d+s\d+f([01])np[01]")
_FUNCTION = re.compile(r"([0-9a-f]{4}):[0-9a-f]{2}:[0-9a-f]{2}\.([01])")

End = tuple[str, int]
"""Host and port, where a cable is plugged in."""


@dataclass(frozen=True)
class Port:
    """One function of one port of a host: netdev and RDMA device."""

    host: str
    number: int
    function: str
    link: SurveyLink
    device: SurveyDevice

    @property
    def netdev(self) -> str:
        """Name of its netdev."""
        return self.link.netdev

    @property
    def place(self) -> str:
        """The words by which it is named in sentences."""
        return f"{self.host} {self.netdev}"

    @property
    def cage(self) -> str:
        """The physical port, which its twin shares."""
        return f"{self.host} p{self.number}"

    @functools.cached_property
    def addresses(self) -> list[IPv4Interface]:
        """Its IPv4 addresses."""
        return [IPv4Interface(address) for address in self.link.addresses]

    @functools.cached_property
    def static(self) -> list[IPv4Interface]:
        """Its IPv4 addresses but for automatic link-local ones."""
        return [address for address in self.addresses if address.ip not in LINK_LOCAL]


@dataclass(frozen=True)
class Node:
    """One surveyed host. ``ports`` are by port number and function."""

    name: str
    survey: Survey
    ports: dict[tuple[int, str], Port]
    skew: float | None = None
    """Seconds by which its clock is surely off the controller's; None where nobody compared."""

    @property
    def netdevs(self) -> set[str]:
        """Netdevs of its fabric ports."""
        return {port.netdev for port in self.ports.values()}

    @property
    def driver_needs_hairpin(self) -> bool:
        """Whether its card forwards only with the hairpin setting."""
        return any(KNOWN_DRIVERS[port.device.driver or ""].needs_hairpin for port in self.ports.values())


@dataclass(frozen=True)
class Obstacle:
    """Why a host could not be surveyed, or only without root: ``kind`` is the last part of a probe's id."""

    kind: str
    reason: str


@dataclass(frozen=True)
class Ring:
    """All that is known of one ring. ``names`` are its hosts in inventory order, surveyed or not.

    ``cables`` are those of the plan, else those that both ends see, and where they see nothing, what addresses tell.
    ``supernet`` is what a plan would take.
    """

    name: str
    names: Sequence[str]
    nodes: Mapping[str, Node]
    obstacles: Mapping[str, Obstacle] = field(default_factory=dict)
    cables: Sequence[tuple[End, End]] = ()
    wiring: Discovery | None = None
    """What the ports see of each other, planned or not."""
    plan: RingPlan | None = None
    bindings: Bindings | None = None
    fault: str | None = None
    """What is wrong with the plan or the bindings on disk; they are left out then."""
    layout: str | None = None
    supernet: str | None = None

    def having(self, parts: Sequence[str]) -> Ring:
        """The ring without the hosts on which one of these survey parts could not be read."""
        nodes = {name: node for name, node in self.nodes.items() if not set(parts) & set(node.survey.privilege.unread)}
        return self if len(nodes) == len(self.nodes) else dataclasses.replace(self, nodes=nodes)

    def planned(self) -> Iterator[tuple[Node, HostPlan]]:
        """Surveyed hosts that have a plan."""
        for name, node in self.nodes.items():
            if self.plan is not None and name in self.plan.hosts:
                yield node, self.plan.hosts[name]

    @property
    def ports(self) -> list[Port]:
        """All ports of all hosts."""
        return [port for node in self.nodes.values() for port in node.ports.values()]

    @functools.cached_property
    def far_end(self) -> dict[End, End]:
        """The other end of every cabled port."""
        return {one: other for a, b in self.cables for one, other in ((a, b), (b, a))}

    @property
    def cabled(self) -> list[Port]:
        """Ports that a cable of the ring is in."""
        return [port for port in self.ports if (port.host, port.number) in self.far_end]

    def peer(self, port: Port) -> Port | None:
        """The same function at the far end of a port's cable."""
        host, number = self.far_end.get((port.host, port.number), ("", 0))
        return self.nodes[host].ports.get((number, port.function)) if host in self.nodes else None

    @property
    def dark(self) -> set[str]:
        """Hosts with a cabled port that has no carrier: what is missing there follows from that."""
        return {port.host for port in self.cabled if not port.link.carrier}

    @property
    def rails(self) -> list[tuple[Port, Port]]:
        """The two ends of every function of every cable, each once."""
        found = []
        for (host, number), _other in self.cables:
            for function in FUNCTIONS:
                port = self.nodes[host].ports.get((number, function)) if host in self.nodes else None
                peer = self.peer(port) if port else None
                if port is not None and peer is not None:
                    found.append((port, peer))
        return found

    @functools.cached_property
    def neighbours(self) -> dict[str, set[str]]:
        """Hosts at the far ends of each host's cables."""
        found: dict[str, set[str]] = {name: set() for name in self.names}
        for (a, _), (b, _) in self.cables:
            if a != b:
                found.setdefault(a, set()).add(b)
                found.setdefault(b, set()).add(a)
        return found

    @property
    def transit(self) -> list[Node]:
        """Hosts between two others that share no cable, which therefore have to forward."""
        near = self.neighbours
        return [
            node
            for name, node in self.nodes.items()
            if any(b != a and b not in near[a] for a in near.get(name, ()) for b in near[name])
        ]

    @functools.cached_property
    def subnets(self) -> dict[IPv4Network, list[Port]]:
        """Subnets of the cabled ports' addresses, with the ports in each."""
        found: dict[IPv4Network, list[Port]] = {}
        for port in self.cabled:
            for address in port.static:
                found.setdefault(address.network, []).append(port)
        return found

    @functools.cached_property
    def owners(self) -> dict[str, Port]:
        """Port by IPv4 address."""
        return {str(address.ip): port for port in self.ports for address in port.static}


def ports_of(host: str, survey: Survey) -> dict[tuple[int, str], Port]:
    """Fabric ports by number and function: by RDMA device name, netdev name, or PCI function and domain.

    The two functions of one cage have one function number in two PCI domains (facts: fabric 1).
    """
    links = {link.netdev: link for link in survey.links}
    found: dict[tuple[int, str], Port] = {}
    for device in survey.rdma:
        link = links.get(device.netdev or "")
        if link is None or device.driver not in KNOWN_DRIVERS:
            continue
        place = _place(device, link)
        if place is not None:
            found.setdefault(place, Port(host, place[0], place[1], link, device))
    order = {(role.port, role.function): number for number, role in enumerate(ROLES)}
    return dict(sorted(found.items(), key=lambda item: order[item[0]]))


def _place(device: SurveyDevice, link: SurveyLink) -> tuple[int, str] | None:
    role = ROLE_BY_DEVICE.get(device.device)
    if role is not None:
        return role.port, role.function
    if match := _NETDEV.fullmatch(link.netdev):
        return int(match[2]), SECONDARY if match[1] else PRIMARY
    if match := _FUNCTION.fullmatch(link.bdf or ""):
        return int(match[2]), PRIMARY if match[1] == "0000" else SECONDARY
    return None


def role_name(port: Port) -> str:
    """Role of a port in plan and bindings."""
    return ROLE_BY_PLACE[port.number, port.function].name
