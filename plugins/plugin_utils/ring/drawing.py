"""The ring as a picture: ``ring.svg`` beside the plan."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan, Lane
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import Cable, RingPlan

from . import layouts

Point = tuple[float, float]

CARD = (160.0, 66.0)
WIDTH = 960.0
HEADER = 96.0
GAP = 132.0
"""Between the cards of a line."""
CROWDED = 7
"""From so many hosts on a circle, labels stand outside it."""
PORT_OUT = 7.0
"""From a card's edge to the middle of a port."""
LANE_INSET = 104.0
"""From the circle through the hosts to the lanes drawn inside it."""

STYLE = """
  text { font-family: ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #17202e }
  .mono { font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
  .page { fill: #f6f8fb; stroke: #dde4ed }
  .card { fill: #ffffff; stroke: #ccd6e2; stroke-width: 1.5 }
  .head { stroke: #2563eb; stroke-width: 2 }
  .muted { fill: #5b6b80 }
  .title { font-size: 25px; font-weight: 700 }
  .name { font-size: 16px; font-weight: 650 }
  .small { font-size: 12px }
  .tiny { font-size: 11px }
  .cable { fill: none; stroke: #33435a; stroke-width: 7; stroke-linecap: round }
  .core { fill: none; stroke: #f6f8fb; stroke-width: 1.6; stroke-linecap: round }
  .label { fill: #ffffff; stroke: #ccd6e2 }
  .badge { fill: #33435a }
  .badge.first { fill: #2563eb }
  .on { fill: #ffffff; font-weight: 700 }
  .p0 { fill: #2563eb; stroke: #f6f8fb; stroke-width: 2 }
  .p1 { fill: #d9580b; stroke: #f6f8fb; stroke-width: 2 }
  .lane { fill: none; stroke-width: 2.6; stroke-linecap: round; stroke-dasharray: 1 6.5 }
  .lane0 { stroke: #0b8a7d } .lane1 { stroke: #8b3fd9 }
  .tip0 { fill: #0b8a7d } .tip1 { fill: #8b3fd9 }
  .spoke { stroke: #93a1b5; stroke-width: 2; stroke-dasharray: 5 6; fill: none }
  .warn { fill: #fdf0d5; stroke: #e0a526 } .warned { fill: #8a5a00; font-weight: 600 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e7edf5 } .muted { fill: #97a6ba }
    .page { fill: #0e141d; stroke: #253143 }
    .card, .label { fill: #17202c; stroke: #34445a }
    .head { stroke: #5b93ff }
    .cable { stroke: #8ea0b8 } .core { stroke: #0e141d }
    .badge { fill: #4a5c75 } .badge.first { fill: #3b7bff }
    .p0 { fill: #3b7bff; stroke: #0e141d } .p1 { fill: #f0762b; stroke: #0e141d }
    .lane0 { stroke: #2dd4bf } .lane1 { stroke: #c08bff } .tip0 { fill: #2dd4bf } .tip1 { fill: #c08bff }
    .warn { fill: #3a2a07; stroke: #b98415 } .warned { fill: #ffd27a }
  }
"""


def svg(plan: RingPlan) -> str:
    """The picture of one ring: hosts, ports, cables with their subnets, and the lanes of its farthest pair."""
    return _Drawing(plan).text()


@dataclass(frozen=True)
class _Place:
    """A host's card; ``angle`` is None on a line."""

    plan: HostPlan
    x: float
    y: float
    angle: float | None


class _Drawing:
    def __init__(self, plan: RingPlan) -> None:
        self.plan = plan
        self.hosts = sorted(plan.hosts.values(), key=lambda host: host.position)
        if plan.degraded:
            self.hosts = [plan.hosts[name] for name in plan.degraded.line]
        self.parts: list[str] = []
        shape = layouts.layout(plan.degraded.like if plan.degraded else plan.layout)
        self.round = shape is not None and shape.kind in ("cycle", layouts.SWITCHED)
        count = len(self.hosts)
        self.radius = max(225.0, 190.0 + 23.0 * count) if self.round else 0.0
        half_height = CARD[1] / 2
        self.centre: Point = (WIDTH / 2, HEADER + 26 + half_height + self.radius)
        self.places = {host.host: self._place(index, host) for index, host in enumerate(self.hosts)}
        self.bottom = max(place.y for place in self.places.values()) + half_height
        if count % 2 and self.round:
            self.bottom = self.centre[1] + self.radius + (64 if count >= CROWDED else 20)

    def _place(self, index: int, host: HostPlan) -> _Place:
        if not self.round:
            return _Place(host, WIDTH / 2, HEADER + 26 + CARD[1] / 2 + index * (CARD[1] + GAP), None)
        angle = 2 * math.pi * index / len(self.hosts) - math.pi / 2
        return _Place(host, *self._polar(angle, self.radius), angle)

    def _polar(self, angle: float, radius: float) -> Point:
        return self.centre[0] + radius * math.cos(angle), self.centre[1] + radius * math.sin(angle)

    def text(self) -> str:
        """The whole document."""
        lanes = self._example()
        legend = self._legend(lanes, self.bottom + 44)
        height = self.bottom + 44 + legend[1] + 22
        if self.plan.layout == layouts.SWITCHED:
            self._spokes()
        for cable in self.plan.cables:
            self._cable(cable)
        for index, lane in enumerate(lanes):
            self._lane(index, lane)
        for place in self.places.values():
            self._card(place)
        for cable in self.plan.cables:
            self._ports(cable)
        if self.round:
            self._middle()
        self._header()
        self.parts += legend[0]
        body = "\n".join(self.parts)
        title = escape(f"Ring {self.plan.ring}: {self.plan.layout}, {len(self.hosts)} hosts")
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(WIDTH)} {_n(height)}" role="img">\n'
            f"<title>{title}</title>\n<style>{STYLE}</style>\n"
            f'<rect class="page" x="0.5" y="0.5" width="{_n(WIDTH - 1)}" height="{_n(height - 1)}" rx="18"/>\n'
            f"{body}\n</svg>\n"
        )

    # Parts ---------------------------------------------------------------------------------

    def _add(self, text: str) -> None:
        self.parts.append(text)

    def _words(self, x: float, y: float, text: str, kind: str, anchor: str = "middle") -> str:
        return f'<text class="{kind}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}">{escape(text)}</text>'

    def _header(self) -> None:
        plan = self.plan
        self._add(self._words(34, 48, f"Ring {plan.ring}", "title", "start"))
        facts = [plan.layout, f"{len(self.hosts)} hosts"]
        if plan.cables:
            count = len(plan.cables)
            facts += [f"{count} cable{'s' if count > 1 else ''}", plan.supernet or "adopted addresses"]
        self._add(self._words(34, 72, " · ".join(facts), "small muted", "start"))
        self._add(self._words(WIDTH - 34, 72, "plan " + plan.digest.partition(":")[2][:12], "small muted mono", "end"))
        right = WIDTH - 34
        warnings = {"not bound": not plan.bound, "research": plan.research, "degraded": plan.degraded is not None}
        for text in [text for text, holds in warnings.items() if holds]:
            width = 22 + 7.2 * len(text)
            self._add(f'<rect class="warn" x="{_n(right - width)}" y="30" width="{_n(width)}" height="24" rx="12"/>')
            self._add(self._words(right - width / 2, 46.5, text, "small warned"))
            right -= width + 8

    def _card(self, place: _Place) -> None:
        host = place.plan
        left, top = place.x - CARD[0] / 2, place.y - CARD[1] / 2
        head = host.position == 0
        self._add(
            f'<rect class="card{" head" if head else ""}" x="{_n(left)}" y="{_n(top)}" '
            f'width="{_n(CARD[0])}" height="{_n(CARD[1])}" rx="13"/>'
        )
        self._add(f'<circle class="badge{" first" if head else ""}" cx="{_n(left + 25)}" cy="{_n(place.y)}" r="13"/>')
        self._add(self._words(left + 25, place.y + 4.5, str(host.position), "small on"))
        self._add(self._words(left + 47, place.y - 3, _short(host.host, 12), "name", "start"))
        below = host.management.address if host.management.address != host.host else f"position {host.position}"
        self._add(self._words(left + 47, place.y + 15, _short(below, 16), "tiny muted mono", "start"))

    def _ends(self, cable: Cable) -> tuple[Point, Point, Point]:
        """Where a cable leaves both cards, and the middle of the cable."""
        a, b = self.places[cable.a.host], self.places[cable.b.host]
        if a.angle is None or b.angle is None:
            middle = ((a.x + b.x) / 2, (a.y + b.y) / 2)
        else:
            turn = 2 * math.pi / len(self.hosts)
            middle = self._polar(a.angle + turn / 2, self.radius * (1.0 if len(self.hosts) > 3 else 0.9))
        return _border(a, middle, PORT_OUT), _border(b, middle, PORT_OUT), middle

    def _cable(self, cable: Cable) -> None:
        start, end, middle = self._ends(cable)
        control = (2 * middle[0] - (start[0] + end[0]) / 2, 2 * middle[1] - (start[1] + end[1]) / 2)
        path = f"M{_p(start)} Q{_p(control)} {_p(end)}"
        self._add(f'<path class="cable" d="{path}"/><path class="core" d="{path}"/>')

    def _ports(self, cable: Cable) -> None:
        start, end, middle = self._ends(cable)
        for point, port in ((start, cable.a.port), (end, cable.b.port)):
            self._add(f'<circle class="p{port}" cx="{_n(point[0])}" cy="{_n(point[1])}" r="12.5"/>')
            self._add(self._words(point[0], point[1] + 3.8, f"p{port}", "tiny on"))
        width, height = 118.0, 37.0
        if self.round and len(self.hosts) >= CROWDED:
            away = math.hypot(middle[0] - self.centre[0], middle[1] - self.centre[1])
            scale = (away + 44) / away
            x, y = self.centre
            middle = (x + (middle[0] - x) * scale, y + (middle[1] - y) * scale)
        self._add(
            f'<rect class="label" x="{_n(middle[0] - width / 2)}" y="{_n(middle[1] - height / 2)}" '
            f'width="{_n(width)}" height="{_n(height)}" rx="9"/>'
        )
        self._add(self._words(middle[0], middle[1] - 4, cable.subnets.primary, "tiny mono"))
        self._add(self._words(middle[0], middle[1] + 11, cable.subnets.secondary, "tiny mono muted"))

    def _spokes(self) -> None:
        for place in self.places.values():
            self._add(f'<path class="spoke" d="M{_p((place.x, place.y))} L{_p(self.centre)}"/>')
        x, y = self.centre
        self._add(f'<rect class="label" x="{_n(x - 80)}" y="{_n(y - 32)}" width="160" height="64" rx="13"/>')

    def _middle(self) -> None:
        x, y = self.centre
        if self.plan.layout == layouts.SWITCHED:
            self._add(self._words(x, y - 2, "switch", "name"))
            self._add(self._words(x, y + 16, "links are the operator's", "tiny muted"))
            return
        counts = self.plan.counts
        self._add(self._words(x, y - 12, self.plan.layout, "title"))
        rows = [f"{counts.lanes} lanes", f"{counts.filters} relay filters" if counts.filters else "no relays needed"]
        for index, row in enumerate(rows):
            self._add(self._words(x, y + 12 + 18 * index, row, "small muted"))

    # Lanes ---------------------------------------------------------------------------------

    def _example(self) -> list[Lane]:
        """Both lanes from the head to the farthest host; none where no lane is relayed."""
        head = self.hosts[0]
        most = max((len(lane.relays) for lane in head.lanes), default=0)
        if not most:
            return []
        peer = next(lane.peer for lane in head.lanes if len(lane.relays) == most)
        return [lane for lane in head.lanes if lane.peer == peer]

    def _lane(self, index: int, lane: Lane) -> None:
        crossed = [relay.host for relay in lane.relays]
        stops = [self.places[name] for name in (self.hosts[0].host, *crossed, lane.peer)]
        path = self._line_lane(index, stops) if stops[0].angle is None else self._round_lane(index, stops)
        self._add(
            f'<marker id="tip{index}" viewBox="0 0 10 10" refX="7" refY="5" markerWidth="4.2" markerHeight="4.2" '
            f'orient="auto-start-reverse"><path class="tip{index}" d="M0 0 L10 5 L0 10 z"/></marker>'
        )
        self._add(
            f'<path class="lane lane{index}" marker-start="url(#tip{index})" marker-end="url(#tip{index})" d="{path}"/>'
        )

    def _line_lane(self, index: int, stops: list[_Place]) -> str:
        side = -1 if index == 0 else 1
        edge = WIDTH / 2 + side * (CARD[0] / 2 + 5)
        out = WIDTH / 2 + side * (CARD[0] / 2 + 92)
        first, last = stops[0], stops[-1]
        for stop in stops[1:-1]:
            self._relay(index, (out, stop.y))
        corner = side * 46
        return (
            f"M{_p((edge, first.y))} H{_n(out - corner)} Q{_p((out, first.y))} {_p((out, first.y + 46))} "
            f"V{_n(last.y - 46)} Q{_p((out, last.y))} {_p((out - corner, last.y))} H{_n(edge)}"
        )

    def _round_lane(self, index: int, stops: list[_Place]) -> str:
        """A lane inside the circle; the two lanes leave and reach a card side by side."""
        count = len(self.hosts)
        turn = 2 * math.pi / count
        sign = 1 if (stops[1].plan.position - stops[0].plan.position) % count == 1 else -1
        shared = self._shared()
        radius = self.radius - LANE_INSET - (18 * index if shared else 0)
        aside = sign * (0.075 - 0.09 * index if shared else 0.045)
        first, last = stops[0].angle or 0.0, (stops[0].angle or 0.0) + sign * turn * (len(stops) - 1)
        for number in range(1, len(stops) - 1):
            self._relay(index, self._polar(first + sign * turn * number, radius))
        begin, end = first + aside, last - aside
        bend = sign * min(0.3, turn / 3)
        points = [
            self._inner(stops[0], begin),
            self._polar(begin, radius),
            self._polar(begin + bend, radius),
            self._polar(end - bend, radius),
            self._polar(end, radius),
            self._inner(stops[-1], end),
        ]
        sweep, large = int(sign > 0), int(abs(end - begin - 2 * bend) > math.pi)
        return (
            f"M{_p(points[0])} Q{_p(points[1])} {_p(points[2])} "
            f"A{_n(radius)} {_n(radius)} 0 {large} {sweep} {_p(points[3])} Q{_p(points[4])} {_p(points[5])}"
        )

    def _shared(self) -> bool:
        """Whether both example lanes take the same way round."""
        lanes = self._example()
        return len({tuple(relay.host for relay in lane.relays) for lane in lanes}) == 1

    def _inner(self, place: _Place, angle: float) -> Point:
        """Where the ray from the ring's middle meets a card, a little before its edge."""
        entries = []
        for side, (origin, middle, size) in enumerate(zip(self.centre, (place.x, place.y), CARD, strict=True)):
            along = (math.cos(angle), math.sin(angle))[side]
            if abs(along) > 1e-9:
                entries.append((middle - origin - math.copysign(size / 2, along)) / along)
        return self._polar(angle, max(entries) - 8)

    def _relay(self, index: int, point: Point) -> None:
        x, y = point
        diamond = " ".join(_p(item) for item in ((x, y - 6), (x + 6, y), (x, y + 6), (x - 6, y)))
        self._add(f'<polygon class="tip{index}" points="{diamond}"/>')

    # Legend --------------------------------------------------------------------------------

    def _legend(self, lanes: list[Lane], top: float) -> tuple[list[str], float]:
        """Legend parts and their height."""
        parts: list[str] = []
        y = top
        if self.plan.cables:
            for port, words, x in ((0, "port 0, clockwise", 46.0), (1, "port 1", 218.0)):
                parts.append(f'<circle class="p{port}" cx="{_n(x)}" cy="{_n(y)}" r="9"/>')
                parts.append(self._words(x + 17, y + 4, words, "small", "start"))
            for kind in ("cable", "core"):
                parts.append(f'<path class="{kind}" d="M312 {_n(y)} H350"/>')
            parts.append(self._words(364, y + 4, "cable: primary subnet above, secondary below", "small", "start"))
            y += 28
        for index, lane in enumerate(lanes):
            way = ", ".join(relay.host for relay in lane.relays)
            window = f"{(lane.window or 0) // 1024} KiB window"
            words = f"lane {index}, {lane.function}: {self.hosts[0].host} ↔ {lane.peer}, relayed by {way}, {window}"
            parts.append(f'<path class="lane lane{index}" d="M40 {_n(y)} H66"/>')
            x, diamond_y = 53.0, y
            diamond = " ".join(
                _p(item) for item in ((x, diamond_y - 6), (x + 6, diamond_y), (x, diamond_y + 6), (x - 6, diamond_y))
            )
            parts.append(f'<polygon class="tip{index}" points="{diamond}"/>')
            parts.append(self._words(80, y + 4, words, "small", "start"))
            y += 24
        return parts, y - top


def _border(place: _Place, toward: Point, beyond: float = 0.0) -> Point:
    """Where the straight way from a card's middle crosses its edge, or so far beyond."""
    x, y = toward[0] - place.x, toward[1] - place.y
    scale = min(
        CARD[0] / 2 / abs(x) if abs(x) > 1e-9 else math.inf, CARD[1] / 2 / abs(y) if abs(y) > 1e-9 else math.inf
    )
    scale += beyond / math.hypot(x, y)
    return place.x + x * scale, place.y + y * scale


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _n(value: float) -> str:
    """A coordinate with one decimal, the same on every machine."""
    return f"{value + 0.0:.1f}".removesuffix(".0").replace("-0.0", "0")


def _p(point: Point) -> str:
    return f"{_n(point[0])},{_n(point[1])}"
