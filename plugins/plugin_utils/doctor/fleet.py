"""Checks that compare hosts with each other, and of a host's memory, disk and health."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from .addresses import listed
from .registry import Found, check
from .ring import Node, Ring

GIB = 1 << 20
"""KiB in a GiB."""
SKEW_SECONDS = 5.0
SKEW_GIB = 1.0
SHARED_GIB = 8.0
"""Shared memory that nothing should hold while nothing uses RDMA."""
CACHE_SHARE, FREE_SHARE = 0.5, 0.1
"""Parts of the memory: so much page cache and so little free means that a GPU sees too little."""
DISK_KIB = 256 * 1024


def _groups(ring: Ring, value: Callable[[Node], str | None]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in ring.nodes.values():
        if (text := value(node)) is not None:
            found.setdefault(text, []).append(node.name)
    return found


def _skew(ring: Ring, what: str, value: Callable[[Node], str | None], fix: str) -> Iterator[Found]:
    groups = _groups(ring, value)
    if len(groups) > 1:
        words = "; ".join(f"{text} on {listed(hosts)}" for text, hosts in groups.items())
        yield Found(ring.name, f"{what} differ: {words}.", fix)


@check("fleet.kernel_skew", "fail", "kernel", "Hosts of one ring run different kernels.")
def kernel_skew(ring: Ring) -> Iterator[Found]:
    """Kernel releases."""
    fix = "bring all hosts to one kernel, and hold it (apt-mark hold) against unattended updates."
    yield from _skew(ring, "Kernels", lambda node: node.survey.kernel.release, fix)


@check("fleet.gpu_driver_skew", "warn", "kernel", "Hosts of one ring have different GPU drivers.")
def gpu_driver_skew(ring: Ring) -> Iterator[Found]:
    """GPU driver versions."""
    fix = "bring all hosts to one driver from the vendor's packages."
    yield from _skew(ring, "GPU drivers", lambda node: node.survey.kernel.gpu_driver, fix)


@check("fleet.firmware_skew", "warn", "rdma", "Hosts of one ring have different NIC firmware.")
def firmware_skew(ring: Ring) -> Iterator[Found]:
    """Firmware of the ring's cards."""

    def firmware(node: Node) -> str | None:
        versions = {port.device.firmware for port in node.ports.values() if port.device.firmware}
        return "/".join(sorted(versions)) or None

    yield from _skew(ring, "NIC firmware versions", firmware, "update the older cards (fwupdmgr), one host at a time.")


@check("fleet.docker_skew", "info", "docker", "Hosts of one ring have different Docker versions.")
def docker_skew(ring: Ring) -> Iterator[Found]:
    """Docker versions."""
    fix = "update the older ones; Docker's own firewall rules change with its version."
    yield from _skew(ring, "Docker versions", lambda node: node.survey.docker.version, fix)


@check("fleet.memory_skew", "warn", "memory", "Hosts have different memory, or keep some back (hugepages, CMA).")
def memory_skew(ring: Ring) -> Iterator[Found]:
    """Memory in total, and what is kept from it."""
    fields = (
        ("memory in total", "total_kib"),
        ("memory as hugepages", "hugepage_kib"),
        ("memory for CMA", "cma_total_kib"),
    )
    for words, name in fields:
        sizes = {node.name: getattr(node.survey.memory, name) for node in ring.nodes.values()}
        known = {host: size / GIB for host, size in sizes.items() if size is not None}
        if len(known) > 1 and max(known.values()) - min(known.values()) > SKEW_GIB:
            least, most = (pick(known, key=lambda host: known[host]) for pick in (min, max))
            yield Found(
                f"{ring.name} {name.removesuffix('_kib')}",
                f"{least} has {known[least]:.1f} GiB of {words}, {most} {known[most]:.1f} GiB.",
                "compare /proc/cmdline and vm.nr_hugepages of the two; one recipe has to fit every host.",
            )


@check("fleet.identity", "fail", "rdma", "Two hosts of the inventory are one machine.")
def identity(ring: Ring) -> Iterator[Found]:
    """Identity by RDMA node GUIDs."""
    for hosts in _groups(ring, lambda node: node.survey.identity or None).values():
        if len(hosts) > 1:
            yield Found(hosts[1], f"{hosts[0]} and {hosts[1]} are one machine.", f"correct ansible_host of {hosts[1]}.")


@check("fleet.machine_id", "warn", "machine_id", "Hosts share one /etc/machine-id, as units of one factory image do.")
def machine_id(ring: Ring) -> Iterator[Found]:
    """Machine ids of different machines."""
    for hosts in _groups(ring, lambda node: node.survey.machine_id).values():
        if len(hosts) > 1 and len({ring.nodes[host].survey.identity for host in hosts}) > 1:
            yield Found(
                hosts[1],
                f"{listed(hosts)} share one machine-id, so DHCP and logs take one for the other.",
                f"on all but one: rm /etc/machine-id; systemd-machine-id-setup; reboot ({listed(hosts[1:])}).",
            )


@check("fleet.clock", "warn", "clock", "A host's clock differs from the controller's.")
def clock(ring: Ring) -> Iterator[Found]:
    """Clocks, as far as the time that the survey took allows to tell."""
    for node in ring.nodes.values():
        if node.skew is not None and abs(node.skew) > SKEW_SECONDS:
            word = "ahead of" if node.skew > 0 else "behind"
            yield Found(
                node.name,
                f"{node.name}: its clock is {abs(node.skew):.0f} s {word} the controller's.",
                f"timedatectl set-ntp true on {node.name}, and see that it reaches a time server.",
            )


@check(
    "host.nic_aer_fatal",
    "warn",
    "previous_boot",
    "The kernel logged a fatal PCIe error of the card in the boot before.",
)
def nic_aer_fatal(ring: Ring) -> Iterator[Found]:
    """AER lines that name a function of the card; its messages about power budgets are normal."""
    for node in ring.nodes.values():
        for port in node.ports.values():
            bdf = port.link.bdf
            fatal = [line for line in node.survey.previous_boot if bdf and bdf in line and _is_fatal(line)]
            if fatal:
                yield Found(
                    f"{node.name} {bdf}",
                    f"{node.name}: the previous boot logged a fatal PCIe error at {bdf} ({port.netdev}).",
                    "do not start models on it unattended; update its firmware, and ask the vendor if it returns.",
                )


def _is_fatal(line: str) -> bool:
    text = re.sub(r"non[- ]?fatal", "", line, flags=re.IGNORECASE)
    return ("AER" in line or "PCIe Bus Error" in line) and re.search(r"\bfatal\b", text, re.IGNORECASE) is not None


@check(
    "mem.cache_pressure",
    "warn",
    "memory gpu",
    "Page cache fills the memory that a GPU with shared memory sees as used.",
)
def cache_pressure(ring: Ring) -> Iterator[Found]:
    """Free memory on hosts whose GPU shares it."""
    for node in ring.nodes.values():
        memory = node.survey.memory
        if not (
            any("GB10" in name for name in node.survey.gpu)
            and memory.total_kib
            and memory.cached_kib
            and memory.free_kib
        ):
            continue
        cache = memory.cached_kib - (memory.shmem_kib or 0)
        if cache > CACHE_SHARE * memory.total_kib and memory.free_kib < FREE_SHARE * memory.total_kib:
            yield Found(
                node.name,
                f"{node.name}: {memory.free_kib / GIB:.0f} GiB are free and {cache / GIB:.0f} GiB page cache, which "
                "the GPU counts as used.",
                f"before a model starts: sync; sysctl vm.drop_caches=1 on {node.name}.",
            )


@check("mem.not_released", "warn", "memory users", "Much shared memory is held though nothing uses RDMA.")
def not_released(ring: Ring) -> Iterator[Found]:
    """Shared memory that a killed model left."""
    for node in ring.nodes.values():
        shared = (node.survey.memory.shmem_kib or 0) / GIB
        if shared >= SHARED_GIB and not node.survey.users:
            yield Found(
                node.name,
                f"{node.name}: {shared:.0f} GiB of shared memory are held though nothing uses RDMA.",
                "wait until it is released, or end what a killed model left (ls -l /dev/shm; nvidia-smi).",
            )


@check("disk.low", "warn", "disk", "A file system of the host is as good as full.")
def disk_low(ring: Ring) -> Iterator[Found]:
    """File systems on which the host itself lives."""
    for node in ring.nodes.values():
        for disk in node.survey.disk:
            if disk.mount in ("/", "/var", "/run", "/etc") and disk.free_kib < DISK_KIB:
                yield Found(
                    f"{node.name} {disk.mount}",
                    f"{node.name}: {disk.free_kib // 1024} MiB are left on {disk.mount}.",
                    "make room before mesh-setup, which has to write a plan and units.",
                )
