"""Every way in which a set-up host may lose what is ours, with the objects in which it then differs from its plan."""

from __future__ import annotations

from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from tests.fake_kernel import FakeKernel

from . import ring

CW, CCW = ring.NETDEV["cw_primary"], ring.NETDEV["ccw_primary"]


def set_byte(kernel: FakeKernel, side: str) -> None:
    found = next(item for item in kernel.filters if (item["dev"], item["side"]) == (CW, side))
    key = found["options"]["actions"][0]["keys"][0]
    key["val"] = f"{int(key['val'], 16) ^ 0x00010000:x}"


def drop(entries: list[Any], **match: Any) -> None:
    kept = [item for item in entries if not all(item.get(name) == value for name, value in match.items())]
    assert len(kept) == len(entries) - 1
    entries[:] = kept


def edit(entries: list[Any], changes: dict[str, Any], **match: Any) -> None:
    found = [item for item in entries if all(item.get(name) == value for name, value in match.items())]
    assert len(found) == 1
    found[0].update(changes)


UUID = "00000000-0000-5000-8000-000000000000"
FABRIC_FILE = f"{marks.UNIT_DIR}/{marks.FABRIC_UNIT}"
MARKER_FILE = f"{marks.UNIT_DIR}/{marks.MARKER_UNIT_TEMPLATE}"
REMAKES_CW = [
    "link/cw_primary",
    "route/198.18.2.0/24",
    "mesh-route/198.18.2.2",
    "neighbour/198.18.2.2",
]
MARKER = ring.RDMA["cw_primary"]

DAMAGE: dict[str, tuple[Any, list[str], str]] = {
    "route missing": (lambda k: drop(k.routes, dst="198.18.2.0/24"), ["route/198.18.2.0/24"], "add"),
    "route by another way": (
        lambda k: edit(k.routes, {"gateway": "198.18.0.9"}, dst="198.18.2.0/24"),
        ["route/198.18.2.0/24"],
        "replace",
    ),
    "origin route missing": (lambda k: drop(k.routes, dst="198.18.2.2"), ["mesh-route/198.18.2.2"], "add"),
    "origin route from another address": (
        lambda k: edit(k.routes, {"prefsrc": "198.18.6.2"}, dst="198.18.2.2"),
        ["mesh-route/198.18.2.2"],
        "replace",
    ),
    "origin route on another link": (
        lambda k: edit(k.routes, {"dev": CCW}, dst="198.18.2.2"),
        ["mesh-route/198.18.2.2"],
        "replace",
    ),
    "route of ours left over": (
        lambda k: k.routes.append({"dst": "198.18.9.0/24", "dev": CW, "protocol": "83", "flags": []}),
        ["route/198.18.9.0/24"],
        "remove",
    ),
    "neighbour missing": (lambda k: drop(k.neighbours, dst="198.18.2.2"), ["neighbour/198.18.2.2"], "add"),
    "neighbour with another MAC": (
        lambda k: edit(k.neighbours, {"lladdr": "52:54:00:09:09:09"}, dst="198.18.2.2"),
        ["neighbour/198.18.2.2"],
        "replace",
    ),
    "neighbour on another link": (
        lambda k: edit(k.neighbours, {"dev": CCW}, dst="198.18.2.2"),
        ["neighbour/198.18.2.2"],
        "replace",
    ),
    "sysctl": (
        lambda k: k.file(f"proc/sys/net/ipv4/conf/{CW}/rp_filter", "1"),
        [f"sysctl/net/ipv4/conf/{CW}/rp_filter"],
        "replace",
    ),
    "forward rule missing": (
        lambda k: k.rules.pop(0),
        [f"forward/{ring.NETDEV['ccw_secondary']}>{ring.NETDEV['cw_secondary']}"],
        "add",
    ),
    "forward rule twice": (
        lambda k: k.rules.append(k.rules[0]),
        [f"forward/{ring.NETDEV['ccw_secondary']}>{ring.NETDEV['cw_secondary']}#2"],
        "remove",
    ),
    "forward rule narrowed": (
        lambda k: k.rules.__setitem__(3, k.rules[3].replace("-m comment", "-p tcp -m comment")),
        [f"forward/{CW}>{CCW}"],
        "replace",
    ),
    "qdisc missing": (
        lambda k: (k.qdiscs.pop(CW), k.filters.__setitem__(slice(None), [f for f in k.filters if f["dev"] != CW])),
        [f"qdisc/{CW}", f"filter/{CW}/0x88b5", f"marker/{MARKER}/198.18.2.2"],
        "add",
    ),
    "filter missing": (lambda k: drop(k.filters, dev=CW, side="ingress"), [f"filter/{CW}/0x88b5"], "add"),
    "filter with one MAC byte changed": (lambda k: set_byte(k, "ingress"), [f"filter/{CW}/0x88b5"], "replace"),
    "filter matches less": (
        lambda k: next(f for f in k.filters if (f["dev"], f["side"]) == (CW, "ingress"))["options"]["keys"].update(
            src_mac="x"
        ),
        [f"filter/{CW}/0x88b5"],
        "replace",
    ),
    "filter to another egress": (
        lambda k: next(f for f in k.filters if (f["dev"], f["side"]) == (CW, "ingress"))["options"]["actions"][
            2
        ].update(to_dev=CW),
        [f"filter/{CW}/0x88b5"],
        "replace",
    ),
    "marker rule missing": (
        lambda k: drop(k.filters, dev=CW, side="egress"),
        [f"marker/{MARKER}/198.18.2.2"],
        "add",
    ),
    "marker rule with another tag": (lambda k: set_byte(k, "egress"), [f"marker/{MARKER}/198.18.2.2"], "replace"),
    "unit stopped": (
        lambda k: k.running.remove(marks.FABRIC_UNIT),
        [f"unit/{marks.FABRIC_UNIT}"],
        "replace",
    ),
    "marker stopped": (
        lambda k: k._stop(marks.marker_unit(MARKER)),
        [f"unit/{marks.marker_unit(MARKER)}", f"marker/{MARKER}/198.18.2.2"],
        "replace",
    ),
    "unit disabled": (
        lambda k: k._enable(marks.marker_unit(MARKER), False),
        [f"unit/{marks.marker_unit(MARKER)}"],
        "replace",
    ),
    "timer stopped": (
        lambda k: k.running.remove(marks.RECONCILE_TIMER),
        [f"unit/{marks.RECONCILE_TIMER}"],
        "replace",
    ),
    "unit file missing": (
        lambda k: (k.root / MARKER_FILE.lstrip("/")).unlink(),
        [f"file{MARKER_FILE}"],
        "add",
    ),
    "profile deleted": (lambda k: k._delete_profile(UUID), REMAKES_CW, "add"),
    "file changed": (lambda k: k.file(FABRIC_FILE, "x"), [f"file{FABRIC_FILE}"], "replace"),
    "link set down": (lambda k: (k._down(CW), setattr(k.links[CW], "up", False)), REMAKES_CW, "replace"),
    "link down": (lambda k: k._down(CW), REMAKES_CW, "replace"),
    "profile changed": (
        lambda k: k.profiles[UUID].update({"ipv6.addr-gen-mode": "stable-privacy"}),
        REMAKES_CW,
        "replace",
    ),
    "address lost": (lambda k: k.links[CW].addresses.clear(), REMAKES_CW, "replace"),
    "MTU changed": (lambda k: setattr(k.links[CW], "mtu", 1500), REMAKES_CW, "replace"),
}

MIXED = ("link down", "link set down", "marker stopped", "profile deleted")
"""What leaves some objects altered and others missing."""
