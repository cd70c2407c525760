"""The path by which this host is administered: no plan may cut it, and no change may lose it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from ..contract import host_plan
from . import survey
from .change import Pending, default_routes
from .host import Host
from .observe import State, ipv4_addresses

LAID_ON = ("links", "routes", "mesh_routes", "neighbours", "qdiscs", "filters", "marker_rules")
"""Fields of a plan whose objects name the netdev on which they lie."""


def refusals(host: Host, state: State, plan: host_plan.HostPlan) -> list[str]:
    """Sentences about parts of the plan that would cut this session or the default route; empty is good."""
    session = survey.ssh_connection(host)
    found = []
    netdev = _holder(state, session[2]) if session else None
    if session is not None and netdev is not None and netdev != plan.management.netdev:
        field = _naming(plan, netdev)
        if field:
            found.append(
                f"{field} of the plan lies on {netdev}, through which this ssh session comes from {session[0]}:"
                " reach the host by an address outside the fabric"
            )
    reached = {session[0]: "from which this ssh session comes"} if session else {}
    reached.update({gateway: f"the next hop of the default route ({dev})" for gateway, dev in _gateways(state)})
    for address, what in sorted(reached.items()):
        for field, subnet in _subnets(plan):
            if _holds(subnet, address):
                found.append(f"{field} of the plan holds {address}, {what}: give the ring other subnets")
                break
    return found


def lost(host: Host, pending: Pending) -> list[str]:
    """What the management path had before the change and has no more."""
    netdev = pending.host_plan().management.netdev
    links = {entry["ifname"]: entry for entry in host.runner.json(["ip", "-j", "-d", "addr", "show"])}
    routes = host.runner.json(["ip", "-j", "-4", "route", "show", "table", "all"])
    held = ipv4_addresses(links.get(netdev, {}))
    found = [
        f"the management interface {netdev} has lost its address {address}"
        for address in pending.management
        if address not in held
    ]
    there = default_routes(routes)
    return found + [
        f"the default route via {gateway or 'no gateway'} dev {dev} is gone"
        for gateway, dev in pending.defaults
        if [gateway, dev] not in there
    ]


def _holder(state: State, address: str) -> str | None:
    for netdev, link in state.links.items():
        if any(entry.get("local") == address for entry in link.get("addr_info", [])):
            return netdev
    return None


def _gateways(state: State) -> list[list[str]]:
    return [pair for pair in default_routes(state.routes) if pair[0]]


def _naming(plan: host_plan.HostPlan, netdev: str) -> str | None:
    for name in LAID_ON:
        for item in getattr(plan, name):
            if item.netdev == netdev:
                return f"{item.id} ({name}.netdev)"
    return None


def _subnets(plan: host_plan.HostPlan) -> Iterator[tuple[str, str]]:
    for name, attribute in (("links", "address"), ("routes", "destination"), ("mesh_routes", "destination")):
        items: list[Any] = getattr(plan, name)
        for item in items:
            yield f"{item.id} ({name}.{attribute} {getattr(item, attribute)})", getattr(item, attribute)


def _holds(subnet: str, address: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_interface(subnet).network
    except ValueError:
        return False
