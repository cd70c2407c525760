"""A host that is changed from one plan to another, or from none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import change, confirm, fabric, profiles
from ansible_collections.sparkring.cluster.plugins.module_utils.node.change import Run
from tests.cut_kernel import CutKernel

from . import ring

RUN = Run("root@desk", "100/1", 180, b"the program that undoes")
OTHER = Run("ann@laptop", "7/7", 180, b"another program")
SECONDS = [0.0]


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses, and a clock that the tests move."""
    SECONDS[0] = 1000.0
    monkeypatch.setattr(fabric, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr(profiles, "IDLE_SECONDS", 0)
    monkeypatch.setattr(change, "now", lambda: SECONDS[0])


def bare(root: Path) -> CutKernel:
    """Host 0 on which nothing of ours lies."""
    return CutKernel(root, ring.links())


def old_plan() -> HostPlan:
    """A plan from which the one of ``ring`` differs in objects of each kind."""
    plan = ring.plan()
    plan["links"][0]["mtu"] = 1500
    plan["links"][1]["address"] = "198.18.41.1/24"
    plan["routes"] = [item for item in plan["routes"] if item["via"] != plan["links"][1]["peer_address"]][:-1]
    plan["mesh_routes"] = [item for item in plan["mesh_routes"] if item["netdev"] != plan["links"][1]["netdev"]]
    plan["neighbours"][0]["mac"] = "52:54:00:99:00:01"
    plan["neighbours"] = plan["neighbours"][:-1]
    plan["filters"][0]["set_mac"] = "52:54:00:99:00:02"
    plan["filters"] = plan["filters"][:-1]
    plan["qdiscs"] = plan["qdiscs"][:-1]
    plan["sysctls"] = [{"id": "sysctl/net/ipv4/ip_forward", "key": "net/ipv4/ip_forward", "value": "1"}]
    plan["forward_rules"] = plan["forward_rules"][1:]
    plan["marker_rules"] = plan["marker_rules"][:-1]
    plan["marker_rules"][0]["tag"] = "0x88b6"
    # The last marker, and the timer that an earlier version did not have.
    plan["units"] = plan["units"][:-2]
    return HostPlan.from_plain(plan)


def set_up(
    kernel: CutKernel, plan: HostPlan | None = None, run: Run | None = RUN, check: bool = False
) -> fabric.Outcome:
    """Lay a plan, by default the one of ``ring``."""
    program = b"an older program" if plan else ring.PROGRAM
    return fabric.setup(kernel.host(), plan or ring.host_plan(), program, None, check, (), run)


def keep(kernel: CutKernel, run: Run = RUN, check: bool = False) -> None:
    """Confirm."""
    confirm.confirm(kernel.host(), ring.host_plan(), run, check, lambda seconds: None)


def laid(kernel: CutKernel, plan: HostPlan | None = None) -> CutKernel:
    """The host with a plan laid and nothing pending."""
    set_up(kernel, plan, None)
    return kernel
