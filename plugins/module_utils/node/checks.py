"""Answer the checks of a plan that one host can answer by itself, each with what was found and one fix."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Callable

from ..contract import hairpin_state, host_plan
from . import forward, gid, hairpin, identity, objects, observe
from .commands import Completed
from .diff import compare
from .host import Host
from .objects import Item
from .observe import State

MISSING = "missing"
CHECKS_AT_ONCE = 8
LAY_AGAIN = "run mesh-setup"


@dataclass(frozen=True)
class Result:
    """The answer to one check; ``fix`` is empty where it is good."""

    id: str
    subject: str
    ok: bool
    expected: str
    found: str
    fix: str


@dataclass(frozen=True)
class Question:
    """How one kind of check is answered, and what to do where the answer is wrong."""

    answer: Callable[[Bench, host_plan.Check], str]
    fix: str


@dataclass(frozen=True)
class Bench:
    """One look at the host and its plan, by which every check is answered."""

    host: Host
    plan: host_plan.HostPlan
    state: State
    wanted: dict[str, Item]
    present: dict[str, Item]

    def link(self, check: host_plan.Check) -> host_plan.Link:
        """The link that a check is about."""
        return next(link for link in self.plan.links if link.id == check.subject)

    def equal(self, check: host_plan.Check, words: Callable[[dict[str, Any]], str]) -> str:
        """The expected words if the whole object is as planned, else what it is and how it differs."""
        present, wanted = self.present.get(check.subject), self.wanted.get(check.subject)
        if present is None or wanted is None:
            return MISSING
        if present.body == wanted.body:
            return words(present.body)
        return f"{words(present.body)} ({compare([wanted], [present])[0].reason})"


def answer(host: Host, plan: host_plan.HostPlan) -> list[dict[str, Any]]:
    """Results of all checks of the plan, in its order."""
    state = observe.look(host, plan)
    wanted = {item.id: item for item in objects.desired(plan, state.chain(), b"", None)}
    bench = Bench(host, plan, state, wanted, {item.id: item for item in state.items})
    with ThreadPoolExecutor(max_workers=CHECKS_AT_ONCE) as pool:
        return [asdict(result) for result in pool.map(lambda check: _judge(bench, check), plan.checks)]


def _judge(bench: Bench, check: host_plan.Check) -> Result:
    question = QUESTIONS.get(check.id)
    if question is None:
        found, fix = "unknown to this version of the node library", "use one version of the collection"
    else:
        found, fix = question.answer(bench, check), question.fix
    good = found == check.expected
    return Result(check.id, check.subject, good, check.expected, found, "" if good else fix)


def _carrier(bench: Bench, check: host_plan.Check) -> str:
    link = bench.link(check)
    if bench.host.read(f"/sys/class/net/{link.netdev}/carrier") == "1":
        return "up"
    return f"no carrier on cable {link.cable} to {link.peer_host}"


def _entry(bench: Bench, check: host_plan.Check) -> dict[str, Any]:
    return bench.state.links.get(bench.link(check).netdev, {})


def _mac(bench: Bench, check: host_plan.Check) -> str:
    return str(_entry(bench, check).get("address", MISSING))


def _mtu(bench: Bench, check: host_plan.Check) -> str:
    return str(_entry(bench, check).get("mtu", MISSING))


def _address(bench: Bench, check: host_plan.Check) -> str:
    return ",".join(observe.ipv4_addresses(_entry(bench, check))) or "none"


def _speed(bench: Bench, check: host_plan.Check) -> str:
    speed = bench.host.read_integer(f"/sys/class/net/{bench.link(check).netdev}/speed")
    return "unknown" if speed is None or speed < 0 else str(speed)


def _port_state(bench: Bench, check: host_plan.Check) -> str:
    state = bench.host.read(f"{identity.RDMA_CLASS}/{bench.link(check).rdma_device}/ports/1/state")
    return MISSING if state is None else state.rpartition(":")[2].strip()


def _port_mtu(bench: Bench, check: host_plan.Check) -> str:
    return str(bench.host.port_mtu(bench.link(check).rdma_device) or "unknown")


def _gid(bench: Bench, check: host_plan.Check) -> str:
    """IPv4 addresses that the device's RoCE v2 GIDs of its netdev carry; found by content, not by index."""
    link = bench.link(check)
    return ",".join(gid.by_address(bench.host, link.rdma_device, link.netdev)) or "none"


def _route(bench: Bench, check: host_plan.Check) -> str:
    return bench.equal(check, lambda body: f"via {body['via']} dev {body['netdev']}")


def _sysctl(bench: Bench, check: host_plan.Check) -> str:
    return bench.equal(check, lambda body: str(body["value"])).partition(" ")[0]


def _forward_rule(bench: Bench, check: host_plan.Check) -> str:
    present, wanted = bench.present.get(check.subject), bench.wanted.get(check.subject)
    if present is None or wanted is None:
        return MISSING
    if present.body != wanted.body:
        return compare([wanted], [present])[0].reason
    blocker = forward.blocker(bench.state.firewall, present.body)
    return "accepted" if blocker is None else f"behind '{blocker}'"


def _mesh_route(bench: Bench, check: host_plan.Check) -> str:
    return bench.equal(check, lambda body: f"dev {body['netdev']} src {body['source']}")


def _neighbour(bench: Bench, check: host_plan.Check) -> str:
    return bench.equal(check, lambda body: f"{body['mac']} dev {body['netdev']}")


def _filter(bench: Bench, check: host_plan.Check) -> str:
    return bench.equal(check, lambda body: f"to {body['set_mac']} as {body['set_tag']} by {body['egress']}")


def _in_hardware(bench: Bench, check: host_plan.Check) -> str:
    present = bench.present.get(check.subject)
    if present is None:
        return MISSING
    return "in hardware" if present.body["skip_sw"] and present.body["in_hw"] else "not in hardware"


def _marker(bench: Bench, check: host_plan.Check) -> str:
    return bench.equal(check, lambda body: str(body["tag"]))


def _ping(bench: Bench, check: host_plan.Check) -> str:
    """Payload that came back from an address unfragmented. A second try forgives one cold neighbour entry."""
    command = ["ping", "-n", "-c", "1", "-W", "2", "-M", "do", "-s", check.expected, check.subject]
    done = Completed(1, "", "")
    for _ in range(2):
        done = bench.host.runner.execute(command, None, 10)
        if done.status == 0:
            return check.expected
    text = done.errors + done.output
    if "too long" in text or "Frag needed" in text:
        return "too long for the path"
    if "unreachable" in text.lower():
        return "unreachable"
    return "no answer"


def _hairpin(bench: Bench, check: host_plan.Check) -> str:
    return str(hairpin.look_at(bench.host, bench.plan, bench.link(check)).judgement)


QUESTIONS = {
    "link.carrier": Question(_carrier, "check the cable and that the host at its other end is on"),
    "link.mac": Question(_mac, "run rebind to see which hardware changed"),
    "link.mtu": Question(_mtu, LAY_AGAIN),
    "link.address": Question(_address, LAY_AGAIN),
    "link.speed": Question(_speed, "reseat or replace the cable, then verify again"),
    "rdma.state": Question(_port_state, "check the cable, then rdma link show"),
    "rdma.active_mtu": Question(_port_mtu, LAY_AGAIN),
    "gid.ipv4": Question(_gid, "stop what holds the RDMA device, then run mesh-setup"),
    "route.present": Question(_route, LAY_AGAIN),
    "sysctl.value": Question(_sysctl, LAY_AGAIN),
    "forward.rule": Question(_forward_rule, "run mesh-setup; move a blocking rule behind ours by hand"),
    "mesh.route": Question(_mesh_route, LAY_AGAIN),
    "neighbour.present": Question(_neighbour, LAY_AGAIN),
    "mesh.relay.filter": Question(_filter, LAY_AGAIN),
    "mesh.relay.in_hw": Question(_in_hardware, "switch hw-tc-offload on (ethtool -K) and run mesh-setup"),
    "hairpin.in_effect": Question(_hairpin, f"run {hairpin_state.COMMAND}, or read why in docs/hairpin.md"),
    "mesh.marker": Question(_marker, "read journalctl -u 'sparkring-node-marker@*', then run mesh-setup"),
    "mesh.source_port": Question(
        _marker, "read journalctl -u 'sparkring-node-marker@*' and the hazard in the plan's README, then run mesh-setup"
    ),
    "pair.ping": Question(_ping, "check links and routes of the hosts on the way, then run mesh-setup"),
}
