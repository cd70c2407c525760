"""Links that the operator configures: checked, and never written (facts: fabric 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..contract import host_plan
from . import profiles


def refusals(
    link: host_plan.Link, entry: dict[str, Any], addresses: list[str], manager: profiles.NetworkManager
) -> Iterator[str]:
    """What keeps an adopted link from serving as it is; ``entry`` is its ``ip -j -d addr`` entry."""
    profile = next((item for item in manager.profiles if item.active_on == link.netdev), None)
    where = f"in the NetworkManager profile '{profile.name}'" if profile else "where this host configures it"
    if addresses != [link.address]:
        held = ", ".join(addresses) or "no IPv4 address"
        yield (
            f"{link.netdev} has {held}, adopted is {link.address}: put that back {where}, "
            "or run rebind with sparkring_adopt"
        )
    if entry.get("mtu") != link.mtu:
        yield f"{link.netdev} is adopted and has MTU {entry.get('mtu')}: set {link.mtu} {where}"
    count = sum(part.get("family") == "inet6" and part.get("scope") == "link" for part in entry.get("addr_info", []))
    if count != 1:
        yield (
            f"{link.netdev} is adopted and has {count} IPv6 link-local addresses: have exactly one, by EUI-64, {where}"
        )
    if profile is not None and profile.settings.get("connection.autoconnect") == "no":
        yield (
            f"the NetworkManager profile '{profile.name}' of {link.netdev} does not connect by itself:"
            f" nmcli connection modify uuid {profile.uuid} connection.autoconnect yes"
        )
