"""Who this host is: its RDMA node GUIDs, since factory images share /etc/machine-id."""

from __future__ import annotations

import hashlib

from .host import Host

RDMA_CLASS = "/sys/class/infiniband"


def of(host: Host) -> str:
    """First 32 hex digits of SHA-256 over the sorted node GUIDs; empty without RDMA."""
    guids = sorted(host.read(f"{RDMA_CLASS}/{device}/node_guid") or "" for device in host.names(RDMA_CLASS))
    if not guids:
        return ""
    return hashlib.sha256("\n".join(guids).encode()).hexdigest()[:32]
