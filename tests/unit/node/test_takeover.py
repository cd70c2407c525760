"""The reference tool's objects: listed by id where they stand in the way, taken only by those ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, profiles, takeover
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests.cut_kernel import CutKernel, difference
from tests.fake_kernel import FakeKernel

from . import changes, ring

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


def test_their_units_come_back_with_a_revert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lay their own objects again, once ours are gone; what no unit of theirs lays stays away, as after a boot."""
    changes.quick(monkeypatch)
    kernel = Reference(tmp_path, ring.links())
    kernel.start()
    before = kernel.standing()
    ids = [*[f"reference/unit/{name}" for name in takeover.UNITS], *IDS]
    fabric.setup(kernel.host(), ring.host_plan(), ring.PROGRAM, None, False, ids, changes.RUN)
    assert not kernel.enabled and RULE not in kernel.rules
    changes.SECONDS[0] += 181
    assert kernel.revert_unit()[1:] == [
        "put back sparkring-fabric.service",
        "put back sparkring-relay-marker.service",
    ]
    assert difference(kernel.standing(), before, "reverted") == ""
    assert kernel.enabled == {"sparkring-fabric.service", "sparkring-relay-marker.service"}


class Reference(CutKernel):
    """A host with the reference tool's units; its fabric unit lays its objects. Its agent is off."""

    enabled: set[str]

    def start(self) -> None:
        """The tool is installed and runs."""
        self.enabled = set()
        for name in ("sparkring-fabric.service", "sparkring-relay-marker.service"):
            self._enable(name, True)
            self._start(name)

    def _systemctl(self, words: list[str]) -> str:
        if words[0] == "show" and "sparkring-agent.service" in words[2:] and len(words) > 3:
            return "\n".join(
                f"Id={name}\nLoadState=loaded\nActiveState={'active' if name in self.running else 'inactive'}\n"
                f"UnitFileState={'enabled' if name in self.enabled else 'disabled'}\n"
                for name in words[2:]
            )
        if words[:2] == ["disable", "--now"]:
            self.running.discard(words[2])
            self.enabled.discard(words[2])
            return ""
        return super()._systemctl(words)

    def _enable(self, name: str, wanted: bool) -> None:
        if name in takeover.UNITS:
            self.enabled.add(name)
        else:
            super()._enable(name, wanted)

    def _start(self, name: str) -> None:
        if name == "sparkring-fabric.service":
            self.routes.append({"dst": "198.18.2.2", "dev": CW, "protocol": "82", "scope": "link", "flags": []})
            self.neighbours.append(
                {"dst": "198.18.2.2", "dev": CW, "lladdr": "52:54:00:01:00:03"}
                | {"state": ["PERMANENT"], "protocol": "82"}
            )
            self.rules.append(RULE)
        if name in takeover.UNITS:
            self.running.add(name)
        else:
            super()._start(name)
