"""Adopted links: laid by the operator, checked by us, never written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, profiles
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from tests.fake_kernel import FakeKernel

from . import ring

CW = ring.NETDEV["cw_primary"]
PROFILE = "6bd1a0e6-5a2a-5b02-8ef5-52ac3a2b2b3f"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fabric, "SETTLE_SECONDS", 0.001)
    monkeypatch.setattr(profiles, "IDLE_SECONDS", 0)


def adopting() -> HostPlan:
    made = ring.plan()
    for link in made["links"]:
        link["adopted"] = True
    return HostPlan.from_plain(made)


def operated(root: Path, **options: bool) -> FakeKernel:
    """A host whose operator gave every port its address, MTU and link-local."""
    kernel = ring.fake(root)
    for link in ring.plan()["links"]:
        kernel.links[link["netdev"]].addresses.append(link["address"])
        kernel.links[link["netdev"]].mtu = 9000
    return kernel


def apply(kernel: FakeKernel) -> fabric.Outcome:
    return fabric.setup(kernel.host(), adopting(), ring.PROGRAM, None, False)


@pytest.mark.parametrize("unmanaged", [False, True])
def test_no_profile_is_laid_and_none_is_taken(tmp_path: Path, unmanaged: bool) -> None:
    """Pain log 76: what a ring has stays as it is, whether a profile of NetworkManager or netplan gives it."""
    kernel = operated(tmp_path)
    kernel.add_profile("mine", CW, active=True)
    kernel.unmanaged += [link.netdev for link in adopting().links if unmanaged and link.netdev != CW]
    outcome = apply(kernel)
    assert outcome.changes and not [change for change in outcome.changes if change["id"].startswith("link/")]
    assert [call for call in kernel.changing() if call.startswith("nmcli")] == []
    assert apply(kernel).changes == []
    fabric.remove(kernel.host(), adopting(), False)
    assert [call for call in kernel.changing() if call.startswith("nmcli")] == []
    assert kernel.links[CW].addresses == ["198.18.0.1/24"]


CASES: dict[str, tuple[Callable[[FakeKernel], object], str]] = {
    "another address": (
        lambda k: k.links[CW].addresses.__setitem__(0, "198.18.0.9/24"),
        f"{CW} has 198.18.0.9/24, adopted is 198.18.0.1/24: put that back where this host configures it, or run rebind "
        "with sparkring_adopt",
    ),
    "none": (
        lambda k: k.links[CW].addresses.clear(),
        f"{CW} has no IPv4 address, adopted is 198.18.0.1/24: put that back where this host configures it, or run "
        "rebind with sparkring_adopt",
    ),
    "one too many": (
        lambda k: k.links[CW].addresses.append("10.0.0.1/24"),
        f"{CW} has 198.18.0.1/24, 10.0.0.1/24, adopted is 198.18.0.1/24: put that back where this host configures it, "
        "or run rebind with sparkring_adopt",
    ),
    "small MTU": (
        lambda k: (setattr(k.links[CW], "mtu", 1500), k.add_profile("mine", CW, active=True)),
        f"{CW} is adopted and has MTU 1500: set 9000 in the NetworkManager profile 'mine'",
    ),
    "no link-local": (
        lambda k: setattr(k.links[CW], "link_locals", 0),
        f"{CW} is adopted and has 0 IPv6 link-local addresses: have exactly one, by EUI-64, where this host "
        "configures it",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_serve_is_named_and_left(tmp_path: Path, name: str) -> None:
    place, sentence = CASES[name]
    kernel = operated(tmp_path)
    place(kernel)
    with pytest.raises(HostError) as raised:
        apply(kernel)
    assert str(raised.value) == sentence
    assert kernel.changing() == []
