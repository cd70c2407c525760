"""The survey: what is on this host, raw and without judgement."""

from __future__ import annotations

import ipaddress
import json
import os
import platform
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..contract import documents
from . import forward, gid, identity, survey_card, survey_system
from .host import Host

TOOLS = (
    "cc",
    "devlink",
    "ethtool",
    "ib_write_bw",
    "ip",
    "iptables",
    "lldpctl",
    "nmcli",
    "ping",
    "rdma",
    "sysctl",
    "systemctl",
    "systemd-run",
    "tc",
)

UNSTABLE_FIELDS = (
    "clock",
    "disk",
    "ipv6_neighbours",
    "lldp",
    "memory",
    "neighbours",
    "previous_boot",
    "users",
)
"""Fields that differ between two surveys of a host on which nothing was changed.

Even the memory in total is one: a kernel keeps some pages more or fewer for itself from boot to boot.
"""

WITHOUT_ROOT = ("forward", "lldp", "modules", "netplan", "previous_boot")
"""Parts that stay empty, or may be incomplete, where the survey is not taken as root."""


def stable(survey: dict[str, Any]) -> dict[str, Any]:
    """A survey without its unstable fields, to compare a host before setup with it after removal.

    Routes are sorted: the kernel lists those of one destination in the order in which links came up.
    """
    kept: dict[str, Any] = json.loads(json.dumps(survey))
    for name in UNSTABLE_FIELDS:
        del kept[name]
    kept["routes"].sort(key=lambda route: json.dumps(route, sort_keys=True))
    return kept


def take(host: Host, management_interface: str | None = None, root: bool | None = None) -> dict[str, Any]:
    """Observe this host. A tool that is missing leaves its part empty, and so does a lack of root.

    ``root`` says whether this is root; by default the process is asked.
    """
    addresses = host.runner.json(["ip", "-j", "-d", "addr", "show"])
    links = _links(host, addresses)
    rdma = _rdma(host)
    asked = _asked(links, rdma)
    root = os.geteuid() == 0 if root is None else root
    with ThreadPoolExecutor(max_workers=max(1, len(asked))) as pool:
        answers = [pool.submit(_ask_all_nodes, host, netdev) for netdev in asked]
        seen = {
            "schema": documents.SURVEY,
            "hostname": host.read("/proc/sys/kernel/hostname") or platform.node(),
            "identity": identity.of(host),
            "machine_id": survey_system.machine_id(host),
            "privilege": {"root": root, "unread": [] if root else list(WITHOUT_ROOT)},
            "clock": survey_system.clock(),
            "management": _management(host, addresses, management_interface),
            "links": links,
            "interfaces": _interfaces(addresses, links),
            "rdma": rdma,
            "users": survey_card.users(host),
            "lldp": _lldp(host),
            "routes": host.runner.json(["ip", "-j", "route", "show", "table", "all"]),
            "neighbours": host.runner.json(["ip", "-j", "neigh", "show"]),
            "sysctls": _sysctls(host, links),
            "tc": _traffic_control(host, links),
            "forward": _forward(host),
            "docker": survey_system.docker(host),
            "networkmanager": survey_system.network_manager(host),
            "networkd": survey_system.networkd(host, {entry["ifname"]: entry.get("ifindex", 0) for entry in addresses}),
            "netplan": survey_system.netplan(host, [link["netdev"] for link in links]),
            "devlink": survey_card.devlink(host, links),
            "modules": survey_card.modules(host, links),
            "kernel": survey_system.kernel(host),
            "previous_boot": survey_system.previous_boot(host),
            "memory": survey_system.memory(host),
            "disk": survey_system.disk(host),
            "gpu": survey_system.gpu(host),
            "tools": {name: host.find_tool(name) for name in TOOLS},
        }
        for given in answers:
            given.result()
    seen["ipv6_neighbours"] = _ipv6_neighbours(host, asked)
    return seen


def _addresses(entry: dict[str, Any], family: str, scope: str | None = None) -> list[dict[str, Any]]:
    return [
        item
        for item in entry.get("addr_info", [])
        if item.get("family") == family and "local" in item and scope in (None, item.get("scope"))
    ]


def _links(host: Host, addresses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    links = []
    for entry in addresses:
        netdev = entry["ifname"]
        base = f"/sys/class/net/{netdev}"
        if not host.path(base + "/device").exists():
            continue
        uevent = dict(
            line.split("=", 1) for line in (host.read(base + "/device/uevent") or "").splitlines() if "=" in line
        )
        speed = host.read_integer(base + "/speed")
        links.append(
            {
                "netdev": netdev,
                "mac": entry.get("address", ""),
                "mtu": entry.get("mtu"),
                "operstate": entry.get("operstate", "").lower(),
                "carrier": host.read(base + "/carrier") == "1",
                "speed_mbps": speed if speed is not None and speed > 0 else None,
                "driver": host.link_name(base + "/device/driver"),
                "bdf": uevent.get("PCI_SLOT_NAME"),
                "master": entry.get("master"),
                "phys_port_name": host.read(base + "/phys_port_name"),
                "wireless": host.path(base + "/wireless").exists(),
                "pcie": survey_card.pcie(host, netdev),
                "addresses": [f"{item['local']}/{item['prefixlen']}" for item in _addresses(entry, "inet")],
                "link_local": [item["local"] for item in _addresses(entry, "inet6", "link")],
            }
        )
    return sorted(links, key=lambda link: str(link["netdev"]))


def _interfaces(addresses: list[dict[str, Any]], links: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Interfaces without a device below them that hold IPv4 addresses: bridges of Docker, tunnels, VLANs."""
    devices = {link["netdev"] for link in links}
    found = []
    for entry in addresses:
        held = [f"{item['local']}/{item['prefixlen']}" for item in _addresses(entry, "inet")]
        if held and entry["ifname"] not in devices and "LOOPBACK" not in entry.get("flags", []):
            kind = entry.get("linkinfo", {}).get("info_kind")
            found.append({"netdev": entry["ifname"], "kind": kind, "addresses": held})
    return sorted(found, key=lambda item: str(item["netdev"]))


def _rdma(host: Host) -> list[dict[str, Any]]:
    netdevs = {
        entry.get("ifname"): entry.get("netdev") for entry in survey_card.answer(host, ["rdma", "-j", "link", "show"])
    }
    found = []
    for device in host.names(identity.RDMA_CLASS):
        base = f"{identity.RDMA_CLASS}/{device}"
        port = base + "/ports/1"
        # Soft-RoCE names the netdev below it in a file; a card has a bus device with a driver.
        driver = "rdma_rxe" if host.read(base + "/parent") else host.link_name(base + "/device/driver")
        found.append(
            {
                "device": device,
                "netdev": netdevs.get(device) or host.read(port + "/gid_attrs/ndevs/0"),
                "node_guid": host.read(base + "/node_guid"),
                "driver": driver,
                "firmware": host.read(base + "/fw_ver"),
                "state": _after_colon(host.read(port + "/state")),
                "link_layer": host.read(port + "/link_layer"),
                "active_mtu": host.port_mtu(device),
                "gids": gid.table(host, device),
            }
        )
    return found


def _after_colon(text: str | None) -> str | None:
    return None if text is None else text.rpartition(":")[2].strip()


def _management(host: Host, addresses: list[dict[str, Any]], wanted: str | None) -> dict[str, Any] | None:
    serving = None if wanted else ssh_address(host)
    for entry in addresses:
        for item in _addresses(entry, "inet"):
            if entry["ifname"] == wanted or (serving is not None and item["local"] == serving):
                return {"netdev": entry["ifname"], "address": item["local"], "prefix": item["prefixlen"]}
    return None


def ssh_address(host: Host) -> str | None:
    """This host's own address in the ssh session that started us."""
    words = ssh_connection(host)
    return words[2] if words else None


def ssh_connection(host: Host) -> list[str] | None:
    """Client address and port, own address and port of the ssh session that started us, found in our ancestors."""
    process: int | None = os.getpid()
    while process and process > 0:
        environment = host.read_bytes(f"/proc/{process}/environ") or b""
        for setting in environment.split(b"\0"):
            if setting.startswith(b"SSH_CONNECTION="):
                words = setting.decode(errors="replace").partition("=")[2].split()
                return words if len(words) == 4 else None
        found = re.search(r"^PPid:\s*(\d+)", host.read(f"/proc/{process}/status") or "", re.MULTILINE)
        process = int(found.group(1)) if found else None
    return None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _lldp(host: Host) -> list[dict[str, Any]]:
    """LLDP neighbours; lldpctl gives a mapping where there is one of a thing and a list for more."""
    answer = survey_card.answer(host, ["lldpctl", "-f", "json"])
    interfaces = answer.get("lldp", {}).get("interface") if isinstance(answer, dict) else None
    found = []
    for interface in _as_list(interfaces):
        for netdev, row in interface.items():
            chassis, port = row.get("chassis", {}), row.get("port", {})
            name = None
            if "id" not in chassis and len(chassis) == 1:
                name, chassis = next(iter(chassis.items()))
            found.append(
                {
                    "netdev": netdev,
                    "chassis_name": name,
                    "chassis_id": chassis.get("id", {}).get("value"),
                    "port_id": port.get("id", {}).get("value"),
                    "port_descr": port.get("descr"),
                }
            )
    return sorted(found, key=lambda row: (row["netdev"], str(row["port_id"])))


def _asked(links: list[dict[str, Any]], rdma: list[dict[str, Any]]) -> list[str]:
    """RDMA netdevs with a carrier, on which all nodes are asked to answer."""
    carried = {device["netdev"] for device in rdma}
    return [link["netdev"] for link in links if link["netdev"] in carried and link["carrier"]]


def _ipv6_neighbours(host: Host, asked: list[str]) -> list[dict[str, Any]]:
    """Link-local neighbours that answered on the netdevs where all nodes were asked."""
    found = []
    for entry in survey_card.answer(host, ["ip", "-j", "-6", "neigh", "show"]) if asked else []:
        failed = {"FAILED", "INCOMPLETE"} & set(entry.get("state", []))
        answered = entry.get("dev") in asked and "lladdr" in entry and not failed
        if answered and ipaddress.ip_address(entry["dst"]).is_link_local:
            found.append({"netdev": entry["dev"], "address": entry["dst"], "mac": entry["lladdr"]})
    return sorted(found, key=lambda row: (row["netdev"], row["address"]))


def _ask_all_nodes(host: Host, netdev: str) -> None:
    host.runner.execute(["ping", "-6", "-n", "-q", "-w", "2", "-I", netdev, "ff02::1"], None, 10)


def _sysctls(host: Host, links: list[dict[str, Any]]) -> dict[str, str]:
    keys = ["net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding", "net/ipv4/conf/all/rp_filter"]
    for link in links:
        keys += [f"net/ipv4/conf/{link['netdev']}/{name}" for name in ("forwarding", "rp_filter")]
        keys += [f"net/ipv6/conf/{link['netdev']}/{name}" for name in ("disable_ipv6", "mtu")]
    values = {key: host.read("/proc/sys/" + key) for key in keys}
    return {key: value for key, value in values.items() if value is not None}


def _traffic_control(host: Host, links: list[dict[str, Any]]) -> dict[str, Any]:
    qdiscs: dict[str, list[Any]] = {}
    for qdisc in survey_card.answer(host, ["tc", "-j", "qdisc", "show"]):
        qdiscs.setdefault(qdisc.get("dev", ""), []).append(qdisc)
    result = {}
    for link in links:
        netdev = link["netdev"]
        filters = []
        if any(qdisc.get("kind") in ("clsact", "ingress") for qdisc in qdiscs.get(netdev, [])):
            filters += survey_card.answer(host, ["tc", "-j", "filter", "show", "dev", netdev, "ingress"])
            if any(qdisc.get("kind") == "clsact" for qdisc in qdiscs[netdev]):
                filters += survey_card.answer(host, ["tc", "-j", "filter", "show", "dev", netdev, "egress"])
        result[netdev] = {"qdiscs": qdiscs.get(netdev, []), "filters": filters}
    return result


def _forward(host: Host) -> dict[str, Any]:
    seen = forward.observe(host)
    done = host.runner.execute(["iptables", "-V"], None, 10)
    backend = re.search(r"\((\w+)\)", done.output)
    return {
        "backend": backend.group(1) if backend else None,
        "policy": seen.policy or None,
        "docker_user": seen.docker_user,
        "rules": seen.rules,
    }
