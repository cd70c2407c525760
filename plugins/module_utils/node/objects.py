"""The objects that a host owns: one shape for what shall be and what is.

An object is an id, a kind and a body of plain fields. Desired and observed objects of one kind
have the same fields, so comparing two objects is comparing two bodies, whole.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from ..contract import documents, host_plan, marks, tags
from . import units

FILE = "file"
BINARY = "binary"
LINK = "link"
QDISC = "qdisc"
SYSCTL = "sysctl"
FORWARD = "forward"
ROUTE = "route"
NEIGHBOUR = "neighbour"
FILTER = "filter"
MARKER = "marker"
UNIT = "unit"

ORDER = (FILE, BINARY, LINK, QDISC, SYSCTL, FORWARD, ROUTE, NEIGHBOUR, FILTER, MARKER, UNIT)
"""Order of laying; taking away goes backwards."""

KEYS = {
    QDISC: ("netdev",),
    SYSCTL: ("key",),
    FORWARD: ("ingress", "egress"),
    ROUTE: ("destination",),
    NEIGHBOUR: ("address",),
    FILTER: ("netdev", "tag"),
    MARKER: ("device", "destination"),
}
"""Fields by which an observed object is known as a planned one; other kinds are known by their id."""

PROFILE_SETTINGS = {
    "connection.autoconnect": "yes",
    "connection.autoconnect-priority": "100",
    "ipv4.method": "manual",
    "ipv4.never-default": "yes",
    "ipv4.ignore-auto-dns": "yes",
    "ipv6.method": "link-local",
    "ipv6.addr-gen-mode": "eui64",
    "ipv6.never-default": "yes",
}
"""What every profile of ours has in common (facts: fabric 3)."""


@dataclass(frozen=True)
class Item:
    """One object. ``netdev`` names the link whose new start takes the object away, if any.

    ``removable`` is false for an observed object that was here before us: it satisfies the plan,
    but is left when the plan ends.
    """

    id: str
    kind: str
    body: dict[str, Any]
    netdev: str | None = None
    removable: bool = True

    def key(self) -> tuple[Any, ...]:
        """What makes this object the same as another of its kind, whatever else differs."""
        return (self.kind, *(self.body[name] for name in KEYS[self.kind])) if self.kind in KEYS else (self.id,)

    def line(self) -> str:
        """The object in one line, for diffs."""
        shown = dict(self.body)
        if self.kind == FILE:
            shown["content"] = "sha256:" + hashlib.sha256(shown["content"]).hexdigest()
        return self.id + "".join(f" {name}={short(shown[name])}" for name in sorted(shown))


def short(value: Any) -> str:
    """A field's value in few characters."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ",".join(str(item) for item in value) or "-"
    if isinstance(value, dict):
        return "{" + " ".join(f"{key}={value[key]}" for key in sorted(value)) + "}"
    return str(value)


def file_item(path: str, content: bytes, mode: int) -> Item:
    """A file of ours."""
    return Item("file" + path, FILE, {"path": path, "content": content, "mode": f"{mode:04o}"})


def desired(plan: host_plan.HostPlan, chain: str, program: bytes | None, marker_source: str | None) -> list[Item]:
    """All objects of a plan, in the order of laying.

    ``chain`` is where forward rules belong on this host. ``program`` is None when restoring, which
    leaves files, links, units and marker rules alone. ``marker_source`` is the C text of the marker
    where the card marks.
    """
    items: list[Item] = []
    if program is not None:
        items += _files(plan, program, marker_source)
        items += [_link(link) for link in plan.links if not link.adopted]
    items += [Item(item.id, QDISC, {"netdev": item.netdev}) for item in plan.qdiscs]
    items += [Item(item.id, SYSCTL, {"key": item.key, "value": item.value}) for item in plan.sysctls]
    items += [
        Item(rule.id, FORWARD, {"chain": chain, "ingress": rule.ingress, "egress": rule.egress, "extra": []})
        for rule in plan.forward_rules
    ]
    items += [_route(item.id, item.destination, item.netdev, item.via, None, None) for item in plan.routes]
    items += [_route(item.id, item.destination, item.netdev, None, item.source, "link") for item in plan.mesh_routes]
    items += [
        Item(item.id, NEIGHBOUR, {"address": item.address, "netdev": item.netdev, "mac": item.mac}, item.netdev)
        for item in plan.neighbours
    ]
    items += [_filter(item) for item in plan.filters]
    if program is not None:
        items += [
            Item(
                rule.id,
                MARKER,
                {"device": rule.rdma_device, "destination": rule.destination, "tag": rule.tag, "extra": []},
            )
            for rule in plan.marker_rules
        ]
        items += [Item("unit/" + unit, UNIT, {"name": unit, "enabled": True, "active": True}) for unit in plan.units]
    return items


def _files(plan: host_plan.HostPlan, program: bytes, marker_source: str | None) -> list[Item]:
    items = [
        file_item(marks.PLAN_PATH, documents.to_text(plan).encode(), 0o644),
        file_item(marks.PROGRAM_PATH, program, 0o755),
    ]
    if marker_source is not None and plan.marker_rules:
        digest = hashlib.sha256(marker_source.encode()).hexdigest()
        items.append(Item("file" + marks.MARKER_PATH, BINARY, {"path": marks.MARKER_PATH, "source": digest}))
    for name, text in units.files(plan.units).items():
        items.append(file_item(f"{marks.UNIT_DIR}/{name}", text.encode(), 0o644))
    return items


def _link(link: host_plan.Link) -> Item:
    settings = dict(PROFILE_SETTINGS)
    settings["connection.id"] = link.profile
    settings["connection.interface-name"] = link.netdev
    settings["ipv4.addresses"] = link.address
    settings["802-3-ethernet.mtu"] = str(link.mtu)
    body = {
        "netdev": link.netdev,
        "uuid": link.profile_uuid,
        "settings": settings,
        "active": True,
        "addresses": [link.address],
        "mtu": link.mtu,
    }
    return Item(link.id, LINK, body)


def _route(
    identifier: str, destination: str, netdev: str, via: str | None, source: str | None, scope: str | None
) -> Item:
    body = {
        "destination": destination,
        "netdev": netdev,
        "via": via,
        "source": source,
        "scope": scope,
        "table": "main",
        "metric": None,
        "kind": "unicast",
    }
    return Item(identifier, ROUTE, body, netdev)


def _filter(item: host_plan.Filter) -> Item:
    body = {
        "netdev": item.netdev,
        "tag": item.tag,
        "preference": item.preference,
        "handle": item.handle,
        "set_mac": item.set_mac,
        "set_tag": item.set_tag,
        "egress": item.egress,
        "skip_sw": item.in_nic,
        "in_hw": True if item.in_nic else None,
        "extra": [],
    }
    return Item(item.id, FILTER, body)


def our_preferences() -> range:
    """Ingress preferences that are reserved for relay filters."""
    first = marks.INGRESS_PREFERENCE_BASE + 1
    return range(first, first + tags.MAX_RELAYS + 1)
