"""The reference tool's objects: listed by id where they stand in the way, taken only by those ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, profiles
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests.fake_kernel import FakeKernel

from . import ring

CW, CCW = ring.NETDEV["cw_primary"], ring.NETDEV["ccw_primary"]
RULE = f"-A FORWARD -i {CW} -o {CCW} -m comment --comment sparkring:0123456789abcdef -j ACCEPT"
IDS = [
    "reference/neighbour/198.18.2.2",
    "reference/route/198.18.2.2",
    f"reference/forward/{CW}>{CCW}",
]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    monkeypatch.setattr(fabric, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr(profiles, "IDLE_SECONDS", 0)
    kernel = ring.fake(tmp_path)
    kernel.links[CW].addresses.append("198.18.0.1/24")
    kernel.routes.append({"dst": "198.18.2.2", "dev": CW, "protocol": "82", "scope": "link", "flags": []})
    kernel.neighbours.append(
        {"dst": "198.18.2.2", "dev": CW, "lladdr": "52:54:00:01:00:03", "state": ["PERMANENT"], "protocol": "82"}
    )
    kernel.rules.append(RULE)
    return kernel


def apply(kernel: FakeKernel, *ids: str, check: bool = False) -> fabric.Outcome:
    return fabric.setup(kernel.host(), ring.host_plan(), ring.PROGRAM, None, check, ids)


def test_listed_first(kernel: FakeKernel) -> None:
    with pytest.raises(HostError) as raised:
        apply(kernel)
    assert str(raised.value) == (
        f"a foreign route to 198.18.2.2/32 exists (dev {CW} proto 82): remove it; "
        f"a foreign permanent neighbour 198.18.2.2 exists on {CW}: remove it; "
        f"the reference tool has {', '.join(IDS)} here: to take these over, run mesh-setup with sparkring_take_over "
        "set to the list of those ids"
    )
    assert kernel.changing() == []


def test_exactly_the_listed_ones_go(kernel: FakeKernel) -> None:
    shown = apply(kernel, *IDS[:2], "reference/route/of-another-host", check=True)
    assert kernel.changing() == []
    assert [change["id"] for change in shown.changes][:2] == IDS[:2]
    assert shown.before.splitlines()[1] == f"{IDS[1]} ip route del 198.18.2.2 dev {CW} proto 82"
    apply(kernel, *IDS[:2])
    assert RULE in kernel.rules
    assert [str(entry["protocol"]) for entry in kernel.routes if entry["dst"] == "198.18.2.2"] == ["83"]
    assert apply(kernel, *IDS[:2]).changes == []
    assert [change["id"] for change in apply(kernel, *IDS).changes] == IDS[2:]
    assert RULE not in kernel.rules
