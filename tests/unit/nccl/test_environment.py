"""What NCCL is told on each layout: against the table of the facts, and what must hold on all of them.

``python -m tests.unit.nccl.test_environment`` writes the golden texts again.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import Degraded, RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl import explain
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl.environment import environment, refusal
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl.libraries import KNOWN, Library, LibraryError, find
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner
from tests.rings import LAYOUTS, make_bindings, make_inventory

PATH = "/opt/sparkring/nccl/libnccl.so.2"
SKIP_TREE = KNOWN["skip-tree-2.30.7"]
RING_ONLY = KNOWN["glm53-r7-2.30.7"]
TWO_DOMAINS = Library(
    id="both", version="2.32.3", sha256="0" * 64, patches=("two-domains",), source="made up", date="2026-10-07"
)
PLAIN = Library(id="plain", version="2.30.7", sha256="1" * 64, patches=(), source="made up", date="2026-10-07")
CLOSED = [name for name in LAYOUTS if not name.startswith("path")]
GOLDEN = Path(__file__).resolve().parents[2] / "golden/nccl"


def plan(layout: str) -> RingPlan:
    given = make_inventory(layout, sparkring_allow_research=True)
    return planner.plan(given, make_bindings(given))


def told(layout: str, host: str, library: Library | None) -> dict[str, str]:
    return {item.name: item.value for item in environment(plan(layout), host, library, PATH)}


COMMON = {
    "NCCL_NET": "IB",
    "NCCL_IB_DISABLE": "0",
    "NCCL_NET_PLUGIN": "none",
    "NCCL_P2P_LEVEL": "SYS",
    "NCCL_CUMEM_ENABLE": "0",
    "NCCL_IGNORE_CPU_AFFINITY": "1",
    "NCCL_CROSS_NIC": "1",
    "NCCL_DEBUG": "WARN",
}
FILE = {"VLLM_NCCL_SO_PATH": PATH, "LD_PRELOAD": PATH}
MANAGEMENT = {"NCCL_SOCKET_IFNAME": "=enP7s7", "GLOO_SOCKET_IFNAME": "enP7s7"}
DIRECT = {"NCCL_SOCKET_IFNAME": "=enp1s0f0np0", "GLOO_SOCKET_IFNAME": "enp1s0f0np0"}
CYCLE = {
    "NCCL_IB_MERGE_NICS": "0",
    "NCCL_IB_SUBNET_AWARE_ROUTING": "1",
    "NCCL_IB_SUBNET_PREFIX_LEN": "24",
    "NCCL_ALGO": "Ring",
    "NCCL_MIN_NCHANNELS": "4",
    "NCCL_MAX_NCHANNELS": "4",
}
BOTH = {
    "NCCL_IB_EXTENDED_IPV4_GIDS": "1",
    "NCCL_IB_PRESERVE_PCI_DOMAIN": "1",
    "NCCL_IB_ROUTE_DIAGNOSTICS": "1",
    "NCCL_IB_QPS_PER_CONNECTION": "1",
}
ONE_PORT, TWO_PORTS = "=rocep1s0f0:1", "=rocep1s0f0:1,rocep1s0f1:1"
FOUR = "=rocep1s0f0:1,roceP2p1s0f0:1,rocep1s0f1:1,roceP2p1s0f1:1"
APART = {"NCCL_IB_MERGE_NICS": "0", "NCCL_IB_SUBNET_AWARE_ROUTING": "0"}
TABLE = {
    "pair, patched": ("pair", SKIP_TREE, {**FILE, **DIRECT, **APART, "NCCL_IB_HCA": ONE_PORT}),
    "pair, NVIDIA's own": ("pair", None, {**DIRECT, **APART, "NCCL_IB_HCA": ONE_PORT}),
    "pair, two domains": (
        "pair",
        TWO_DOMAINS,
        {
            **FILE,
            **BOTH,
            **APART,
            **DIRECT,
            "NCCL_IB_HCA": "=rocep1s0f0:1,roceP2p1s0f0:1",
            "NCCL_SWITCHLESS_RING_ONLY": "0",
            "NCCL_MIN_NCHANNELS": "8",
            "NCCL_MAX_NCHANNELS": "8",
        },
    ),
    "cycle-4, one domain": (
        "cycle-4",
        SKIP_TREE,
        {**FILE, **MANAGEMENT, **CYCLE, "NCCL_IB_HCA": TWO_PORTS, "NCCL_SKIP_TREE_CONNECT": "1"},
    ),
    "cycle-4, ring only": (
        "cycle-4",
        RING_ONLY,
        {**FILE, **MANAGEMENT, **CYCLE, "NCCL_IB_HCA": TWO_PORTS, "NCCL_SWITCHLESS_RING_ONLY": "1"},
    ),
    "cycle-4, two domains": (
        "cycle-4",
        TWO_DOMAINS,
        {**FILE, **MANAGEMENT, **CYCLE, **BOTH, "NCCL_IB_HCA": FOUR, "NCCL_SWITCHLESS_RING_ONLY": "1"},
    ),
    "cycle-4, NVIDIA's own": (
        "cycle-4",
        None,
        {**MANAGEMENT, **CYCLE, "NCCL_IB_HCA": TWO_PORTS, "NCCL_IB_MERGE_NICS": "1"},
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_the_table_of_the_facts(case: str) -> None:
    layout, library, expected = TABLE[case]
    assert told(layout, "spark1", library) == {**COMMON, **expected}


@pytest.mark.parametrize("layout", CLOSED)
@pytest.mark.parametrize("library", [SKIP_TREE, RING_ONLY, TWO_DOMAINS, None], ids=lambda it: it.id if it else "own")
def test_on_every_closed_layout(layout: str, library: Library | None) -> None:
    """Only planned devices, the same names on all hosts, every variable once and with its reason."""
    made = plan(layout)
    names = set()
    for host, section in made.hosts.items():
        given = environment(made, host, library, PATH)
        assert len({item.name for item in given}) == len(given)
        assert all(item.reason and item.source for item in given)
        names.add(tuple(item.name for item in given))
        devices = next(item.value for item in given if item.name == "NCCL_IB_HCA").removeprefix("=").split(",")
        ours = {f"{link.rdma_device}:1" for link in section.links}
        assert set(devices) <= ours and (set(devices) == ours) == (library is TWO_DOMAINS)
    assert len(names) == 1


REFUSED = {
    "path": (
        plan("path-5"),
        SKIP_TREE,
        "Ring ring is a path-5, and NCCL needs a closed ring: join its ends, or serve over SIRCL.",
    ),
    "degraded": (
        dataclasses.replace(plan("cycle-4"), degraded=Degraded([2], [], [], [], "path-4", [])),
        SKIP_TREE,
        "Ring ring is degraded to a line, and NCCL needs a closed ring: mend it, or serve over SIRCL.",
    ),
    "a library without the patch": (
        plan("cycle-4"),
        PLAIN,
        "Ring ring is a cycle-4, and plain would connect hosts that share no cable: "
        "choose a library with the patch skip-tree, ring-only or two-domains.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_where_it_cannot_run(case: str) -> None:
    made, library, sentence = REFUSED[case]
    assert refusal(made, library) == sentence
    with pytest.raises(ValueError, match=r"^Ring ring is "):
        environment(made, "spark0", library, PATH)


def test_a_triangle_needs_no_patch() -> None:
    assert refusal(plan("cycle-3"), PLAIN) is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("nccl", "sparkring_nccl: nccl is not known: name skip-tree-2.30.7 or glm53-r7-2.30.7, or describe a file"),
        ({"id": "mine"}, "sparkring_nccl.version: Field required"),
        ({**TWO_DOMAINS.model_dump(), "sha256": "abc"}, "sparkring_nccl.sha256: String should match pattern"),
        ({**TWO_DOMAINS.model_dump(), "colour": "red"}, "sparkring_nccl.colour: Extra inputs are not permitted"),
    ],
)
def test_a_wrong_library(given: object, sentence: str) -> None:
    with pytest.raises(LibraryError) as raised:
        find(given)
    assert str(raised.value).startswith(sentence)


EXPLAINED = ("pair", "cycle-4")


def explained(layout: str) -> str:
    return "".join(line + "\n" for line in explain.lines([plan(layout)], SKIP_TREE))


@pytest.mark.parametrize("layout", EXPLAINED)
def test_what_is_explained_is_as_reviewed(layout: str) -> None:
    assert (GOLDEN / f"{layout}.txt").read_text() == explained(layout)


def test_the_known_libraries_are_told_apart() -> None:
    assert len({library.sha256 for library in KNOWN.values()}) == len(KNOWN)


if __name__ == "__main__":
    for name in EXPLAINED:
        (GOLDEN / f"{name}.txt").write_text(explained(name))
