"""What holds for every ring that the planner accepts, whatever its layout, addresses, names and hardware."""

from __future__ import annotations

import ipaddress
import json
import string
from collections import Counter
from typing import Any
from xml.etree import ElementTree

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import ROLES
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import (
    bindings,
    drawing,
    inventory,
    layouts,
    planner,
)
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import summary as page
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.bindings import Bindings
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.inventory import Inventory
from tests import walker
from tests.rings import LAYOUTS, size

KIB = 1024
QUEUE = 384 * KIB
NAMES = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=20).filter(
    lambda text: text[0] != "-" and text[-1] != "-"
)
NETDEVS = st.text(string.ascii_letters + string.digits + ".", min_size=2, max_size=15).filter(
    lambda text: text[0] != "."
)


@st.composite
def supernets(draw: st.DrawFn, layout: str) -> str | None:
    """A supernet wide enough, away from the management network; None for the default."""
    shape = layouts.layout(layout)
    assert shape is not None
    if draw(st.booleans()):
        return None
    prefix = draw(st.integers(inventory.WIDEST, layouts.largest_prefix(shape)))
    bits = draw(st.integers(0, (1 << (prefix - 8)) - 1))
    return str(ipaddress.IPv4Network(((10 << 24) + (bits << (32 - prefix)), prefix)))


@st.composite
def rings(draw: st.DrawFn) -> tuple[Inventory, Bindings]:
    """Any ring with any hardware; hosts of both drivers side by side."""
    layout = draw(st.sampled_from(LAYOUTS))
    names = draw(st.lists(NAMES, min_size=size(layout), max_size=size(layout), unique=True))
    variables: dict[str, Any] = {"sparkring_layout": layout, "sparkring_allow_research": draw(st.booleans())}
    network = draw(supernets(layout))
    if network is not None:
        variables["sparkring_supernet"] = network
    ring = inventory.read(
        "ring", variables, [(name, {"ansible_host": f"192.168.7.{n}"}) for n, name in enumerate(names, 1)]
    )
    macs = iter(
        draw(st.lists(st.integers(0, 2**40 - 1), min_size=4 * len(names), max_size=4 * len(names), unique=True))
    )
    hosts: dict[str, Any] = {}
    for place, name in enumerate(names):
        netdevs = draw(st.lists(NETDEVS.filter(lambda text: text != "mgmt0"), min_size=4, max_size=4, unique=True))
        hosts[name] = {
            "identity": f"{place:032x}",
            "driver": draw(st.sampled_from(["mlx5", "virtual"])),
            "management": {"netdev": "mgmt0", "address": f"192.168.7.{place + 1}", "prefix": 24},
            "endpoints": {
                role.name: {
                    "netdev": netdev,
                    "rdma_device": f"rdma{index}",
                    "mac": "02:" + next(macs).to_bytes(5, "big").hex(":"),
                    "bdf": None,
                }
                for index, (role, netdev) in enumerate(zip(ROLES, netdevs, strict=True))
            },
        }
    return ring, bindings.read("ring", {"schema": "sparkring.bindings/1", "ring": "ring", "hosts": hosts})


RINGS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@RINGS
@given(rings())
def test_packets_arrive(ring: tuple[Inventory, Bindings]) -> None:
    plan = planner.plan(*ring)
    assert list(walker.faults(documents.to_plain(plan))) == []


@RINGS
@given(rings())
def test_equal_input_gives_equal_bytes(ring: tuple[Inventory, Bindings]) -> None:
    given_inventory, bound = ring
    shuffled = Bindings(ring=bound.ring, hosts=dict(reversed(bound.hosts.items())))
    first, second = planner.plan(given_inventory, bound), planner.plan(given_inventory, shuffled)
    text = documents.to_text(first)
    assert text == documents.to_text(second)
    assert RingPlan.from_plain(json.loads(text)) == first
    assert {host.plan_digest for host in first.hosts.values()} == {first.digest}
    without = json.loads(text)
    without["digest"] = ""
    for host in without["hosts"].values():
        host["plan_digest"] = ""
    assert documents.digest(without) == first.digest


@RINGS
@given(rings())
def test_queues_never_overflow(ring: tuple[Inventory, Bindings]) -> None:
    """Shares fit the queue, and windows of the lanes that cross it do too."""
    plan = planner.plan(*ring)
    filled: Counter[str] = Counter()
    crossing: Counter[str] = Counter()
    for host in plan.hosts.values():
        for lane in host.lanes:
            assert (lane.window is None) == (not lane.relays)
            for relay in lane.relays:
                queue = f"queue/{relay.host}/{relay.ingress}>{relay.egress}"
                filled[queue] += lane.window or 0
                crossing[queue] += 1
            if lane.window is not None:
                assert lane.window % (32 * KIB) == 0 and 32 * KIB <= lane.window <= 128 * KIB
    for queue in plan.queues:
        assert sum(queue.shares.values()) <= QUEUE
        assert filled[queue.id] <= QUEUE
        assert crossing[queue.id] == queue.lanes
        assert all(share > 0 for share in queue.shares.values())
        for origin, share in queue.shares.items():
            assert [item.bytes for item in plan.hosts[origin].shares if item.queue == queue.id] == [share]
    assert set(crossing) <= {queue.id for queue in plan.queues}


def objects(host: HostPlan) -> list[str]:
    parts = (host.links, host.routes, host.sysctls, host.forward_rules, host.mesh_routes, host.neighbours)
    parts += (host.qdiscs, host.filters, host.marker_rules, host.lanes)  # type: ignore[assignment]
    return [item.id for part in parts for item in part]


@RINGS
@given(rings())
def test_ids_are_unique_and_checks_name_them(ring: tuple[Inventory, Bindings]) -> None:
    for host in planner.plan(*ring).hosts.values():
        names = objects(host)
        assert len(set(names)) == len(names)
        asked = [(check.id, check.subject) for check in host.checks]
        assert len(set(asked)) == len(asked)
        assert {subject for question, subject in asked if question != "pair.ping"} <= set(names)
        for item in objects(host):
            if not item.startswith(("qdisc/", "lane/")):
                assert any(subject == item for _question, subject in asked), item


@RINGS
@given(rings())
def test_only_the_driver_makes_the_difference(ring: tuple[Inventory, Bindings]) -> None:
    for host in planner.plan(*ring).hosts.values():
        real = host.driver == "mlx5"
        questions = {check.id for check in host.checks}
        assert all(item.in_nic == real for item in host.filters)
        assert host.hairpin.needed == (real and bool(host.filters))
        assert ("mesh.relay.in_hw" in questions) == (real and bool(host.filters))
        assert ("link.speed" in questions) == real
        carrying = {item.netdev for item in host.filters} | (set() if real else {m.netdev for m in host.marker_rules})
        assert {item.netdev for item in host.qdiscs} == carrying


@RINGS
@given(rings())
def test_subnets_stay_inside_and_apart(ring: tuple[Inventory, Bindings]) -> None:
    plan = planner.plan(*ring)
    outer = ipaddress.IPv4Network(plan.supernet or "")
    inner = [
        ipaddress.IPv4Network(net) for cable in plan.cables for net in (cable.subnets.primary, cable.subnets.secondary)
    ]
    assert len(set(inner)) == 2 * len(plan.cables)
    assert all(net.prefixlen == 24 and net.subnet_of(outer) for net in inner)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rings())
def test_the_picture_is_sound(ring: tuple[Inventory, Bindings]) -> None:
    plan = planner.plan(*ring)
    picture = ElementTree.fromstring(drawing.svg(plan))
    width, height = (float(value) for value in picture.attrib["viewBox"].split()[2:])
    for item in picture.iter():
        for axis, limit in (("x", width), ("y", height), ("cx", width), ("cy", height)):
            assert 0 <= float(item.attrib.get(axis, 0)) <= limit
    text = page.markdown(plan)
    for cable in plan.cables:
        assert f"{cable.a.host} p{cable.a.port} ↔ {cable.b.host} p{cable.b.port}" in text
        assert cable.subnets.primary in "".join(picture.itertext())
