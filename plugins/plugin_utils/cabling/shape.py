"""The shape that cables make: one ring, one line, a pair, or what has to be moved for that.

Every remedy is a series of moves, and every move makes two ports change what is plugged into them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ansible_collections.sparkring.cluster.plugins.plugin_utils.finding import Finding

from .evidence import PORTS, Cable, End


@dataclass(frozen=True, order=True)
class Move:
    """Two ports change what is plugged into them; one of them may be open."""

    one: End
    other: End


@dataclass(frozen=True)
class Wiring:
    """What the cables make of the hosts."""

    layout: str | None = None
    order: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    moves: tuple[Move, ...] = ()


@dataclass(frozen=True)
class Piece:
    """Hosts that cables join, in walking order; ``leaving`` is the port by which the walk leaves each."""

    hosts: tuple[str, ...]
    leaving: tuple[int, ...]
    closed: bool


def judge(group: Sequence[str], cables: Collection[Cable], blind: Collection[End] = ()) -> Wiring:
    """The layout of these cables, or what is wrong with it. ``blind`` ports have a carrier and no known cable."""
    far = {one: other for cable in cables for one, other in ((cable.a, cable.b), (cable.b, cable.a))}
    pieces = _pieces(group, far)
    if len(group) < 2:
        return Wiring()
    closed = [piece for piece in pieces if piece.closed]
    if len(group) == 2:
        return _pair(group, far, closed)
    if closed and len(pieces) > 1:
        return _merge(group, pieces, far, blind)
    if len(pieces) > 1:
        return Wiring(findings=_in_pieces(pieces) if far and not blind else ())
    return _one_piece(group, pieces[0], blind)


def _pieces(group: Sequence[str], far: dict[End, End]) -> list[Piece]:
    """Every host in one piece; a ring is walked from its first host's p0, a line from its first end."""
    left = list(group)
    pieces = []
    while left:
        start = next((host for host in left if any(End(host, port) not in far for port in PORTS)), left[0])
        port = 0 if End(start, 0) in far else 1
        hosts, leaving, closed = [start], [port], False
        while End(hosts[-1], leaving[-1]) in far:
            end = far[End(hosts[-1], leaving[-1])]
            if end.host == start:
                closed = True
                break
            hosts.append(end.host)
            leaving.append(1 - end.port)
        pieces.append(Piece(tuple(hosts), tuple(leaving), closed))
        left = [host for host in left if host not in hosts]
    return pieces


def _pair(group: Sequence[str], far: dict[End, End], closed: list[Piece]) -> Wiring:
    """p0 to p0, and p1 to p1 or open."""
    first, second = group
    wanted = far.get(End(first, 0))
    if wanted == End(second, 0):
        return Wiring("pair", tuple(group))
    if looped := [piece.hosts[0] for piece in closed if len(piece.hosts) == 1]:
        host = looped[0]
        other = second if host == first else first
        return _moved([_self_loop(host, move := Move(End(host, 1), End(other, 0)))], [move])
    moves = [
        Move(End(host, 1), End(host, 0))
        for host in (second, first)
        if End(host, 1) in far and (len(far) < 4 or host == second)
    ]
    if not moves:
        return Wiring()
    shown = " and ".join(f"{one} ↔ {other}" for one, other in sorted(far.items()) if one < other)
    if len(far) == len(group) * len(PORTS):
        fix = f"swap both cables on {second}."
    else:
        fix = f"move the plug {' and '.join(f'from {move.one} to {move.other}' for move in sorted(moves))}."
    finding = Finding(
        "cabling.pair_ports",
        "fail",
        ", ".join(group),
        f"{shown} where a pair needs {first} p0 ↔ {second} p0.",
        fix,
    )
    return _moved([finding], moves)


def _moved(findings: Sequence[Finding], moves: Sequence[Move]) -> Wiring:
    return Wiring(findings=tuple(findings), moves=tuple(moves))


def _self_loop(host: str, move: Move) -> Finding:
    return Finding(
        "cabling.self_loop", "fail", host, f"{host} p0 ↔ {host} p1: the host is cabled to itself.", _move_words(move)
    )


def _move_words(move: Move, trade: bool = False) -> str:
    if trade:
        return f"let the plugs at {move.one} and {move.other} change places."
    return f"move the plug from {move.one} to {move.other}."


def _merge(group: Sequence[str], pieces: list[Piece], far: dict[End, End], blind: Collection[End]) -> Wiring:
    """Every ring too many is opened into the line that there is, else into the longest ring."""
    lines = [piece for piece in pieces if not piece.closed]
    open_ends = [End(host, port) for piece in lines for host in piece.hosts for port in PORTS]
    open_ends = [end for end in open_ends if end not in far and end not in blind]
    rings = [piece for piece in pieces if piece.closed]
    base = min(open_ends, key=lambda end: (end.port != 1, group.index(end.host)), default=None)
    if base is None and lines:
        # Every free end has a carrier: what is plugged there has to be seen before anything is moved.
        return Wiring(findings=tuple(_closed_finding(piece, "") for piece in rings))
    traded = False
    if base is None:
        longest = max(rings, key=lambda piece: (len(piece.hosts), -group.index(piece.hosts[0])))
        rings.remove(longest)
        base = End(longest.hosts[0], 1)
        traded = True
    findings: list[Finding] = []
    moves: list[Move] = []
    for piece in rings:
        move = Move(End(piece.hosts[0], base.port), base)
        trade = traded or bool(moves)
        moves.append(move)
        findings.append(_closed_finding(piece, _move_words(move, trade)))
    if traded and len(longest.hosts) < 3:
        findings.append(_closed_finding(longest, _move_words(moves[0], True)))
    return _moved(findings, moves)


def _closed_finding(piece: Piece, fix: str) -> Finding:
    hosts = sorted(piece.hosts)
    if len(hosts) == 1:
        text, name = f"{hosts[0]} p0 ↔ {hosts[0]} p1: the host is cabled to itself.", "cabling.self_loop"
    elif len(hosts) == 2:
        text, name = f"{hosts[0]} and {hosts[1]} are joined by two cables and to no other host.", "cabling.double"
    else:
        text, name = f"{', '.join(hosts)} make a ring of their own.", "topology.not_one_cycle"
    return Finding(name, "fail", ", ".join(hosts), text, fix or "check first what the ports with a carrier lead to.")


def _in_pieces(pieces: list[Piece]) -> tuple[Finding, ...]:
    shown = [" - ".join(piece.hosts) for piece in pieces]
    ends = [f"{one.hosts[-1]} and {two.hosts[0]}" for one, two in itertools.pairwise(pieces)]
    return (
        Finding(
            "topology.in_pieces",
            "warn",
            ", ".join(piece.hosts[0] for piece in pieces),
            f"The cables make {len(pieces)} pieces: {'; '.join(shown)}.",
            f"join the open ports of {'; '.join(ends)}, always p0 of one to p1 of the next.",
        ),
    )


def _one_piece(group: Sequence[str], piece: Piece, blind: Collection[End]) -> Wiring:
    """One ring or line of all hosts: a layout where every cable joins a p0 to a p1."""
    size, head = len(group), group[0]
    sets = {
        port: [host for host, left in zip(piece.hosts, piece.leaving, strict=True) if left != port] for port in PORTS
    }
    ends = set() if piece.closed else {piece.hosts[0], piece.hosts[-1]}

    def cost(hosts: list[str]) -> tuple[int, int, bool, list[str]]:
        return sum(1 if host in ends else 2 for host in hosts), len(hosts), head in hosts, sorted(hosts)

    flipped = min(sets.values(), key=cost)
    if not flipped:
        hosts = list(piece.hosts) if not sets[0] else list(reversed(piece.hosts))
        if piece.closed:
            start = hosts.index(head)
            hosts = hosts[start:] + hosts[:start]
        elif any(End(host, port) in blind for host in ends for port in PORTS):
            return Wiring()
        return Wiring(f"{'cycle' if piece.closed else 'path'}-{size}", tuple(hosts))
    flipped = sorted(flipped, key=group.index)
    moves = [Move(End(host, 0), End(host, 1)) for host in flipped]
    return _moved([_same_ports(piece, flipped, ends)], moves)


def _same_ports(piece: Piece, flipped: Sequence[str], ends: Collection[str]) -> Finding:
    wrong = list(_same_port_cables(piece))
    both = [host for host in flipped if host not in ends]
    single = [host for host in flipped if host in ends]
    steps = [f"swap both cables on {', '.join(both)}"] if both else []
    steps += [f"move the cable of {host} to its other port" for host in single]
    return Finding(
        "cabling.same_ports",
        "fail",
        ", ".join(flipped),
        f"{', '.join(wrong)}: {'this cable joins' if len(wrong) == 1 else 'these cables join'} ports of one number, "
        "and every cable must join a p0 to a p1.",
        f"{'; '.join(steps)}.",
    )


def _same_port_cables(piece: Piece) -> Iterator[str]:
    steps = list(zip(piece.hosts, piece.leaving, strict=True))
    after = steps[1:] + (steps[:1] if piece.closed else [])
    found = []
    for (host, out), (next_host, next_out) in zip(steps, after, strict=False):
        if out == 1 - next_out:
            found.append(sorted((End(host, out), End(next_host, 1 - next_out))))
    yield from (f"{one} ↔ {other}" for one, other in sorted(found))
