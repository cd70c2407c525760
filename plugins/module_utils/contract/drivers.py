"""All that differs between a real and a virtual host; nothing else may ask which it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Driver:
    """Capabilities of a host's NIC.

    ``speed_mbps`` and ``active_mtu`` are what a healthy link shows; None where the card has
    no such limit. ``kernel_drivers`` are the RDMA drivers that a survey recognises it by.
    """

    name: str
    kernel_drivers: Tuple[str, ...]
    marks_in_nic: bool
    relays_in_nic: bool
    needs_hairpin: bool
    speed_mbps: Optional[int]
    active_mtu: Optional[int]


DRIVERS = {
    "mlx5": Driver("mlx5", ("mlx5_core",), True, True, True, 200000, 4096),
    "virtual": Driver("virtual", ("rdma_rxe",), False, False, False, None, 4096),
}
