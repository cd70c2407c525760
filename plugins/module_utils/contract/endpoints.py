"""The four endpoints of a host: two functions of each of two ports (facts: fabric 1)."""

from __future__ import annotations

from dataclasses import dataclass

PRIMARY = "primary"
SECONDARY = "secondary"
FUNCTIONS = (PRIMARY, SECONDARY)


@dataclass(frozen=True)
class Role:
    """One endpoint's place on the card.

    ``port`` is 0 (clockwise) or 1. ``netdev`` and ``rdma_device`` are the names that DGX OS
    gives; a host's real names come from its bindings.
    """

    name: str
    port: int
    function: str
    netdev: str
    rdma_device: str


ROLES = (
    Role("cw_primary", 0, PRIMARY, "enp1s0f0np0", "rocep1s0f0"),
    Role("cw_secondary", 0, SECONDARY, "enP2p1s0f0np0", "roceP2p1s0f0"),
    Role("ccw_primary", 1, PRIMARY, "enp1s0f1np1", "rocep1s0f1"),
    Role("ccw_secondary", 1, SECONDARY, "enP2p1s0f1np1", "roceP2p1s0f1"),
)
ROLE_BY_NAME = {role.name: role for role in ROLES}
ROLE_BY_PLACE = {(role.port, role.function): role for role in ROLES}
