"""Which cable joins which ports, and what every part of the lab is called."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..contract.endpoints import ROLES
from .commands import LabError

NAMESPACE = "sparkring-lab"
MANAGEMENT_BRIDGE = "management"
MANAGEMENT_NETDEV = "enP7s7"
MANAGEMENT_PREFIX = 24
CONTROLLER_ADDRESS = "10.99.0.1"
REPOSITORY_PORT = 8080
FABRIC_MTU = 9000

Ends = tuple[tuple[int, int], tuple[int, int]]
"""The two (host, port) ends of a cable."""
_CABLE = re.compile(r"spark(\d+)\.p([01])-spark(\d+)\.p([01])")

LAYOUTS = ("pair", *(f"path-{n}" for n in range(3, 9)), *(f"cycle-{n}" for n in range(3, 9)))


@dataclass(frozen=True)
class Layout:
    """A layout's hosts and cables: cable e joins port 0 of position e to port 1 of the next, a pair's both ports 0.

    ``wiring`` are the cables of a ring that is cabled otherwise; none are the layout's own.
    """

    name: str
    size: int
    cables: int
    wiring: tuple[Ends, ...] = ()

    def ends(self, cable: int) -> Ends:
        """The two (host, port) ends of a cable."""
        if not 0 <= cable < self.cables:
            raise LabError(f"Layout {self.name} has no cable {cable}; its cables are 0 to {self.cables - 1}.")
        if self.wiring:
            return self.wiring[cable]
        return (cable, 0), ((cable + 1) % self.size, 0 if self.name == "pair" else 1)

    def cable_at(self, host: int, port: int) -> int | None:
        """The cable plugged into a port; None at an open port."""
        for cable in range(self.cables):
            if (host, port) in self.ends(cable):
                return cable
        return None


def parse(name: str) -> Layout:
    """The layout of that name."""
    if name not in LAYOUTS:
        raise LabError(f"The lab knows no layout {name!r}; choose one of {', '.join(LAYOUTS)}.")
    if name == "pair":
        return Layout(name, 2, 1)
    kind, _, size = name.partition("-")
    return Layout(name, int(size), int(size) if kind == "cycle" else int(size) - 1)


def parse_cables(layout: Layout, text: str) -> tuple[Ends, ...]:
    """Cables from ``spark0.p0-spark1.p1,spark1.p0-spark2.p1``; no port has two."""
    found: list[Ends] = []
    for word in filter(None, text.replace(",", " ").split()):
        match = _CABLE.fullmatch(word)
        if match is None:
            raise LabError(f"{word!r} is no cable; write it as spark0.p0-spark1.p1.")
        one, other = (int(match[1]), int(match[2])), (int(match[3]), int(match[4]))
        taken = [end for cable in found for end in cable]
        for host, port in (one, other):
            if host >= layout.size:
                raise LabError(f"The lab has no host {host}; its hosts are 0 to {layout.size - 1}.")
            if (host, port) in taken or one == other:
                raise LabError(f"{host_name(host)}.p{port} has two cables; give each port one at most.")
        found.append((one, other))
    return tuple(found)


def recabled(layout: Layout, wiring: tuple[Ends, ...]) -> Layout:
    """The layout's hosts with other cables, with its own where ``wiring`` is empty."""
    return replace(layout, cables=len(wiring), wiring=wiring) if wiring else layout


def host_name(host: int) -> str:
    """Inventory name and host name of a virtual host."""
    return f"spark{host}"


def address(host: int) -> str:
    """Management address of a virtual host."""
    return f"10.99.0.{10 + host}"


def ssh_port(host: int) -> int:
    """Port on the machine's loopback that leads to the host's sshd."""
    return 2200 + host


def mac(host: int, index: int) -> str:
    """MAC of NIC 0 (management) or 1 to 4 (the endpoints in the contract's order)."""
    return f"52:54:00:{host:02x}:00:{index:02x}"


def tap(host: int, index: int) -> str:
    """The machine's side of one virtual NIC."""
    return f"host{host}-nic{index}"


def bridge(cable: int) -> str:
    """The segment that stands for one cable."""
    return f"cable{cable}"


def port_nics(port: int) -> tuple[int, ...]:
    """Indices of the two NICs (functions) of a port."""
    return tuple(index for index, role in enumerate(ROLES, start=1) if role.port == port)
