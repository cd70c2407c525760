"""What SparkRing owns on a host is what carries these marks; everything else is left alone.

The numbers are chosen apart from the reference tool's (protocol 82, preferences 10-18), so
that both can be told apart on one host (DESIGN section 5).
"""

from __future__ import annotations

ROUTE_PROTOCOL = 83
"""Value of ``proto`` on every route and permanent neighbour of ours."""

INGRESS_PREFERENCE_BASE = 40
"""A relay filter for tag k has tc preference 40 + k (41..47) and handle k; 48 is reserved."""

EGRESS_PREFERENCE = 41
"""tc preference of the virtual marker's egress rules."""

SOURCE_PORT_PREFERENCE = 42
"""tc preference of the virtual marker's rule by UDP source port; destinations go before it."""

SOURCE_PORT_MATCH = "source-port/"
"""In place of a marker rule's destination: the rule matches this UDP source port, whatever the destination."""

OLDER_SOURCE_PORT = 65535
"""UDP source port that the seed images' transports reserve for relayed packets (facts: fabric 5.2)."""

RULE_COMMENT = "sparkring.cluster"
"""iptables comment on every forward rule of ours."""

FILE_HEADER = "# Written by sparkring.cluster; changes are overwritten."
"""First line of every text file of ours on a host."""

CONFIG_DIR = "/etc/sparkring-node"
PLAN_PATH = CONFIG_DIR + "/plan.json"
CHANGE_PATH = CONFIG_DIR + "/change.json"
CHANGE_PROGRAM_PATH = CONFIG_DIR + "/change.pyz"
"""What the host was before the change that is under way, and the program that puts it back; gone once it is kept."""
RUN_DIR = "/run/sparkring-node"
LIB_DIR = "/usr/local/lib/sparkring-node"
PROGRAM_PATH = LIB_DIR + "/node.pyz"
MARKER_PATH = LIB_DIR + "/marker-mlx5"
UNIT_DIR = "/etc/systemd/system"

UNIT_PREFIX = "sparkring-node-"
FABRIC_UNIT = UNIT_PREFIX + "fabric.service"
REVERT_UNIT = UNIT_PREFIX + "revert.service"
REVERT_TIMER = UNIT_PREFIX + "revert.timer"
"""They are there only while a change is under way."""
HAIRPIN_UNIT = UNIT_PREFIX + "hairpin.service"
RECONCILE_UNIT = UNIT_PREFIX + "reconcile.service"
RECONCILE_TIMER = UNIT_PREFIX + "reconcile.timer"
RECONCILE_STATE_PATH = RUN_DIR + "/reconcile.json"
GLANCE_PATH = RUN_DIR + "/glance.json"
MARKER_UNIT_TEMPLATE = UNIT_PREFIX + "marker@.service"
RESPONDER_UNIT = UNIT_PREFIX + "responder.service"
"""Transient unit that answers the lane checks of one verify run."""
RESPONDER_KEY_PATH = RUN_DIR + "/responder.key"
RESPONDER_PORT = 18619
LANE_PORTS = range(18620, 18640)
"""TCP ports on the management address; lane ports carry perftest's handshake, one lane at a time."""

PROFILE_PREFIX = "sparkring-"
"""NetworkManager profile names: ``sparkring-<ring>-<role>``."""


def marker_unit(rdma_device: str) -> str:
    """Name of the marker unit of one RDMA device."""
    return UNIT_PREFIX + "marker@" + rdma_device + ".service"


def profile_name(ring: str, role: str) -> str:
    """Name of the NetworkManager profile of one endpoint."""
    return PROFILE_PREFIX + ring + "-" + role
