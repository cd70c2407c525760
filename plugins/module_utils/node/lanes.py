"""Proves every lane of a ring, one at a time: an RDMA write passes, and its relays carried it.

Runs on the head and asks the responder of each host. A relayed lane holds only when every
relay's filter counted the data there and the acknowledgements back, and no relay's kernel
forwarded meanwhile.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, zip_longest
from time import monotonic, sleep
from typing import Any

from ..contract import marks
from ..contract.host_plan import HostPlan, Lane, LaneRelay
from .messages import Asking, Channel, Refused
from .responder import LISTEN_SECONDS, SERVER_SECONDS, WRITE_BYTES, WRITE_SECONDS, WRITES

CHECK = "pair.rdma.write"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
ATTEMPTS = 3
"""Tries of a lane whose relays also forwarded IP: other traffic may share that counter."""
SETTLE_SECONDS = 3.0
"""How long filter counters may lag: a NIC reports them about once a second."""


class Unanswered(Exception):
    """What a responder could not be asked or could not do, in one sentence, and its fix where that is known."""

    def __init__(self, found: str, fix: str = "") -> None:
        super().__init__(found)
        self.fix = fix


class Responders:
    """One lasting connection to the responder of each host, on which one question is asked at a time."""

    def __init__(self, plans: dict[str, HostPlan], key: bytes, port: int) -> None:
        self._plans = plans
        self._key = key
        self._port = port
        self._open: dict[str, Asking] = {}
        self._lost: dict[str, Unanswered] = {}
        self._turns = {host: threading.Lock() for host in plans}

    def ask(self, host: str, verb: str, seconds: float = ANSWER_SECONDS, **arguments: Any) -> dict[str, Any]:
        """The result of one verb on one host; raises Unanswered."""
        with self._turns[host]:
            return self._ask(host, verb, seconds, arguments)

    def _ask(self, host: str, verb: str, seconds: float, arguments: dict[str, Any]) -> dict[str, Any]:
        if host in self._lost:
            raise self._lost[host]
        where = f"{host} ({self._plans[host].management.address} port {self._port})"
        try:
            if host not in self._open:
                address = (self._plans[host].management.address, self._port)
                self._open[host] = Asking(Channel(socket.create_connection(address, CONNECT_SECONDS)), self._key)
            reply = self._open[host].ask({"host": host, "verb": verb, **arguments}, seconds)
        except (OSError, Refused, ValueError) as error:
            ports = f"{marks.RESPONDER_PORT}-{marks.LANE_PORTS[-1]}"
            self._lost[host] = Unanswered(
                f"the responder of {where} does not answer: {error}",
                f"let the ring's hosts reach TCP ports {ports} of each other on the management network",
            )
            raise self._lost[host] from error
        if "error" in reply:
            raise Unanswered(str(reply["error"]), str(reply.get("fix", "")))
        result: dict[str, Any] = reply["result"]
        return result

    def end(self) -> None:
        """Have every responder end that can be reached, and close the connections."""
        for host in self._plans:
            with suppress(Unanswered):
                self.ask(host, "end")
        for asking in self._open.values():
            asking.close()


@dataclass(frozen=True)
class Counters:
    """What the relays of one lane counted: packets there, packets back, datagrams forwarded by IP."""

    there: dict[str, int]
    back: dict[str, int]
    forwarded: dict[str, int]


def verify(plans: dict[str, HostPlan], key: bytes, port: int = marks.RESPONDER_PORT) -> list[dict[str, Any]]:
    """Check every lane of every host plan, strictly one after another; one result for each.

    The responders end with it.
    """
    responders = Responders(plans, key, port)
    lane_ports = cycle(marks.LANE_PORTS)
    trials = [
        _Trial(plans, responders, plan, lane, next(lane_ports))
        for plan in sorted(plans.values(), key=lambda item: item.position)
        for lane in sorted(plan.lanes, key=lambda item: (plans[item.peer].position, item.index))
    ]
    results = []
    try:
        # Starting a receiving end puts nothing on the fabric: the next lane's is started while this one writes.
        with ThreadPoolExecutor(max_workers=1) as ahead:
            receiving = [ahead.submit(trial.receive) for trial in trials[:1]]
            for trial, following in zip_longest(trials, trials[1:]):
                opened = receiving.pop()
                if following is not None:
                    receiving.append(ahead.submit(following.receive))
                results.append(trial.result(opened.result))
    finally:
        responders.end()
    return results


def reverse_of(lane: Lane, peer: HostPlan) -> Lane | None:
    """The peer's lane between the same two endpoints, which carries the acknowledgements."""
    for other in peer.lanes:
        if (other.source, other.target) == (lane.target, lane.source):
            return other
    return None


class _Trial:
    """One lane on trial."""

    def __init__(
        self, plans: dict[str, HostPlan], responders: Responders, plan: HostPlan, lane: Lane, port: int
    ) -> None:
        self._responders = responders
        self._source = plan.host
        self._lane = lane
        self._reverse = reverse_of(lane, plans[lane.peer])
        self._port = port
        self._since = 0.0

    def receive(self) -> None:
        """Start the receiving end at the far host; raises Unanswered."""
        self._since = monotonic()
        if self._reverse is not None:
            seconds = LISTEN_SECONDS + ANSWER_SECONDS
            self._responders.ask(self._lane.peer, "serve", seconds, lane=self._reverse.id, port=self._port)

    def result(self, received: Callable[[], None]) -> dict[str, Any]:
        """Try the lane, whose receiving end stands once ``received`` returns; what was found, and a fix if it fails."""
        lane, reverse = self._lane, self._reverse
        if reverse is None:
            found = f"{lane.peer} has no lane back from {lane.target.rdma_device}"
            return self._outcome(False, found, "make the plan again: the two hosts' plans do not belong together")
        try:
            for _attempt in range(ATTEMPTS):
                before = self._counters(reverse)
                received()
                received = self.receive
                if monotonic() - self._since > SERVER_SECONDS - WRITE_SECONDS:
                    # The lane before took so long that this end, started ahead, would not outlive the writes.
                    self.receive()
                gbps = self._write()
                moved = self._moved(reverse, before)
                if not any(moved.forwarded.values()):
                    break
        except Unanswered as error:
            return self._outcome(False, str(error), error.fix or self._first_look())
        return self._judge(gbps, moved)

    def _write(self) -> float:
        lane = self._lane
        try:
            answer = self._responders.ask(
                self._source, "write", WRITE_SECONDS + ANSWER_SECONDS, lane=lane.id, port=self._port
            )
        except Unanswered:
            with suppress(Unanswered):
                self._responders.ask(lane.peer, "stop", port=self._port)
            raise
        return float(answer["gbps"])

    def _counters(self, reverse: Lane) -> Counters:
        filters: dict[str, list[str]] = {}
        for relay in [*self._lane.relays, *reverse.relays]:
            filters.setdefault(relay.host, []).append(relay.filter)
        answers = {host: self._responders.ask(host, "counters", filters=names) for host, names in filters.items()}
        return Counters(
            {relay.host: self._count(answers, relay) for relay in self._lane.relays},
            {relay.host: self._count(answers, relay) for relay in reverse.relays},
            {host: int(answer["forwarded"]) for host, answer in answers.items()},
        )

    def _count(self, answers: dict[str, dict[str, Any]], relay: LaneRelay) -> int:
        packets = answers[relay.host]["filters"][relay.filter]
        if packets is None:
            raise Unanswered(f"{relay.host} has no {relay.filter}", "run mesh-setup: it puts the filter back")
        return int(packets)

    def _moved(self, reverse: Lane, before: Counters) -> Counters:
        deadline = monotonic() + SETTLE_SECONDS
        while True:
            after = self._counters(reverse)
            moved = Counters(
                _difference(before.there, after.there),
                _difference(before.back, after.back),
                _difference(before.forwarded, after.forwarded),
            )
            if not self._uncounted(moved) or monotonic() > deadline:
                return moved
            sleep(0.5)

    def _uncounted(self, moved: Counters) -> list[str]:
        short = [host for host, packets in moved.there.items() if packets < WRITES]
        return short + [host for host, packets in moved.back.items() if packets < 1]

    def _judge(self, gbps: float, moved: Counters) -> dict[str, Any]:
        counts = [f"{host} counted {packets}" for host, packets in moved.there.items()]
        counts += [f"{host} counted {packets} back" for host, packets in moved.back.items()]
        counts += [f"{host} forwarded {number} by IP" for host, number in moved.forwarded.items() if number]
        found = ", ".join([f"{WRITES} writes at {gbps:.3g} Gb/s", *counts])
        uncounted = sorted(set(self._uncounted(moved)))
        if uncounted:
            fix = (
                f"see that {marks.marker_unit(self._lane.source.rdma_device)} runs on {self._source} and "
                f"{marks.marker_unit(self._lane.target.rdma_device)} on {self._lane.peer}, "
                f"then run mesh-setup for the filters of {', '.join(uncounted)}"
            )
            return self._outcome(False, found, fix, gbps, moved)
        if any(moved.forwarded.values()):
            hosts = ", ".join(host for host, number in moved.forwarded.items() if number)
            fix = f"stop other traffic that {hosts} forwards, then verify again"
            return self._outcome(False, found, fix, gbps, moved)
        return self._outcome(True, found, "", gbps, moved)

    def _first_look(self) -> str:
        lane = self._lane
        ends = f"{self._source} {lane.source.netdev} and {lane.peer} {lane.target.netdev}"
        return f"look at the link and GID findings of {ends} first, then run mesh-setup"

    def _outcome(
        self,
        holds: bool,
        found: str,
        fix: str,
        gbps: float | None = None,
        moved: Counters | None = None,
    ) -> dict[str, Any]:
        lane = self._lane
        relays = [relay.host for relay in lane.relays]
        expected = f"{WRITES} writes of {WRITE_BYTES} bytes {lane.source.rdma_device} > {lane.target.rdma_device}"
        if relays:
            expected += f", each counted by {', '.join(relays)}, none forwarded by IP"
        return {
            "id": CHECK,
            "subject": lane.id,
            "lane": lane.id,
            "from": self._source,
            "to": lane.peer,
            "index": lane.index,
            "relays": relays,
            "ok": holds,
            "gbps": gbps,
            "relay_packets": moved.there if moved else {},
            "return_packets": moved.back if moved else {},
            "forwarded": moved.forwarded if moved else {},
            "expected": expected,
            "found": found,
            "fix": fix,
        }


def _difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {host: after[host] - before[host] for host in after}
