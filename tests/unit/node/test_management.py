"""A plan that would cut the path by which it comes is refused before anything is changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests.cut_kernel import MANAGEMENT, CutKernel
from tests.fake_kernel import Link

from . import changes, ring

CW = ring.NETDEV["cw_primary"]
SECOND = "enP8s8"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    changes.quick(monkeypatch)


@pytest.fixture
def kernel(tmp_path: Path) -> CutKernel:
    """A host with two interfaces outside the fabric; this ssh session comes through the second."""
    made = changes.bare(tmp_path)
    made.links[SECOND] = Link("52:54:00:00:00:98", addresses=["203.0.113.10/24"])
    session(made, "203.0.113.77", "203.0.113.10")
    return made


def session(kernel: CutKernel, peer: str, own: str) -> None:
    kernel.file(f"proc/{os.getpid()}/environ", f"A=b\0SSH_CONNECTION={peer} 50000 {own} 22\0")


def on(name: str, **fields: Any) -> Callable[[dict[str, Any]], None]:
    """Change the first object of a field of the plan."""
    return lambda plan: plan[name][0].update(fields)


REACH = "reach the host by an address outside the fabric"
CASES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a route": (
        on("routes", netdev=SECOND),
        f"route/198.18.2.0/24 (routes.netdev) of the plan lies on {SECOND}, through which this ssh session comes from"
        f" 203.0.113.77: {REACH}",
    ),
    "a filter": (
        on("filters", netdev=SECOND),
        f"filter/{CW}/0x88b5 (filters.netdev) of the plan lies on {SECOND}, through which this ssh session comes from"
        f" 203.0.113.77: {REACH}",
    ),
    "the controller's subnet on a cable": (
        on("links", address="203.0.113.1/24"),
        "link/cw_primary (links.address 203.0.113.1/24) of the plan holds 203.0.113.77, from which this ssh session"
        " comes: give the ring other subnets",
    ),
    "the controller's subnet as a route": (
        on("routes", destination="203.0.112.0/20"),
        "route/198.18.2.0/24 (routes.destination 203.0.112.0/20) of the plan holds 203.0.113.77, from which this ssh"
        " session comes: give the ring other subnets",
    ),
    "the default route's next hop": (
        on("routes", destination="192.0.2.0/28"),
        "route/198.18.2.0/24 (routes.destination 192.0.2.0/28) of the plan holds 192.0.2.1, the next hop of the"
        f" default route ({MANAGEMENT}): give the ring other subnets",
    ),
    "the gateway itself": (
        on("mesh_routes", destination="192.0.2.1/32"),
        "mesh-route/198.18.2.2 (mesh_routes.destination 192.0.2.1/32) of the plan holds 192.0.2.1, the next hop of the"
        f" default route ({MANAGEMENT}): give the ring other subnets",
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("check", [False, True])
def test_refused_in_one_sentence(kernel: CutKernel, case: str, check: bool) -> None:
    edit, sentence = CASES[case]
    plan = ring.plan()
    edit(plan)
    with pytest.raises(HostError) as raised:
        changes.set_up(kernel, HostPlan.from_plain(plan), check=check)
    assert str(raised.value) == sentence
    assert kernel.changing() == []


def test_the_session_s_interface_as_a_fabric_link(kernel: CutKernel) -> None:
    """The card's own check of its MAC comes second."""
    plan = ring.plan()
    plan["links"][0].update(netdev=SECOND, mac=kernel.links[SECOND].mac)
    with pytest.raises(HostError) as raised:
        changes.set_up(kernel, HostPlan.from_plain(plan))
    assert str(raised.value).startswith(f"link/cw_primary (links.netdev) of the plan lies on {SECOND}, through which")
    assert kernel.changing() == []


@pytest.mark.parametrize("peer", ["192.0.2.77", "2001:db8::77"])
def test_a_session_beside_the_fabric_is_good(kernel: CutKernel, peer: str) -> None:
    session(kernel, peer, "192.0.2.10" if ":" not in peer else "2001:db8::10")
    assert changes.set_up(kernel, check=True).changes


def test_without_ssh_the_default_route_still_counts(tmp_path: Path) -> None:
    kernel = changes.bare(tmp_path)
    plan = ring.plan()
    plan["links"][0]["address"] = "192.0.2.2/28"
    with pytest.raises(HostError, match="the next hop of the default route"):
        fabric.setup(kernel.host(), HostPlan.from_plain(plan), ring.PROGRAM, None, False)
