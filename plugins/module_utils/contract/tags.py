"""EtherTypes that steer a RoCE packet along relays: 0x88b4 + k, k relays still to cross.

The tag sits outside the packet's ICRC, so relays may rewrite it (facts: fabric 5.1).
"""

from __future__ import annotations

IPV4 = 0x0800
TAG_BASE = 0x88B4
MAX_RELAYS = 7
QUALIFIED_RELAYS = 3
"""More relays than this are research only (facts: fabric 5.5)."""


def tag(relays_left: int) -> int:
    """EtherType of a packet with ``relays_left`` (0..7) relays still to cross.

    Zero gives plain IPv4. Raises ValueError outside the range.
    """
    if not 0 <= relays_left <= MAX_RELAYS:
        raise ValueError(f"relays_left must be 0..{MAX_RELAYS}, not {relays_left}")
    return TAG_BASE + relays_left if relays_left else IPV4


def hexadecimal(ethertype: int) -> str:
    """The form used in documents and in tc: ``0x88b5``, ``0x0800``."""
    return f"0x{ethertype:04x}"
