"""What the operator writes: one ring, its layout and its hosts in cable order."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import ROLE_BY_NAME

from . import layouts
from .errors import RingError

FABRIC_NETDEV = re.compile(r"enP?\d*p\d+s\d+f[01]np[01]")
"""DGX OS names of ConnectX functions (facts: fabric 1)."""
RING_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
WIDEST = 16
SOURCE_PORT_LAYOUT = "cycle-4"
"""The one layout that the transports with the older source-port rule know (facts: fabric 0)."""
VARIABLES = (
    "ansible_host",
    "ansible_port",
    "sparkring_layout",
    "sparkring_supernet",
    "sparkring_allow_research",
    "sparkring_source_port_rule",
    "sparkring_management_interface",
    "sparkring_endpoints",
)
"""Inventory variables that are read here."""


class Strict(BaseModel):
    """A document's part: no unknown field, no change afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class InventoryHost(Strict):
    """One host. ``address`` and ``port`` are how Ansible reaches it."""

    name: str
    address: str
    port: int = 22
    management_interface: str | None = None
    endpoints: dict[str, str] = Field(default={}, description="Switched rings only: role to address/prefix")


class Inventory(Strict):
    """One ring as the inventory describes it, hosts in cable order, position 0 first."""

    schema_name: Literal["sparkring.inventory/1"] = Field(default="sparkring.inventory/1", alias="schema")
    ring: str
    layout: str
    supernet: str | None = None
    allow_research: bool = False
    source_port_rule: bool = Field(default=False, description="cycle-4 only: tag packets by UDP source port too")
    hosts: list[InventoryHost]

    @property
    def shape(self) -> layouts.Layout:
        """The layout by its name; raises RingError where there is none of that name."""
        shape = layouts.layout(self.layout)
        if shape is None:
            raise RingError(f"Ring {self.ring}: layout {self.layout} is unknown; use {layouts.KNOWN}.")
        return shape

    @property
    def network(self) -> IPv4Network:
        """The supernet, given or by default."""
        return IPv4Network(self.supernet) if self.supernet else layouts.default_supernet(self.shape)


def read(ring: str, variables: Mapping[str, Any], hosts: Sequence[tuple[str, Mapping[str, Any]]]) -> Inventory:
    """The checked inventory of one ring from its variables and those of its hosts, in cable order."""
    if "sparkring_layout" not in variables:
        raise RingError(
            f"Ring {ring}: sparkring_layout is not set; set it to {layouts.KNOWN} in the group's variables."
        )
    try:
        inventory = Inventory(
            ring=ring,
            layout=variables["sparkring_layout"],
            supernet=variables.get("sparkring_supernet"),
            allow_research=variables.get("sparkring_allow_research", False),
            source_port_rule=variables.get("sparkring_source_port_rule", False),
            hosts=[
                InventoryHost(
                    name=name,
                    address=values.get("ansible_host", name),
                    port=values.get("ansible_port", 22),
                    management_interface=values.get("sparkring_management_interface"),
                    endpoints=values.get("sparkring_endpoints", {}),
                )
                for name, values in hosts
            ],
        )
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise RingError(
            f"Ring {ring}: {field} is wrong ({first['msg'].lower()}); correct it in the inventory."
        ) from None
    check(inventory)
    return inventory


def check(inventory: Inventory) -> None:
    """Refuse what cannot be planned whatever the hardware."""
    ring, shape = inventory.ring, inventory.shape
    if not RING_NAME.fullmatch(ring):
        raise RingError(
            f"Ring {ring}: the name must be 1 to 32 lower-case letters, digits and underscores, a letter first; "
            "rename the group."
        )
    _check_hosts(inventory, shape)
    if inventory.source_port_rule and shape.name != SOURCE_PORT_LAYOUT:
        raise RingError(
            f"Ring {ring}: sparkring_source_port_rule is for {SOURCE_PORT_LAYOUT} alone, and the layout is "
            f"{shape.name}; unset it."
        )
    if shape.kind == layouts.SWITCHED:
        _check_endpoints(inventory)
    else:
        _check_supernet(inventory, shape)
    for host in inventory.hosts:
        if host.management_interface and FABRIC_NETDEV.fullmatch(host.management_interface):
            raise RingError(management_is_fabric(host.name, host.management_interface))
        if shape.cables and (address := _ipv4(host.address)) and address in inventory.network:
            raise RingError(
                f"Ring {ring}: {host.name} is reached at {address}, inside the supernet {inventory.network}; "
                "choose another sparkring_supernet."
            )


def management_is_fabric(host: str, netdev: str) -> str:
    """The sentence for a host that would be administered over a port to be changed."""
    return (
        f"{host}: management interface {netdev} is a fabric port; "
        "set sparkring_management_interface to the interface that leads to the control node."
    )


def check_rings(rings: Sequence[Inventory]) -> None:
    """Refuse rings of one run that share a host or a subnet."""
    owner: dict[str, str] = {}
    for inventory in rings:
        for host in inventory.hosts:
            if host.name in owner:
                raise RingError(
                    f"Host {host.name} is in rings {owner[host.name]} and {inventory.ring}; keep it in one of them."
                )
            owner[host.name] = inventory.ring
    networks = sorted((inventory.network, inventory.ring) for inventory in rings if inventory.shape.cables)
    for (network, ring), (other, other_ring) in itertools.pairwise(networks):
        if network.overlaps(other):
            first, second = sorted((ring, other_ring))
            raise RingError(
                f"Rings {first} and {second} share subnet {max(network, other, key=lambda item: item.prefixlen)}; "
                "give one of them another sparkring_supernet."
            )


def check_subnets(rings: Mapping[str, Sequence[str]]) -> None:
    """Refuse planned rings of one run whose cables, adopted ones too, share a subnet."""
    networks = sorted((IPv4Network(subnet), ring) for ring, subnets in rings.items() for subnet in subnets)
    for (network, ring), (other, other_ring) in itertools.pairwise(networks):
        if ring != other_ring and network.overlaps(other):
            first, second = sorted((ring, other_ring))
            raise RingError(
                f"Rings {first} and {second} share subnet {max(network, other, key=lambda item: item.prefixlen)}; "
                "give one of them another sparkring_supernet."
            )


def _check_hosts(inventory: Inventory, shape: layouts.Layout) -> None:
    ring, count = inventory.ring, len(inventory.hosts)
    names: set[str] = set()
    addresses: dict[tuple[str, int], str] = {}
    for host in inventory.hosts:
        if host.name in names:
            raise RingError(f"Ring {ring}: host {host.name} is listed twice; list each host once, in cable order.")
        names.add(host.name)
        other = addresses.setdefault((host.address, host.port), host.name)
        if other != host.name:
            raise RingError(
                f"Ring {ring}: hosts {other} and {host.name} have the same address {host.address}; "
                "give each its own ansible_host."
            )
    if shape.size is not None and count != shape.size:
        raise RingError(
            f"Ring {ring}: layout {shape.name} needs {shape.size} hosts, but the group has {count}; "
            "correct its hosts or sparkring_layout."
        )
    if count < 2:
        raise RingError(f"Ring {ring}: a ring needs at least 2 hosts, but the group has {count}; add hosts.")


def _check_supernet(inventory: Inventory, shape: layouts.Layout) -> None:
    ring = inventory.ring
    if inventory.supernet is None:
        return
    try:
        network = IPv4Network(inventory.supernet)
    except ValueError:
        raise RingError(
            f"Ring {ring}: supernet {inventory.supernet} is not an IPv4 network; write it like 198.18.0.0/21."
        ) from None
    needed = layouts.largest_prefix(shape)
    if network.prefixlen > needed:
        raise RingError(
            f"Ring {ring}: supernet {network} is too small for {shape.name}; use a /{needed} or wider, up to /{WIDEST}."
        )
    if network.prefixlen < WIDEST:
        raise RingError(
            f"Ring {ring}: supernet {network} is wider than /{WIDEST}; use one from /{WIDEST} to /{needed}."
        )


def _check_endpoints(inventory: Inventory) -> None:
    ring = inventory.ring
    owner: dict[str, str] = {}
    roles = [set(host.endpoints) for host in inventory.hosts]
    for host in inventory.hosts:
        if not host.endpoints:
            raise RingError(f"Ring {ring}: {host.name} has no sparkring_endpoints; give role: address/prefix for each.")
        for role, text in host.endpoints.items():
            if role not in ROLE_BY_NAME:
                raise RingError(
                    f"Ring {ring}: {host.name} has endpoint {role}; the roles are {', '.join(ROLE_BY_NAME)}."
                )
            try:
                address = str(IPv4Interface(text).ip)
            except ValueError:
                raise RingError(
                    f"Ring {ring}: address {text} of {host.name} {role} is wrong; write it like 192.0.2.1/24."
                ) from None
            if address in owner:
                raise RingError(
                    f"Ring {ring}: {owner[address]} and {host.name} {role} have the same address {address}; "
                    "give each endpoint its own."
                )
            owner[address] = f"{host.name} {role}"
    if any(item != roles[0] for item in roles):
        raise RingError(f"Ring {ring}: the hosts' sparkring_endpoints have different roles; give all hosts the same.")


def _ipv4(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text)
    except ValueError:
        return None
