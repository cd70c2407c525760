"""GIDs of an RDMA device: the one place that reads their table, and finds an entry by what it holds.

An index is no identity: the kernel gives out indices in the order in which addresses came (facts: fabric 3).
"""

from __future__ import annotations

import ipaddress
from typing import Any

from . import identity
from .commands import HostError
from .host import Host

ROCE_V2 = "RoCE v2"
LONGEST_GAP = 64
"""Empty entries in a row that end a table: the kernel takes the first free one, and a table may have 1,024."""


def table(host: Host, device: str) -> list[dict[str, Any]]:
    """GID table of port 1 of an RDMA device, empty entries left out: index, gid, type and netdev."""
    port = f"{identity.RDMA_CLASS}/{device}/ports/1"
    found: list[dict[str, Any]] = []
    last = -1
    for index in sorted(int(name) for name in host.names(port + "/gids") if name.isdigit()):
        gid = host.read(f"{port}/gids/{index}")
        if index - last > LONGEST_GAP:
            break
        if gid and gid.strip("0:"):
            last = index
            found.append(
                {
                    "index": index,
                    "gid": gid,
                    "type": host.read(f"{port}/gid_attrs/types/{index}"),
                    "netdev": host.read(f"{port}/gid_attrs/ndevs/{index}"),
                }
            )
    return found


def by_address(host: Host, device: str, netdev: str) -> dict[str, int]:
    """Index of the RoCE v2 GID of each IPv4 address of a netdev, by address without prefix, in the table's order."""
    found: dict[str, int] = {}
    for entry in table(host, device):
        mapped = ipaddress.IPv6Address(entry["gid"]).ipv4_mapped
        if mapped is not None and entry["type"] == ROCE_V2 and entry["netdev"] == netdev:
            found.setdefault(str(mapped), entry["index"])
    return found


def common(host: Host, ends: list[tuple[str, str, str]]) -> int:
    """The one index at which several RDMA devices hold their addresses.

    ``ends`` are device, netdev and address without prefix; raises HostError naming the devices that disagree.
    """
    found: dict[str, int] = {}
    for device, netdev, address in ends:
        index = by_address(host, device, netdev).get(address)
        if index is None:
            raise HostError(f"{device} has no RoCE v2 GID of {address}: run mesh-setup")
        found[device] = index
    if len(set(found.values())) > 1:
        said = ", ".join(f"{device} {index}" for device, index in found.items())
        raise HostError(
            f"The devices hold their GIDs at different indices ({said}), and the engine takes one for all: "
            "stop what uses RDMA, then run mesh-setup, which gives them anew"
        )
    return next(iter(found.values()))
