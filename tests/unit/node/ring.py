"""Host 0 of a virtual ring of four, as a plan written out by hand, and the host it is for."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import documents, marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import ROLES
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from tests.fake_kernel import FakeKernel, Link

NETDEV = {role.name: role.netdev for role in ROLES}
RDMA = {role.name: role.rdma_device for role in ROLES}
PROGRAM = b"the node program"
GUIDS = sorted(f"5054:00ff:fe00:{position:04x}" for position in range(4))
IDENTITY = hashlib.sha256("\n".join(GUIDS).encode()).hexdigest()[:32]


def mac(host: int, role: str) -> str:
    """MAC of one endpoint."""
    return f"52:54:00:{host:02x}:00:{1 + [item.name for item in ROLES].index(role):02x}"


def links() -> dict[str, Link]:
    """The fabric netdevs of host 0, and its management interface is left out."""
    return {role.netdev: Link(mac(0, role.name)) for role in ROLES}


def fake(root: Path, **options: Any) -> FakeKernel:
    """Host 0, bare."""
    return FakeKernel(root, links(), **options)


def plan(driver: str = "virtual") -> dict[str, Any]:
    """The plan of host 0."""
    addresses = {"cw_primary": (0, 1), "cw_secondary": (1, 1), "ccw_primary": (6, 2), "ccw_secondary": (7, 2)}
    far = {
        "cw_primary": "198.18.2.2",
        "cw_secondary": "198.18.3.2",
        "ccw_primary": "198.18.4.1",
        "ccw_secondary": "198.18.5.1",
    }
    baseline = {"cw_primary": "198.18.2.0/24", "cw_secondary": "198.18.3.0/24"}
    baseline |= {"ccw_primary": "198.18.4.0/24", "ccw_secondary": "198.18.5.0/24"}
    made: dict[str, Any] = {name: [] for name in ("links", "routes", "sysctls", "forward_rules", "mesh_routes")}
    made |= {name: [] for name in ("neighbours", "qdiscs", "filters", "marker_rules")}
    for number, role in enumerate(ROLES):
        name, netdev = role.name, role.netdev
        subnet, end = addresses[name]
        own, peer = f"198.18.{subnet}.{end}", f"198.18.{subnet}.{3 - end}"
        opposite = name.replace("ccw", "CW").replace("cw", "ccw").replace("CW", "cw")
        neighbour = 1 if role.port == 0 else 3
        made["links"].append(
            {
                "id": f"link/{name}",
                "role": name,
                "port": role.port,
                "function": role.function,
                "cable": 0 if role.port == 0 else 3,
                "netdev": netdev,
                "rdma_device": role.rdma_device,
                "mac": mac(0, name),
                "bdf": None,
                "address": f"{own}/24",
                "mtu": 9000,
                "profile": marks.profile_name("lab", name),
                "profile_uuid": f"00000000-0000-5000-8000-00000000000{number}",
                "peer_host": f"spark{neighbour}",
                "peer_address": peer,
            }
        )
        made["routes"].append(
            {"id": f"route/{baseline[name]}", "destination": baseline[name], "via": peer, "netdev": netdev}
        )
        for key, value in (("forwarding", "1"), ("rp_filter", "0")):
            path = f"net/ipv4/conf/{netdev}/{key}"
            made["sysctls"].append({"id": f"sysctl/{path}", "key": path, "value": value})
        made["forward_rules"].append(
            {"id": f"forward/{netdev}>{NETDEV[opposite]}", "ingress": netdev, "egress": NETDEV[opposite]}
        )
        made["mesh_routes"].append(
            {"id": f"mesh-route/{far[name]}", "destination": f"{far[name]}/32", "netdev": netdev, "source": own}
        )
        made["neighbours"].append(
            {"id": f"neighbour/{far[name]}", "address": far[name], "netdev": netdev, "mac": mac(neighbour, opposite)}
        )
        made["qdiscs"].append({"id": f"qdisc/{netdev}", "netdev": netdev})
        made["filters"].append(
            {
                "id": f"filter/{netdev}/0x88b5",
                "netdev": netdev,
                "tag": "0x88b5",
                "preference": 41,
                "handle": 1,
                "set_mac": mac(3 if role.port == 0 else 1, name),
                "set_tag": "0x0800",
                "egress": NETDEV[opposite],
                "in_nic": driver == "mlx5",
            }
        )
        made["marker_rules"].append(
            {
                "id": f"marker/{role.rdma_device}/{far[name]}",
                "rdma_device": role.rdma_device,
                "netdev": netdev,
                "destination": far[name],
                "tag": "0x88b5",
            }
        )
    return {
        "schema": documents.HOST_PLAN,
        "ring": "lab",
        "layout": "cycle-4",
        "host": "spark0",
        "position": 0,
        "plan_digest": "sha256:0",
        "driver": driver,
        "identity": IDENTITY,
        "management": {"netdev": "enP7s7", "address": "192.0.2.10", "prefix": 24},
        **made,
        "hairpin": {"needed": False, "queue_size": 8192, "num_queues": 4},
        "units": [marks.FABRIC_UNIT, *[marks.marker_unit(role.rdma_device) for role in ROLES], marks.RECONCILE_TIMER],
        "lanes": [],
        "shares": [],
        "peers": [],
        "checks": [],
    }


def host_plan(driver: str = "virtual") -> HostPlan:
    """The plan of host 0, read."""
    return HostPlan.from_plain(plan(driver))
