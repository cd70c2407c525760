"""Rings in good health, as their surveys show them; every address, MAC and name is made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import hairpin_state
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import ROLE_BY_PLACE, ROLES
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor.examine import Patient
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import planner
from tests.rings import make_bindings, make_inventory, size

MANAGEMENT = "enP7s7"


def same(text: str) -> str:
    """Addresses as the plan gives them."""
    return text


def foreign(text: str) -> str:
    """Addresses of a ring that another tool built: 10.77.k for the primaries of cable k, 10.78.k for their twins."""
    network, _, prefix = text.partition("/")
    octets = [int(part) for part in network.split(".")]
    made = f"10.{77 + octets[2] % 2}.{octets[2] // 2}.{octets[3]}"
    return made + (f"/{prefix}" if prefix else "")


class Healthy:
    """One ring: ``state`` is ``planned`` (SparkRing laid it), ``foreign`` (another tool did) or ``bare`` (nobody)."""

    def __init__(self, layout: str, state: str) -> None:
        self.layout, self.state = layout, state
        names = [f"sr{position}" for position in range(size(layout))]
        self.inventory = make_inventory(layout, "home", names)
        self.bindings = make_bindings(self.inventory)
        self.plan: RingPlan = planner.plan(self.inventory, self.bindings)
        self.address: Callable[[str], str] = foreign if state == "foreign" else same
        self.surveys = {name: self._survey(position, self.plan.hosts[name]) for position, name in enumerate(names)}

    def examined(self) -> dict[str, dict[str, Any]]:
        """The surveys as the action ``examine`` hands them on."""
        return {
            host: {"survey": survey, "obstacle": None, "reason": "", "before": 1000.0, "after": 1004.0}
            for host, survey in self.surveys.items()
        }

    def patient(self, examined: dict[str, dict[str, Any]], plans_dir: Path | None = None) -> Patient:
        """The ring as the doctor gets it."""
        return Patient("home", [host.name for host in self.inventory.hosts], examined, {}, plans_dir)

    def _survey(self, position: int, plan: HostPlan) -> dict[str, Any]:
        bound = self.bindings.hosts[plan.host].endpoints
        links = {link.role: link for link in plan.links}
        return {
            "schema": "sparkring.survey/1",
            "hostname": plan.host,
            "identity": self.bindings.hosts[plan.host].identity,
            "machine_id": f"{position:016x}",
            "privilege": {"root": True, "unread": []},
            "clock": {"host": 1002.0},
            "management": {"netdev": MANAGEMENT, "address": f"192.0.2.{10 + position}", "prefix": 24},
            "links": [self._management(position)]
            + [self._link(role.name, bound[role.name], links.get(role.name)) for role in ROLES],
            "interfaces": [{"netdev": "docker0", "kind": "bridge", "addresses": ["172.17.0.1/16"]}],
            "rdma": [self._device(position, role.name, bound[role.name], links.get(role.name)) for role in ROLES],
            "users": [],
            "lldp": self._lldp(plan),
            "ipv6_neighbours": self._ipv6_neighbours(plan),
            "routes": self._routes(position, plan),
            "neighbours": self._neighbours(plan),
            "sysctls": self._sysctls(plan),
            "tc": self._tc(plan),
            "forward": self._forward(plan),
            "docker": {"installed": True, "running": True, "version": "29.2.1"},
            "networkmanager": self._network_manager(plan, bound),
            "networkd": {},
            "netplan": [{"file": "/etc/netplan/00-installer.yaml", "netdevs": [MANAGEMENT], "addresses": []}],
            "devlink": {endpoint.bdf: self._devlink(endpoint.netdev, endpoint.bdf) for endpoint in bound.values()},
            "modules": {
                link.netdev: {
                    "identifier": "0x11 (QSFP28)",
                    "vendor": "Amphenol",
                    "part": "NJAAKK-N911",
                    "length": "1m",
                }
                for link in plan.links
            },
            "kernel": {
                "release": "6.17.0-1029-nvidia",
                "os": "Ubuntu 24.04.4 LTS",
                "machine": "aarch64",
                "gpu_driver": "580.173.02",
            },
            "previous_boot": ["mlx5_core 0000:01:00.0: Detected insufficient power on the PCIe slot (27W)."],
            "memory": {
                "total_kib": 121 << 20,
                "available_kib": 110 << 20,
                "free_kib": 100 << 20,
                "cached_kib": 10 << 20,
                "shmem_kib": 1 << 20,
                "swap_total_kib": 16 << 20,
                "cma_total_kib": 32 << 10,
                "cma_free_kib": 16 << 10,
                "hugepage_kib": 0,
            },
            "disk": [{"mount": "/", "size_kib": 900 << 20, "free_kib": 400 << 20}],
            "gpu": ["NVIDIA GB10"],
            "tools": {},
        }

    def _management(self, position: int) -> dict[str, Any]:
        return {
            "netdev": MANAGEMENT,
            "mac": f"02:00:5e:00:{position:02x}:00",
            "mtu": 1500,
            "operstate": "up",
            "carrier": True,
            "speed_mbps": 10000,
            "driver": "r8127",
            "bdf": "0007:01:00.0",
            "master": None,
            "addresses": [f"192.0.2.{10 + position}/24"],
            "link_local": [],
            "phys_port_name": None,
            "wireless": False,
            "pcie": None,
        }

    def _link(self, role: str, endpoint: Any, link: Any) -> dict[str, Any]:
        laid = link is not None and self.state != "bare"
        return {
            "netdev": endpoint.netdev,
            "mac": endpoint.mac,
            "mtu": 9000 if laid else 1500,
            "operstate": "up" if link else "down",
            "carrier": link is not None,
            "speed_mbps": 200000 if link else None,
            "driver": "mlx5_core",
            "bdf": endpoint.bdf,
            "master": None,
            "addresses": [self.address(link.address)] if laid else [],
            "link_local": [self._link_local(endpoint.mac)] if link else [],
            "phys_port_name": f"p{next(item.port for item in ROLES if item.name == role)}",
            "wireless": False,
            "pcie": {"speed": "32.0 GT/s PCIe", "width": 4, "max_speed": "32.0 GT/s PCIe", "max_width": 4},
        }

    @staticmethod
    def _link_local(mac: str) -> str:
        octets = [int(part, 16) for part in mac.split(":")]
        octets[0] ^= 2
        return "fe80::{:x}{:02x}:{:x}ff:fe{:02x}:{:x}{:02x}".format(*octets)

    def _device(self, position: int, role: str, endpoint: Any, link: Any) -> dict[str, Any]:
        laid = link is not None and self.state != "bare"
        number = [item.name for item in ROLES].index(role)
        contents = []
        if link is not None:
            contents.append(f"fe80:0000:0000:0000:0000:5eff:fe00:{position:02x}{number + 1:02x}")
        if laid:
            a, b, c, d = (int(part) for part in self.address(link.address).split("/")[0].split("."))
            contents.append(f"0000:0000:0000:0000:0000:ffff:{a:02x}{b:02x}:{c:02x}{d:02x}")
        kinds = ("IB/RoCE v1", "RoCE v2")
        return {
            "device": endpoint.rdma_device,
            "netdev": endpoint.netdev,
            "node_guid": f"0200:5eff:fe00:{position:02x}{number + 1:02x}",
            "driver": "mlx5_core",
            "firmware": "28.45.4028",
            "state": "ACTIVE" if link else "DOWN",
            "link_layer": "Ethernet",
            "active_mtu": 4096 if laid else 1024,
            "gids": [
                {"index": 2 * place + version, "gid": gid, "type": kinds[version], "netdev": endpoint.netdev}
                for place, gid in enumerate(contents)
                for version in (0, 1)
            ],
        }

    def _far_port(self, plan: HostPlan, link: Any) -> int:
        return self.inventory.shape.wiring[plan.position, link.port][1]

    def _peers(self, plan: HostPlan) -> list[tuple[Any, str, Any]]:
        """Each cabled link with its far host and the functions there that it hears."""
        found = []
        for link in plan.links:
            far = self.bindings.hosts[link.peer_host].endpoints
            port = self._far_port(plan, link)
            for role in ROLES:
                if role.port == port:
                    found.append((link, link.peer_host, far[role.name]))
        return found

    def _lldp(self, plan: HostPlan) -> list[dict[str, Any]]:
        rows = []
        for link, host, endpoint in self._peers(plan):
            chassis = f"02:00:5e:00:{int(host[2:]):02x}:00"
            rows.append(
                {
                    "netdev": link.netdev,
                    "chassis_name": host,
                    "chassis_id": chassis,
                    "port_id": endpoint.mac,
                    "port_descr": endpoint.netdev,
                }
            )
        return sorted(rows, key=lambda row: (row["netdev"], row["port_id"]))

    def _ipv6_neighbours(self, plan: HostPlan) -> list[dict[str, Any]]:
        return [
            {"netdev": link.netdev, "address": self._link_local(endpoint.mac), "mac": endpoint.mac}
            for link, _host, endpoint in self._peers(plan)
        ]

    def _routes(self, position: int, plan: HostPlan) -> list[dict[str, Any]]:
        own = f"192.0.2.{10 + position}"
        routes: list[dict[str, Any]] = [
            {
                "dst": "default",
                "gateway": "192.0.2.1",
                "dev": MANAGEMENT,
                "protocol": "dhcp",
                "metric": 100,
                "flags": [],
            },
            {
                "dst": "192.0.2.0/24",
                "dev": MANAGEMENT,
                "protocol": "kernel",
                "scope": "link",
                "prefsrc": own,
                "flags": [],
            },
            {"dst": "172.17.0.0/16", "dev": "docker0", "protocol": "kernel", "scope": "link", "flags": ["linkdown"]},
            {"type": "local", "dst": own, "dev": MANAGEMENT, "table": "local", "protocol": "kernel", "flags": []},
            {"dst": "fe80::/64", "dev": MANAGEMENT, "protocol": "kernel", "metric": 256, "flags": []},
        ]
        if self.state == "bare":
            return routes
        for link in plan.links:
            network = self.address(link.address).rsplit(".", 1)[0] + ".0/24"
            routes.append({"dst": network, "dev": link.netdev, "protocol": "kernel", "scope": "link", "flags": []})
        protocol = "83" if self.state == "planned" else "static"
        for route in plan.routes:
            routes.append(
                {
                    "dst": self.address(route.destination),
                    "gateway": self.address(route.via),
                    "dev": route.netdev,
                    "protocol": protocol,
                    "flags": [],
                }
            )
        for origin in plan.mesh_routes if self.state == "planned" else []:
            routes.append(
                {
                    "dst": origin.destination.removesuffix("/32"),
                    "dev": origin.netdev,
                    "protocol": "83",
                    "scope": "link",
                    "prefsrc": origin.source,
                    "flags": [],
                }
            )
        return routes

    def _neighbours(self, plan: HostPlan) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if self.state == "bare":
            return found
        for link in plan.links:
            far = ROLE_BY_PLACE[self._far_port(plan, link), link.function].name
            mac = self.bindings.hosts[link.peer_host].endpoints[far].mac
            found.append(
                {"dst": self.address(link.peer_address), "dev": link.netdev, "lladdr": mac, "state": ["REACHABLE"]}
            )
        for item in plan.neighbours if self.state == "planned" else []:
            found.append(
                {"dst": item.address, "dev": item.netdev, "lladdr": item.mac, "state": ["PERMANENT"], "protocol": "83"}
            )
        return found

    def _sysctls(self, plan: HostPlan) -> dict[str, str]:
        values = {"net/ipv4/ip_forward": "1", "net/ipv4/conf/all/forwarding": "1", "net/ipv4/conf/all/rp_filter": "2"}
        for role in ROLES:
            values |= {f"net/ipv4/conf/{role.netdev}/forwarding": "0", f"net/ipv4/conf/{role.netdev}/rp_filter": "2"}
        if self.state != "bare":
            values |= {sysctl.key: sysctl.value for sysctl in plan.sysctls}
        return values

    def _tc(self, plan: HostPlan) -> dict[str, Any]:
        made: dict[str, Any] = {role.netdev: {"qdiscs": [], "filters": []} for role in ROLES}
        for item in plan.filters if self.state == "planned" else []:
            head = {"protocol": f"[{int(item.tag, 16)}]", "pref": item.preference, "kind": "flower", "chain": 0}
            options = {
                "handle": item.handle,
                "keys": {},
                "skip_sw": True,
                "in_hw": True,
                "in_hw_count": 1,
                "actions": [],
            }
            made[item.netdev]["filters"] += [head, {**head, "options": options}]
        return made

    def _forward(self, plan: HostPlan) -> dict[str, Any]:
        accepted = [
            f'-A DOCKER-USER -i {rule.ingress} -o {rule.egress} -m comment --comment "some tool" -j ACCEPT'
            for rule in (plan.forward_rules if self.state != "bare" else [])
        ]
        rules = ["-A FORWARD -j DOCKER-USER", "-A FORWARD -j DOCKER-FORWARD", *accepted, "-A DOCKER-USER -j RETURN"]
        return {"backend": "nf_tables", "policy": "DROP", "docker_user": True, "rules": rules}

    def _network_manager(self, plan: HostPlan, bound: dict[str, Any]) -> dict[str, Any]:
        profiles = []
        for number, link in enumerate(plan.links):
            bare = self.state == "bare"
            name = f"Wired connection {number + 1}" if bare else link.profile
            profiles.append(
                {
                    "name": name,
                    "uuid": link.profile_uuid,
                    "netdev": None if bare else link.netdev,
                    "filename": f"/etc/NetworkManager/system-connections/{name}.nmconnection",
                    "active": True,
                    "active_on": link.netdev,
                    "settings": {
                        "ipv4.method": "auto" if bare else "manual",
                        "ipv4.addresses": "" if bare else self.address(link.address),
                        "ipv6.method": "link-local",
                        "ipv6.addr-gen-mode": "eui64",
                    },
                }
            )
        devices = {endpoint.netdev: "disconnected" for endpoint in bound.values()}
        devices |= {link.netdev: "connected" for link in plan.links} | {MANAGEMENT: "connected", "docker0": "unmanaged"}
        return {"running": True, "version": "1.46.0", "devices": devices, "profiles": profiles}

    @staticmethod
    def _devlink(netdev: str, bdf: str) -> dict[str, Any]:
        parameters = [
            {"name": name, "type": "driver-specific", "values": [{"cmode": mode, "value": value}]}
            for name, mode, value in (
                ("hairpin_num_queues", "driverinit", 4),
                ("hairpin_queue_size", "driverinit", 8192),
                ("flow_steering_mode", "runtime", "hmfs"),
            )
        ]
        device = {"stats": {"reload": {"driver_reinit": {"unspecified": 1}}}}
        return {
            "netdev": netdev,
            "info": {"driver": "mlx5_core", "versions": {"running": {"fw.version": "28.45.4028"}}},
            "parameters": parameters,
            "device": device,
            "eswitch": {"mode": "legacy", "inline-mode": "none", "encap-mode": "basic"},
            "hw_tc_offload": "on",
            "hairpin": hairpin_state.setting(parameters, device),
        }
