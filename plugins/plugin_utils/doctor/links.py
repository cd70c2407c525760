"""Checks of cards, cables and links."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import FUNCTIONS

from .known import CABLES
from .registry import Found, check
from .ring import KNOWN_DRIVERS, Port, Ring

MTU = 9000
FUNCTION_GBPS = 109
"""What one function carries in one direction, since it sits on a PCIe link of its own (facts: fabric 1)."""
PCIE = (32.0, 4)
"""GT/s and lanes of the PCIe link of each function of a GB10 (facts: fabric 1)."""


def cages(ring: Ring) -> Iterator[list[Port]]:
    """The functions of each physical port that a cable of the ring is in; of all where no cable is known."""
    for node in ring.nodes.values():
        for number in (0, 1):
            if (node.name, number) in ring.far_end or not ring.cables:
                functions = [node.ports[number, name] for name in FUNCTIONS if (number, name) in node.ports]
                if functions:
                    yield functions


def other_end(ring: Ring, port: Port) -> str:
    """The far end of a port's cable in words."""
    host, number = ring.far_end.get((port.host, port.number), ("", 0))
    return f"{host} p{number}" if host else "a far end not seen"


@check("rdma.missing", "fail", "rdma", "A host shows no RDMA device of a kind that a ring is made of.")
def rdma_missing(ring: Ring) -> Iterator[Found]:
    """A host without any."""
    for node in ring.nodes.values():
        if not node.ports:
            yield Found(
                node.name,
                f"{node.name} has no RDMA device with a network interface.",
                "see that the card's driver is loaded (lsmod | grep mlx5_ib) and `rdma link show` lists it.",
            )


@check("rdma.inactive", "fail", "rdma", "An RDMA device is not active though its network interface has a carrier.")
def rdma_inactive(ring: Ring) -> Iterator[Found]:
    """A device that does not follow its netdev."""
    for port in ring.ports:
        if port.link.carrier and port.device.state not in ("ACTIVE", None):
            yield Found(
                port.place,
                f"{port.host} {port.device.device} is {port.device.state} though {port.netdev} has a carrier.",
                f"ip link set {port.netdev} up on {port.host}; if it stays so, reboot {port.host}.",
            )


@check("link.down", "fail", "links plan", "A port that the plan cables has no carrier.")
def link_down(ring: Ring) -> Iterator[Found]:
    """Planned cables without carrier, one finding for each end."""
    if ring.plan is None:
        return
    numbers = {(end.host, end.port): cable.index for cable in ring.plan.cables for end in (cable.a, cable.b)}
    for functions in cages(ring):
        port = functions[0]
        planned = (port.host, port.number) in numbers
        if planned and not any(function.link.carrier for function in functions):
            host = ring.far_end[port.host, port.number][0]
            yield Found(
                port.cage,
                f"{port.cage} has no carrier on cable {numbers[port.host, port.number]} to {other_end(ring, port)}.",
                f"check the cable and that {host} is on.",
            )


@check("cabling.twin_down", "warn", "links", "One function of a cabled port is down while its twin is up.")
def twin_down(ring: Ring) -> Iterator[Found]:
    """Half a cable."""
    for node in ring.nodes.values():
        for number in (0, 1):
            twins = [node.ports[number, name] for name in FUNCTIONS if (number, name) in node.ports]
            up = [port for port in twins if port.link.carrier]
            if len(twins) == len(FUNCTIONS) and len(up) == 1:
                down = next(port for port in twins if port is not up[0])
                ceiling = min(FUNCTION_GBPS, (up[0].link.speed_mbps or 1000 * FUNCTION_GBPS) // 1000)
                yield Found(
                    down.cage,
                    f"{down.cage}: {down.device.device} is down while its twin {up[0].device.device} is up, so the "
                    f"cable carries {ceiling} Gb/s at most.",
                    "reseat the cable at both ends; if it stays so, try another cable.",
                )


@check("cabling.unlisted_part", "warn", "modules", "A cable's part number is on no list of cables seen to work.")
def unlisted_part(ring: Ring) -> Iterator[Found]:
    """Cables by what their EEPROM says."""
    for node in ring.nodes.values():
        for number in (0, 1):
            read = [
                node.survey.modules[port.netdev]
                for name in FUNCTIONS
                if (port := node.ports.get((number, name))) and port.netdev in node.survey.modules
            ]
            part = next((module["part"] for module in read if "part" in module), None)
            if part is not None and part not in CABLES:
                yield Found(
                    f"{node.name} p{number}",
                    f"{node.name} p{number}: cable {part} is on no list of cables seen at 200 Gb/s.",
                    f"measure it with verify; seen to work: {', '.join(CABLES)}.",
                )


@check("link.speed", "fail", "links", "A cabled port runs below the speed of its card.")
def speed(ring: Ring) -> Iterator[Found]:
    """Ports with a carrier at another speed than their card's."""
    for functions in cages(ring):
        for port in functions[:1] if len({item.link.speed_mbps for item in functions}) == 1 else functions:
            wanted = KNOWN_DRIVERS[port.device.driver or ""].speed_mbps
            if port.link.carrier and wanted is not None and port.link.speed_mbps not in (wanted, None):
                yield Found(
                    port.place,
                    f"{port.place} (cable to {other_end(ring, port)}) runs at {port.link.speed_mbps} Mb/s, "
                    f"not {wanted}.",
                    "reseat or replace the cable, then run doctor again.",
                )


@check("link.pcie", "warn", "links", "A function's PCIe link is slower or narrower than Gen5 x4.")
def pcie(ring: Ring) -> Iterator[Found]:
    """PCIe links of cards that are in hardware."""
    for port in ring.cabled:
        link = port.link.pcie
        rate = re.match(r"[\d.]+", (link.speed or "") if link else "")
        if not KNOWN_DRIVERS[port.device.driver or ""].needs_hairpin or link is None or rate is None:
            continue
        if float(rate[0]) < PCIE[0] or (link.width or PCIE[1]) < PCIE[1]:
            yield Found(
                port.place,
                f"{port.place}: its PCIe link runs at {rate[0]} GT/s x{link.width}, not {PCIE[0]} GT/s x{PCIE[1]}.",
                f"power {port.host} off, take its power away for a minute, start it; if it stays so, ask the vendor.",
            )


@check("link.enslaved", "fail", "links", "A fabric port is a member of a bond or a bridge.")
def enslaved(ring: Ring) -> Iterator[Found]:
    """Ports that something else owns."""
    for port in ring.ports:
        if port.link.master:
            yield Found(
                port.place,
                f"{port.place} is a member of {port.link.master}.",
                f"take it out of {port.link.master}: each function of a fabric port has an address of its own.",
            )


def _mtu(port: Port) -> str:
    return f"{port.place} has MTU {port.link.mtu}" + (
        f" (RoCE {port.device.active_mtu})" if port.device.active_mtu else ""
    )


@check("link.mtu_mismatch", "fail", "links rdma", "The two ends of one rail have different MTUs, Ethernet or RoCE.")
def mtu_mismatch(ring: Ring) -> Iterator[Found]:
    """Both ends of every rail compared."""
    for port, peer in ring.rails:
        roce = {item.device.active_mtu for item in (port, peer)} - {None}
        lit = port.link.carrier and peer.link.carrier
        if lit and (port.link.mtu != peer.link.mtu or len(roce) > 1):
            low = min((port, peer), key=lambda item: (item.link.mtu or 0, item.device.active_mtu or 0))
            yield Found(
                f"{port.place} - {peer.place}",
                f"{_mtu(port)}, its other end {_mtu(peer)}.",
                f"set MTU {MTU} in the profile of {low.place}, or run mesh-setup.",
            )


@check("link.mtu_small", "warn", "links", "A rail with addresses has an MTU below 9000 at both ends.")
def mtu_small(ring: Ring) -> Iterator[Found]:
    """Rails in use that carry small packets only."""
    for port, peer in ring.rails:
        if port.static and peer.static and port.link.mtu == peer.link.mtu and (port.link.mtu or MTU) < MTU:
            yield Found(
                f"{port.place} - {peer.place}",
                f"{port.place} and {peer.place} have MTU {port.link.mtu}; RoCE's MTU of 4096 needs {MTU}.",
                f"set MTU {MTU} in both profiles, or run mesh-setup.",
            )
