"""What NCCL must be told on each host of a ring, each variable with its reason and where that is known from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.nccl.libraries import Library
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import layouts

REFERENCE = "reference"
"""FujitsuPolycom/sparkring, NCCL notes of 2026-10-07 (facts: transport 6.2, 6.5)."""
MESHED = 3
"""Up to so many hosts a cycle joins every two of them by a cable, and any NCCL connects all that it wants."""


@dataclass(frozen=True)
class Variable:
    """One environment variable, why it is set so, and the source of that."""

    name: str
    value: str
    reason: str
    source: str


def refusal(plan: RingPlan, library: Library | None) -> str | None:
    """Why NCCL cannot run on this ring with a library, None for NVIDIA's own; in one sentence with what would do."""
    shape = layouts.layout(plan.layout)
    if plan.degraded is not None:
        return f"Ring {plan.ring} is degraded to a line, and NCCL needs a closed ring: mend it, or serve over SIRCL."
    if shape is None or shape.kind == "path":
        return f"Ring {plan.ring} is a {plan.layout}, and NCCL needs a closed ring: join its ends, or serve over SIRCL."
    if shape.kind == "cycle" and len(plan.hosts) > MESHED and library is not None and not library.closes_rings:
        return (
            f"Ring {plan.ring} is a {plan.layout}, and {library.id} would connect hosts that share no cable: "
            "choose a library with the patch skip-tree, ring-only or two-domains."
        )
    return None


def environment(plan: RingPlan, host: str, library: Library | None, path: str | None = None) -> list[Variable]:
    """What one host's rank sets, in the order in which it is explained.

    ``library`` None is the NCCL that the engine brings along. ``path`` is where the process sees the library's file.
    """
    if (refused := refusal(plan, library)) is not None:
        raise ValueError(refused)
    section, kind = plan.hosts[host], str(getattr(layouts.layout(plan.layout), "kind", ""))
    made = [Variable(*words, REFERENCE) for words in _everywhere()]
    if library is not None:
        made += [Variable(*words, REFERENCE) for words in _library(library, path or "")]
    made += [Variable(*words) for words in _links(section, kind, library)]
    return made


def _everywhere() -> Iterator[tuple[str, str, str]]:
    yield "NCCL_NET", "IB", "RDMA or nothing: a fall-back to sockets would only look like a slow ring"
    yield "NCCL_IB_DISABLE", "0", "an image may have switched RDMA off"
    yield "NCCL_NET_PLUGIN", "none", "no network plugin of the image takes the place of the one that is set up here"
    yield "NCCL_P2P_LEVEL", "SYS", "one GPU a host: nothing is to be gained from measuring distances inside of it"
    yield "NCCL_CUMEM_ENABLE", "0", "buffers stay in memory that the NIC can register on GB10"
    yield "NCCL_IGNORE_CPU_AFFINITY", "1", "the proxy threads may run on any core"
    yield "NCCL_CROSS_NIC", "1", "a ring enters a host by one port and leaves it by the other"
    yield "NCCL_DEBUG", "WARN", "failures are said in the log"


def _library(library: Library, path: str) -> Iterator[tuple[str, str, str]]:
    yield "VLLM_NCCL_SO_PATH", path, f"vLLM opens {library.id} and not the file that PyTorch brings"
    yield "LD_PRELOAD", path, "PyTorch's own communicators use the same file"


def _links(section: HostPlan, kind: str, library: Library | None) -> Iterator[tuple[str, str, str, str]]:
    patches = set(library.patches) if library is not None else set()
    both = "two-domains" in patches
    ends = {lane.source.rdma_device: lane.source.netdev for lane in section.lanes}
    if kind != layouts.SWITCHED:
        wanted = [link for link in section.links if both or link.function == "primary"]
        ends = {link.rdma_device: link.netdev for link in wanted}
    devices = ",".join(f"{device}:1" for device in ends)
    functions = "both PCIe functions of each cable" if both else "one PCIe function of each cable"
    if kind == layouts.SWITCHED:
        functions = "the devices of this host's lanes"
    yield "NCCL_IB_HCA", f"={devices}", f"exactly these devices: {functions}", "plan"
    direct = kind == "pair"
    netdev = next(iter(ends.values())) if direct else section.management.netdev
    where = "the cable itself" if direct else "the management network, on which all hosts reach each other"
    for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        yield name, f"={netdev}" if name.startswith("NCCL") else netdev, f"set up over {where}", "plan"
    merged = library is None and kind == "cycle"
    why = "NVIDIA's own offers the addresses of merged devices only" if merged else "each device has an own subnet"
    yield "NCCL_IB_MERGE_NICS", "1" if merged else "0", why, REFERENCE
    if kind == "cycle":
        yield (
            "NCCL_IB_SUBNET_AWARE_ROUTING",
            "1",
            "of a neighbour's addresses it takes the one in its subnet",
            REFERENCE,
        )
        prefix = max(link.address.rpartition("/")[2] for link in section.links)
        yield "NCCL_IB_SUBNET_PREFIX_LEN", prefix, "no two cables share a subnet of this length", "plan"
        yield "NCCL_ALGO", "Ring", "trees would join hosts that share no cable", REFERENCE
    else:
        yield "NCCL_IB_SUBNET_AWARE_ROUTING", "0", "every device reaches every other host", REFERENCE
    if kind == "cycle" and "skip-tree" in patches:
        yield "NCCL_SKIP_TREE_CONNECT", "1", "only the ring is connected, not the trees that are not used", REFERENCE
    if both or "ring-only" in patches:
        only = "1" if kind == "cycle" else "0"
        why = "only the ring is connected" if kind == "cycle" else "all hosts reach each other"
        yield "NCCL_SWITCHLESS_RING_ONLY", only, why, REFERENCE
    if both:
        yield "NCCL_IB_EXTENDED_IPV4_GIDS", "1", "a handle has room for the addresses of both functions", REFERENCE
        yield "NCCL_IB_PRESERVE_PCI_DOMAIN", "1", "each channel stays on its PCIe domain", REFERENCE
        yield "NCCL_IB_ROUTE_DIAGNOSTICS", "1", "the log says which device reaches whom", REFERENCE
        yield "NCCL_IB_QPS_PER_CONNECTION", "1", "one queue pair fills a function", REFERENCE
    if kind == "cycle" or both:
        for name in ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"):
            yield name, "4" if kind == "cycle" else "8", "measured: more gain no time and pin more memory", REFERENCE
