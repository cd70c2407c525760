"""Subnets and addresses of a ring's cables: by the rule of the layout, or adopted from what the hosts have."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Interface, IPv4Network

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import FUNCTIONS, ROLE_BY_PLACE

from . import layouts
from .bindings import Bindings, BoundEndpoint
from .errors import RingError
from .inventory import Inventory

ADOPTED_PREFIXES = range(24, 31)


@dataclass(frozen=True)
class Addressing:
    """Subnets by cable and function, addresses by position, port and function; ``adopted`` has keys of subnets."""

    subnets: Mapping[tuple[int, str], IPv4Network]
    addresses: Mapping[tuple[int, int, str], str]
    adopted: frozenset[tuple[int, str]]

    @property
    def by_rule(self) -> bool:
        """Whether any subnet is one of the supernet's."""
        return len(self.adopted) < len(self.subnets)


def of(inventory: Inventory, shape: layouts.Layout, bindings: Bindings | None) -> Addressing:
    """The addressing of the cables of ``shape``; raises RingError where adopted addresses do not hold."""
    subnets: dict[tuple[int, str], IPv4Network] = {}
    addresses: dict[tuple[int, int, str], str] = {}
    adopted = set()
    for cable, function in itertools.product(shape.cables, FUNCTIONS):
        key = (cable.index, function)
        given = _adopted(inventory, bindings, cable, function) if bindings else None
        if given is None:
            subnets[key] = layouts.subnet(inventory.network, cable.index, function)
            texts = [str(subnets[key].network_address + place) for place in (1, 2)]
        else:
            subnets[key] = given[0].network
            texts = [str(interface.ip) for interface in given]
            adopted.add(key)
        for (position, port), text in zip((cable.first, cable.second), texts, strict=True):
            addresses[position, port, function] = text
    if adopted and bindings:
        _check_apart(inventory, bindings, subnets)
    return Addressing(subnets, addresses, frozenset(adopted))


def _adopted(
    inventory: Inventory, bindings: Bindings, cable: layouts.Cable, function: str
) -> tuple[IPv4Interface, IPv4Interface] | None:
    """Adopted addresses of a cable's two ends in one function; None where neither end has one."""
    names = [inventory.hosts[position].name for position, _port in (cable.first, cable.second)]
    ends: list[BoundEndpoint] = [
        bindings.hosts[inventory.hosts[position].name].endpoints[ROLE_BY_PLACE[port, function].name]
        for position, port in (cable.first, cable.second)
    ]
    texts = [end.address for end in ends if end.address]
    if not texts:
        return None
    again = "run rebind with sparkring_adopt"
    if len(texts) == 1:
        raise RingError(
            f"Ring {inventory.ring}: only one end of cable {cable.index} ({function}) has an adopted address, "
            f"{texts[0]}; {again}."
        )
    try:
        first, second = (IPv4Interface(text) for text in texts)
    except ValueError:
        raise RingError(
            f"Ring {inventory.ring}: the adopted addresses {texts[0]} and {texts[1]} are no addresses; {again}."
        ) from None
    fault = pair_fault(f"{ends[0].netdev} of {names[0]}", first, f"{ends[1].netdev} of {names[1]}", second, cable.index)
    if fault:
        raise RingError(f"Ring {inventory.ring}: {fault}.")
    return first, second


def pair_fault(one: str, first: IPv4Interface, other: str, second: IPv4Interface, cable: int) -> str:
    """Why the two addresses of a cable's ends cannot be kept; empty where they can."""
    if first.network != second.network:
        return (
            f"{one} ({first}) and {other} ({second}) are the ends of cable {cable} but not in one subnet; "
            "give both ends addresses of one subnet"
        )
    if first.network.prefixlen not in ADOPTED_PREFIXES:
        return f"{one} has {first}, whose prefix is not from /24 to /30; change the prefix at both ends"
    if first.ip == second.ip:
        return f"{one} and {other} have the same address {first.ip}; change one of them"
    for where, interface in ((one, first), (other, second)):
        if interface.ip in (interface.network.network_address, interface.network.broadcast_address):
            return f"{where} has {interface}, which is no host's address in its subnet; change it"
    return ""


def _check_apart(inventory: Inventory, bindings: Bindings, subnets: Mapping[tuple[int, str], IPv4Network]) -> None:
    for (one, network), (other, second) in itertools.combinations(subnets.items(), 2):
        if network.overlaps(second):
            where = [f"cable {cable} ({function})" for cable, function in (one, other)]
            what = f"are both in {network}" if network == second else f"have overlapping subnets {network} and {second}"
            raise RingError(
                f"Ring {inventory.ring}: {where[0]} and {where[1]} {what}; every cable needs one subnet for each "
                "function, so correct these addresses or run rebind with -e sparkring_adopt=false to let plan give "
                "them."
            )
    for host in inventory.hosts:
        management = bindings.hosts[host.name].management
        around = IPv4Network((management.address, management.prefix), strict=False)
        for (cable, function), network in subnets.items():
            if network.overlaps(around):
                raise RingError(
                    f"Ring {inventory.ring}: the management network {around} of {host.name} overlaps {network} of "
                    f"cable {cable} ({function}); give the cable other addresses."
                )
