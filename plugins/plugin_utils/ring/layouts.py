"""Layouts, their cables, and the ways through them (facts: fabric 2, 3)."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import FUNCTIONS

SMALLEST, LARGEST = 3, 8
PORTS = (0, 1)
SWITCHED = "switched"
NAMES = ("pair", *(f"{kind}-{size}" for kind in ("path", "cycle") for size in range(SMALLEST, LARGEST + 1)), SWITCHED)
KNOWN = "pair, path-3 to path-8, cycle-3 to cycle-8 or switched"
SUBNET_PREFIX = 24


@dataclass(frozen=True)
class Cable:
    """Cable ``index``; each end is a position and a port, and the first end has address .1."""

    index: int
    first: tuple[int, int]
    second: tuple[int, int]


@dataclass(frozen=True)
class Hop:
    """One cable crossed: out of ``start`` by ``out_port``, into ``end`` by ``in_port``."""

    start: int
    out_port: int
    end: int
    in_port: int

    @property
    def reverse(self) -> Hop:
        """The same cable the other way."""
        return Hop(self.end, self.in_port, self.start, self.out_port)


Path = tuple[Hop, ...]


@dataclass(frozen=True)
class Layout:
    """A ring's shape. ``size`` is None where any number of hosts will do.

    ``kept`` are the cables that a degraded ring still uses, None where it has them all. Positions, cable numbers and
    ports of what is left are those of the whole ring, and so are the addresses that follow from them.
    """

    name: str
    kind: str
    size: int | None
    kept: frozenset[int] | None = None

    @functools.cached_property
    def cables(self) -> tuple[Cable, ...]:
        """Cables in order; none for a switched ring."""
        return tuple(cable for cable in self._all_cables() if self.kept is None or cable.index in self.kept)

    def _all_cables(self) -> tuple[Cable, ...]:
        if self.size is None:
            return ()
        if self.kind == "pair":
            return (Cable(0, (0, 0), (1, 0)),)
        count = self.size if self.kind == "cycle" else self.size - 1
        return tuple(Cable(index, (index, 0), ((index + 1) % self.size, 1)) for index in range(count))

    @functools.cached_property
    def members(self) -> tuple[int, ...]:
        """Positions that cables still join to each other; all of the whole ring's."""
        if self.kept is None:
            return tuple(range(self.size or 0))
        return tuple(sorted({position for position, _port in self.wiring}))

    def left(self, cables: Collection[int], hosts: Collection[int]) -> Layout | None:
        """What is left without some cables and positions: the longest piece, the one nearest the head of two alike.

        Itself where nothing is lost, None where no cable is left.
        """
        usable = [
            cable
            for cable in self.cables
            if cable.index not in cables and not {cable.first[0], cable.second[0]} & set(hosts)
        ]
        if len(usable) == len(self.cables):
            return self
        pieces: list[tuple[set[int], set[int]]] = []
        for cable in usable:
            ends, indexes = {cable.first[0], cable.second[0]}, {cable.index}
            for piece in [piece for piece in pieces if piece[0] & ends]:
                pieces.remove(piece)
                ends, indexes = ends | piece[0], indexes | piece[1]
            pieces.append((ends, indexes))
        if not pieces:
            return None
        longest = max(pieces, key=lambda piece: (len(piece[0]), -min(piece[0])))
        return replace(self, kept=frozenset(longest[1]))

    @property
    def line(self) -> tuple[int, ...]:
        """Positions of a degraded ring along its cables, port 0 of each towards the next."""
        start = next(position for position in self.members if (position, 1) not in self.wiring)
        return (start, *(hop.end for hop in self.walk(start, 0)))

    @property
    def like(self) -> str:
        """Name of the layout whose lanes and relays these are."""
        if self.kept is None:
            return self.name
        return "pair" if len(self.members) == 2 else f"path-{len(self.members)}"

    @functools.cached_property
    def wiring(self) -> dict[tuple[int, int], tuple[int, int]]:
        """The far end of every cabled (position, port)."""
        pairs = [(cable.first, cable.second) for cable in self.cables]
        return dict(pairs) | {second: first for first, second in pairs}

    @functools.cached_property
    def cable_at(self) -> dict[tuple[int, int], Cable]:
        """The cable in every cabled (position, port)."""
        return {end: cable for cable in self.cables for end in (cable.first, cable.second)}

    def ports(self, position: int) -> list[int]:
        """Cabled ports of a position."""
        return [port for port in PORTS if (position, port) in self.wiring]

    def walk(self, position: int, port: int) -> Path:
        """Hops out of ``port`` and straight on until the line ends or every host was met."""
        hops: list[Hop] = []
        while (position, port) in self.wiring and len(hops) < len(self.members) - 1:
            end, in_port = self.wiring[position, port]
            hops.append(Hop(position, port, end, in_port))
            position, port = end, 1 - in_port
        return tuple(hops)

    @functools.cached_property
    def paths(self) -> dict[tuple[int, int], tuple[Path, ...]]:
        """Shortest paths between every ordered pair; two of them between opposite hosts, the one by p0 first."""
        found: dict[tuple[int, int], tuple[Path, ...]] = {}
        for start in self.members:
            walks = [self.walk(start, port) for port in PORTS]
            for end in self.members:
                if start == end:
                    continue
                reaching = [walk[: index + 1] for walk in walks for index, hop in enumerate(walk) if hop.end == end]
                least = min(map(len, reaching))
                found[start, end] = tuple(path for path in reaching if len(path) == least)
        return found

    def way_to_cable(self, position: int, cable: Cable) -> Hop | None:
        """First hop of the shorter side to a far cable, by p0 on a tie; None for a cable of one's own."""
        ends = {cable.first[0], cable.second[0]}
        if position in ends:
            return None
        best: Path | None = None
        for port in PORTS:
            walk = self.walk(position, port)
            for index, hop in enumerate(walk):
                if hop.end in ends:
                    if best is None or index + 1 < len(best):
                        best = walk[: index + 1]
                    break
        return best[0] if best else None

    @property
    def max_relays(self) -> int:
        """Relays on the longest shortest path."""
        return max((len(paths[0]) - 1 for paths in self.paths.values()), default=0)


@functools.cache
def layout(name: str) -> Layout | None:
    """The layout of that name, None where it is unknown."""
    if name not in NAMES:
        return None
    if name == "pair":
        return Layout(name, "pair", 2)
    if name == SWITCHED:
        return Layout(name, SWITCHED, None)
    kind, _, size = name.partition("-")
    return Layout(name, kind, int(size))


def default_supernet(shape: Layout) -> IPv4Network:
    """198.18.0.0/21 for up to four cables, the /20 at the same start for more."""
    return IPv4Network(f"198.18.0.0/{largest_prefix(shape)}")


def largest_prefix(shape: Layout) -> int:
    """Longest supernet prefix that holds the layout's subnets."""
    return 21 if len(shape.cables) <= 4 else 20


def subnet(supernet: IPv4Network, cable: int, function: str) -> IPv4Network:
    """Cable e has the 2e-th /24 for its primary and the next for its secondary functions."""
    index = 2 * cable + FUNCTIONS.index(function)
    return IPv4Network((int(supernet.network_address) + (index << (32 - SUBNET_PREFIX)), SUBNET_PREFIX))
