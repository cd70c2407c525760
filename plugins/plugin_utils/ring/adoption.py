"""Addresses of an existing ring, kept where they are valid: one subnet for each cable and function."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from ipaddress import IPv4Interface
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import FUNCTIONS, ROLE_BY_PLACE

from . import addressing, layouts
from .bindings import Bindings, BoundHost
from .errors import RingError
from .inventory import Inventory
from .survey import Survey

End = tuple[str, str, str]
"""Host, role and netdev of a cable's end in one function."""


def adopt(inventory: Inventory, bindings: Bindings, surveys: Mapping[str, Any]) -> tuple[Bindings, list[str]]:
    """Bindings with the addresses that the hosts have, and a sentence about each cable.

    A cable whose ends have no address of others' stays the planner's. Raises RingError with all
    that keeps the ring's addresses from being adopted.
    """
    if inventory.shape.kind == layouts.SWITCHED:
        raise RingError(f"Ring {inventory.ring}: a switched ring's addresses stand in the inventory; leave out adopt.")
    seen = {host: Survey.model_validate(survey) for host, survey in surveys.items() if survey}
    chosen: dict[tuple[str, str], str] = {}
    faults, lines = [], []
    for cable, function in itertools.product(inventory.shape.cables, FUNCTIONS):
        ends = [_end(inventory, bindings, position, port, function) for position, port in (cable.first, cable.second)]
        held = [_addresses(seen.get(host), netdev) for host, _role, netdev in ends]
        if not any(held):
            continue
        fault = _fault(cable.index, ends, held)
        if fault:
            faults.append(fault)
            continue
        for (host, role, _netdev), texts in zip(ends, held, strict=True):
            chosen[host, role] = texts[0]
        lines.append(f"Cable {cable.index} ({function}) keeps {held[0][0]} ↔ {held[1][0]}.")
    if faults:
        raise RingError(f"Ring {inventory.ring}: its addresses cannot be adopted: {'; '.join(faults)}.")
    made = bindings.model_copy(
        update={"hosts": {name: _with(name, host, chosen) for name, host in bindings.hosts.items()}}
    )
    addressing.of(inventory, inventory.shape, made)
    return made, lines or [f"Ring {inventory.ring} has no addresses to adopt: plan gives them."]


def without(bindings: Bindings) -> Bindings:
    """Bindings without adopted addresses."""
    return bindings.model_copy(update={"hosts": {name: _with(name, host, {}) for name, host in bindings.hosts.items()}})


def _with(name: str, host: BoundHost, chosen: Mapping[tuple[str, str], str]) -> BoundHost:
    endpoints = {
        role: endpoint.model_copy(update={"address": chosen.get((name, role))})
        for role, endpoint in host.endpoints.items()
    }
    return host.model_copy(update={"endpoints": endpoints})


def _end(inventory: Inventory, bindings: Bindings, position: int, port: int, function: str) -> End:
    host, role = inventory.hosts[position].name, ROLE_BY_PLACE[port, function].name
    return host, role, bindings.hosts[host].endpoints[role].netdev


def _addresses(survey: Survey | None, netdev: str) -> list[str]:
    """IPv4 addresses of a port; none where a profile of ours sets them."""
    if survey is None:
        return []
    for profile in survey.networkmanager.profiles:
        if profile.active_on == netdev and profile.name.startswith(marks.PROFILE_PREFIX):
            return []
    return next((link.addresses for link in survey.links if link.netdev == netdev), [])


def _fault(cable: int, ends: list[End], held: list[list[str]]) -> str:
    where = [f"{netdev} of {host}" for host, _role, netdev in ends]
    for place, texts in zip(where, held, strict=True):
        if not texts:
            return f"{place}, an end of cable {cable}, has no address and the other end has; give it one in that subnet"
        if len(texts) > 1:
            return f"{place} has {len(texts)} IPv4 addresses ({', '.join(texts)}); leave one"
    first, second = (IPv4Interface(texts[0]) for texts in held)
    return addressing.pair_fault(where[0], first, where[1], second, cable)
