"""Which hardware is which role: the document, and how a survey becomes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.drivers import DRIVERS
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import (
    PRIMARY,
    ROLE_BY_NAME,
    ROLE_BY_PLACE,
    ROLES,
    SECONDARY,
)

from . import layouts
from .errors import RingError
from .inventory import FABRIC_NETDEV, Inventory, Strict, management_is_fabric
from .survey import Survey, SurveyDevice

ROLE_BY_DEVICE = {role.rdma_device: role for role in ROLES}
_PLACE = re.compile(r"en(P?)\d*p\d+s\d+f([01])np[01]")
ACCEPT = "run rebind to accept the new hardware"


class BoundManagement(Strict):
    """Interface and address by which the host is administered."""

    netdev: str
    address: str
    prefix: int


class BoundEndpoint(Strict):
    """The hardware of one role. ``address`` is an adopted one; null lets the planner give it."""

    netdev: str
    rdma_device: str
    mac: str
    bdf: str | None
    address: str | None = None


class BoundHost(Strict):
    """One host's hardware. ``identity`` is the hash of its RDMA node GUIDs."""

    identity: str
    driver: str
    management: BoundManagement
    endpoints: dict[str, BoundEndpoint]


class Bindings(Strict):
    """One ring's hardware, by host."""

    schema_name: Literal["sparkring.bindings/1"] = Field(default="sparkring.bindings/1", alias="schema")
    ring: str
    hosts: dict[str, BoundHost]


def read(ring: str, document: Any) -> Bindings:
    """Bindings from plain values; raises RingError that names the first wrong field."""
    try:
        bindings = Bindings.model_validate(document)
    except ValidationError as error:
        raise RingError(f"Ring {ring}: bindings are damaged at {_first(error)}; delete them and run bind.") from None
    if bindings.ring != ring:
        raise RingError(f"Ring {ring}: its bindings name ring {bindings.ring}; delete them and run bind.")
    return bindings


def needed_roles(inventory: Inventory, position: int) -> list[str]:
    """Roles that the layout cables at a position."""
    if inventory.shape.kind == layouts.SWITCHED:
        return [role.name for role in ROLES if role.name in inventory.hosts[position].endpoints]
    return [role.name for role in ROLES if role.port in inventory.shape.ports(position)]


def bind(inventory: Inventory, surveys: Mapping[str, Any], standing: Bindings | None = None) -> Bindings:
    """Bindings of a ring from the surveys of its hosts.

    ``standing`` bindings serve the hosts that were not surveyed, and keep the adopted addresses of the others.
    """
    hosts: dict[str, BoundHost] = {}
    owner: dict[str, str] = {}
    for position, host in enumerate(inventory.hosts):
        before = standing.hosts.get(host.name) if standing else None
        if surveys.get(host.name):
            bound = _bind_host(host.name, surveys[host.name], needed_roles(inventory, position))
            bound = keep_addresses(bound, before) if before else bound
        elif before:
            bound = before
        else:
            raise RingError(f"Ring {inventory.ring}: {host.name} was not surveyed; run this for the whole ring.")
        other = owner.setdefault(bound.identity, host.name)
        if other != host.name:
            raise RingError(
                f"Ring {inventory.ring}: {other} and {host.name} are one machine (identity {bound.identity}); "
                "correct ansible_host of one of them."
            )
        hosts[host.name] = bound
    return Bindings(ring=inventory.ring, hosts=hosts)


def keep_addresses(host: BoundHost, before: BoundHost) -> BoundHost:
    """The host with the adopted addresses that it had."""
    endpoints = {
        role: endpoint.model_copy(update={"address": before.endpoints[role].address})
        if role in before.endpoints
        else endpoint
        for role, endpoint in host.endpoints.items()
    }
    return host.model_copy(update={"endpoints": endpoints})


def differences(bound: Bindings, seen: Bindings) -> list[str]:
    """One sentence for each thing that the hosts show otherwise than the bindings say."""
    found = []
    for host in sorted(set(bound.hosts) | set(seen.hosts)):
        before, now = bound.hosts.get(host), seen.hosts.get(host)
        if before is None:
            found.append(f"{host}: the bindings do not know this host; run rebind to accept it.")
        elif now is None:
            found.append(f"{host}: the bindings name it, the inventory does not; run rebind to drop it.")
        else:
            found += [f"{host}: {sentence}" for sentence in _host_differences(before, now)]
    return found


def _host_differences(before: BoundHost, now: BoundHost) -> list[str]:
    found = []
    if before.identity != now.identity:
        found.append(f"the machine that answers has identity {now.identity}, bindings say {before.identity}; {ACCEPT}.")
    if before.driver != now.driver:
        found.append(f"its driver is {now.driver}, bindings say {before.driver}; {ACCEPT}.")
    if before.management != now.management:
        shown, said = (f"{m.netdev} {m.address}/{m.prefix}" for m in (now.management, before.management))
        found.append(f"it is administered by {shown}, bindings say {said}; run rebind to accept it.")
    for role in ROLE_BY_NAME:
        was, has = before.endpoints.get(role), now.endpoints.get(role)
        if was is None and has is not None:
            found.append(f"{has.rdma_device} is new as {role}; {ACCEPT}.")
        elif has is None and was is not None:
            found.append(f"{was.rdma_device} ({role}) is missing, bindings say {was.netdev}; repair it or {ACCEPT}.")
        elif was is not None and has is not None:
            if was.rdma_device != has.rdma_device:
                found.append(f"{role} is now {has.rdma_device}, bindings say {was.rdma_device}; {ACCEPT}.")
            for word, field in (("MAC", "mac"), ("netdev", "netdev"), ("PCI function", "bdf")):
                if getattr(was, field) != getattr(has, field):
                    found.append(
                        f"{has.rdma_device} now carries {word} {getattr(has, field)}, "
                        f"bindings say {getattr(was, field)}; {ACCEPT}."
                    )
            if was.address != has.address:
                now_has, had = (endpoint.address or "none of its own" for endpoint in (has, was))
                found.append(f"{has.netdev} has adopted address {now_has}, bindings say {had}; {ACCEPT}.")
    return found


def _bind_host(host: str, document: Any, needed: list[str]) -> BoundHost:
    try:
        survey = Survey.model_validate(document)
    except ValidationError as error:
        raise RingError(f"{host}: its survey is damaged at {_first(error)}; run survey again.") from None
    devices = _devices(host, survey)
    missing = [role for role in needed if role not in devices]
    if missing:
        names = ", ".join(f"{role} ({ROLE_BY_NAME[role].rdma_device})" for role in missing)
        raise RingError(
            f"{host}: no RDMA device for {names}; see that the card's driver is loaded and its ports are enabled."
        )
    links = {link.netdev: link for link in survey.links}
    endpoints: dict[str, BoundEndpoint] = {}
    for role in (role for role in ROLE_BY_NAME if role in devices):
        device = devices[role]
        link = links.get(device.netdev or "")
        if link is None:
            if role in needed:
                raise RingError(
                    f"{host}: {device.device} has no network interface; see that the card's driver is loaded."
                )
            continue
        if link.master and role in needed:
            raise RingError(f"{host}: {link.netdev} is a member of {link.master}; take it out, then run this again.")
        endpoints[role] = BoundEndpoint(
            netdev=link.netdev, rdma_device=device.device, mac=link.mac.lower(), bdf=link.bdf
        )
    return BoundHost(
        identity=survey.identity,
        driver=_driver(host, [devices[role] for role in endpoints]),
        management=_management(host, survey, {endpoint.netdev for endpoint in endpoints.values()}),
        endpoints=endpoints,
    )


def _devices(host: str, survey: Survey) -> dict[str, SurveyDevice]:
    """RDMA devices by role: by their DGX OS name, else by port and function in the netdev's name."""
    found: dict[str, SurveyDevice] = {}
    for device in survey.rdma:
        role = ROLE_BY_DEVICE.get(device.device)
        match = _PLACE.fullmatch(device.netdev or "")
        if role is None and match is not None:
            role = ROLE_BY_PLACE[int(match[2]), SECONDARY if match[1] else PRIMARY]
        if role is None:
            continue
        if role.name in found:
            raise RingError(
                f"{host}: {found[role.name].device} and {device.device} both look like {role.name}; "
                "give the devices their DGX OS names."
            )
        found[role.name] = device
    return found


def _driver(host: str, devices: list[SurveyDevice]) -> str:
    found = set()
    for device in devices:
        names = [driver.name for driver in DRIVERS.values() if device.driver in driver.kernel_drivers]
        if not names:
            known = ", ".join(name for driver in DRIVERS.values() for name in driver.kernel_drivers)
            raise RingError(f"{host}: {device.device} has driver {device.driver}; SparkRing knows {known}.")
        found.add(names[0])
    if len(found) != 1:
        raise RingError(
            f"{host}: its fabric devices have different drivers ({', '.join(sorted(found))}); use one kind."
        )
    return found.pop()


def _management(host: str, survey: Survey, fabric: set[str]) -> BoundManagement:
    shown = survey.management
    if _lacks_lan(survey, fabric):
        raise RingError(
            f"{host}: it has no address outside the fabric, and the fabric is not laid over the path that its host is "
            "reached by; give it an address on a LAN (wireless is enough), until then survey and doctor serve it, "
            "and prepare once its host key is pinned."
        )
    if shown is None:
        raise RingError(f"{host}: no management interface was found; set sparkring_management_interface.")
    if shown.netdev in fabric or FABRIC_NETDEV.fullmatch(shown.netdev):
        raise RingError(management_is_fabric(host, shown.netdev))
    return BoundManagement(netdev=shown.netdev, address=shown.address, prefix=shown.prefix)


def _lacks_lan(survey: Survey, fabric: set[str]) -> bool:
    """Whether a host is reached over a cable, and could not be otherwise."""
    outside = [link for link in survey.links if link.netdev not in fabric and not FABRIC_NETDEV.fullmatch(link.netdev)]
    over_cable = survey.management is None or survey.management.netdev in fabric
    return over_cable and not any(link.addresses for link in outside)


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'document'} ({first['msg'].lower()})"
