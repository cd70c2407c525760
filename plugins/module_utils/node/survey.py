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
from . import forward, identity, profiles
from .commands import CommandFailed
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
    "disk",
    "ipv6_neighbours",
    "lldp",
    "memory.available_kib",
    "memory.total_kib",
    "neighbours",
)
"""Fields that differ between two surveys of a host on which nothing was changed.

The memory in total is one: a kernel keeps some pages more or fewer for itself from boot to boot.
"""


def stable(survey: dict[str, Any]) -> dict[str, Any]:
    """A survey without its unstable fields, to compare a host before setup with it after removal.

    Routes are sorted: the kernel lists those of one destination in the order in which links came up.
    """
    kept: dict[str, Any] = json.loads(json.dumps(survey))
    for path in UNSTABLE_FIELDS:
        *parents, last = path.split(".")
        place = kept
        for name in parents:
            place = place[name]
        del place[last]
    kept["routes"].sort(key=lambda route: json.dumps(route, sort_keys=True))
    return kept


def take(host: Host, management_interface: str | None = None) -> dict[str, Any]:
    """Observe this host. A tool that is missing leaves its part empty."""
    addresses = host.runner.json(["ip", "-j", "-d", "addr", "show"])
    links = _links(host, addresses)
    rdma = _rdma(host)
    return {
        "schema": documents.SURVEY,
        "hostname": host.read("/proc/sys/kernel/hostname") or platform.node(),
        "identity": identity.of(host),
        "management": _management(host, addresses, management_interface),
        "links": links,
        "rdma": rdma,
        "lldp": _lldp(host),
        "ipv6_neighbours": _ipv6_neighbours(host, links, rdma),
        "routes": host.runner.json(["ip", "-j", "route", "show", "table", "all"]),
        "neighbours": host.runner.json(["ip", "-j", "neigh", "show"]),
        "sysctls": _sysctls(host, links),
        "tc": _traffic_control(host, links),
        "forward": _forward(host),
        "docker": _docker(host),
        "networkmanager": _network_manager(host),
        "devlink": _devlink(host, links),
        "kernel": _kernel(host),
        "memory": _memory(host),
        "disk": _disk(host),
        "gpu": _gpu(host),
        "tools": {name: host.find_tool(name) for name in TOOLS},
    }


def _answer(host: Host, command: list[str]) -> Any:
    """JSON of a tool that may be missing or have nothing to say."""
    try:
        return host.runner.json(command)
    except CommandFailed:
        return []


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
                "addresses": [f"{item['local']}/{item['prefixlen']}" for item in _addresses(entry, "inet")],
                "link_local": [item["local"] for item in _addresses(entry, "inet6", "link")],
            }
        )
    return sorted(links, key=lambda link: str(link["netdev"]))


def _rdma(host: Host) -> list[dict[str, Any]]:
    netdevs = {entry.get("ifname"): entry.get("netdev") for entry in _answer(host, ["rdma", "-j", "link", "show"])}
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
                "gids": gids(host, device),
            }
        )
    return found


def _after_colon(text: str | None) -> str | None:
    return None if text is None else text.rpartition(":")[2].strip()


def gids(host: Host, device: str) -> list[dict[str, Any]]:
    """GID table of port 1 of an RDMA device, empty entries left out."""
    port = f"{identity.RDMA_CLASS}/{device}/ports/1"
    found = []
    for index in sorted(int(name) for name in host.names(port + "/gids") if name.isdigit()):
        gid = host.read(f"{port}/gids/{index}")
        if gid and gid.strip("0:"):
            found.append(
                {
                    "index": index,
                    "gid": gid,
                    "type": host.read(f"{port}/gid_attrs/types/{index}"),
                    "netdev": host.read(f"{port}/gid_attrs/ndevs/{index}"),
                }
            )
    return found


def _management(host: Host, addresses: list[dict[str, Any]], wanted: str | None) -> dict[str, Any] | None:
    serving = None if wanted else _ssh_address(host)
    for entry in addresses:
        for item in _addresses(entry, "inet"):
            if entry["ifname"] == wanted or (serving is not None and item["local"] == serving):
                return {"netdev": entry["ifname"], "address": item["local"], "prefix": item["prefixlen"]}
    return None


def _ssh_address(host: Host) -> str | None:
    """This host's own address in the ssh session that started us, found in our ancestors."""
    process: int | None = os.getpid()
    while process and process > 0:
        environment = host.read_bytes(f"/proc/{process}/environ") or b""
        for setting in environment.split(b"\0"):
            if setting.startswith(b"SSH_CONNECTION="):
                words = setting.decode(errors="replace").partition("=")[2].split()
                return words[2] if len(words) == 4 else None
        found = re.search(r"^PPid:\s*(\d+)", host.read(f"/proc/{process}/status") or "", re.MULTILINE)
        process = int(found.group(1)) if found else None
    return None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _lldp(host: Host) -> list[dict[str, Any]]:
    """LLDP neighbours; lldpctl gives a mapping where there is one of a thing and a list for more."""
    answer = _answer(host, ["lldpctl", "-f", "json"])
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


def _ipv6_neighbours(host: Host, links: list[dict[str, Any]], rdma: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Link-local neighbours of the RDMA netdevs, after asking all nodes on each link to answer."""
    carried = {device["netdev"] for device in rdma}
    asked = [link["netdev"] for link in links if link["netdev"] in carried and link["carrier"]]
    if not asked:
        return []
    with ThreadPoolExecutor(max_workers=len(asked)) as pool:
        list(pool.map(lambda netdev: _ask_all_nodes(host, netdev), asked))
    found = []
    for entry in _answer(host, ["ip", "-j", "-6", "neigh", "show"]):
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
    for qdisc in _answer(host, ["tc", "-j", "qdisc", "show"]):
        qdiscs.setdefault(qdisc.get("dev", ""), []).append(qdisc)
    result = {}
    for link in links:
        netdev = link["netdev"]
        filters = []
        if any(qdisc.get("kind") in ("clsact", "ingress") for qdisc in qdiscs.get(netdev, [])):
            filters += _answer(host, ["tc", "-j", "filter", "show", "dev", netdev, "ingress"])
            if any(qdisc.get("kind") == "clsact" for qdisc in qdiscs[netdev]):
                filters += _answer(host, ["tc", "-j", "filter", "show", "dev", netdev, "egress"])
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


def _docker(host: Host) -> dict[str, Any]:
    if host.find_tool("docker") is None:
        return {"installed": False, "running": False, "version": None}
    version = re.search(r"version ([^,\s]+)", host.runner.execute(["docker", "--version"], None, 20).output)
    active = host.runner.execute(["systemctl", "is-active", "docker.service"], None, 20)
    return {
        "installed": True,
        "running": active.output.strip() == "active",
        "version": version.group(1) if version else None,
    }


def _network_manager(host: Host) -> dict[str, Any]:
    seen = profiles.observe(host)
    done = host.runner.execute(["nmcli", "-t", "-f", "VERSION", "general", "status"], None, 30)
    return {
        "running": seen.running,
        "version": done.output.strip() if done.status == 0 else None,
        "devices": seen.devices,
        "profiles": [
            {
                "name": profile.name,
                "uuid": profile.uuid,
                "netdev": profile.netdev,
                "filename": profile.filename,
                "active": profile.active_on is not None,
            }
            for profile in seen.profiles
        ],
    }


def _devlink(host: Host, links: list[dict[str, Any]]) -> dict[str, Any]:
    """Driver settings of each ConnectX function, hairpin and its evidence included."""
    result = {}
    for link in links:
        if link["driver"] != "mlx5_core" or not link["bdf"]:
            continue
        handle = "pci/" + link["bdf"]
        offload = host.runner.execute(["ethtool", "-k", link["netdev"]], None, 20).output
        line = next((line for line in offload.splitlines() if line.strip().startswith("hw-tc-offload:")), "")
        parameters = _of_device(host, ["devlink", "-j", "dev", "param", "show", handle])
        device = _of_device(host, ["devlink", "-s", "-j", "dev", "show", handle])
        result[link["bdf"]] = {
            "netdev": link["netdev"],
            "info": _of_device(host, ["devlink", "-j", "dev", "info", handle]),
            "parameters": parameters,
            "device": device,
            "eswitch": _of_device(host, ["devlink", "-j", "dev", "eswitch", "show", handle]),
            "hw_tc_offload": line.partition(":")[2].strip() or None,
            "hairpin": hairpin(parameters, device),
        }
    return result


def _of_device(host: Host, command: list[str]) -> Any:
    """Answer about one device: devlink wraps it in its kind and the device's handle."""
    answer = _answer(host, command)
    for _ in range(2):
        answer = next(iter(answer.values())) if isinstance(answer, dict) and answer else {}
    return answer


def hairpin(parameters: Any, device: Any) -> dict[str, Any]:
    """The hairpin settings, and whether the driver was restarted since they were last the default.

    ``param show`` also prints values that only the next restart brings into effect, so the count of
    restarts and a failed one belong to the state (facts: fabric 5.6).
    """
    values = {}
    for parameter in parameters if isinstance(parameters, list) else []:
        for value in parameter.get("values", []):
            if value.get("cmode") == "driverinit":
                values[parameter.get("name")] = value.get("value")
    device = device if isinstance(device, dict) else {}
    reloads = device.get("stats", {}).get("reload", {}).get("driver_reinit", {}).get("unspecified", 0)
    return {
        "queue_size": values.get("hairpin_queue_size"),
        "num_queues": values.get("hairpin_num_queues"),
        "driver_restarts": reloads,
        "restart_failed": bool(device.get("reload_failed")),
    }


def _kernel(host: Host) -> dict[str, Any]:
    release = host.read("/etc/os-release") or ""
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)"?', release, re.MULTILINE)
    return {
        "release": host.read("/proc/sys/kernel/osrelease") or platform.release(),
        "os": name.group(1) if name else None,
        "machine": platform.machine(),
    }


def _memory(host: Host) -> dict[str, Any]:
    text = host.read("/proc/meminfo") or ""
    values = {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    return {"total_kib": values.get("MemTotal"), "available_kib": values.get("MemAvailable")}


def _disk(host: Host) -> list[dict[str, Any]]:
    found = []
    for line in (host.read("/proc/mounts") or "").splitlines():
        source, mount = line.split()[:2]
        if not source.startswith("/dev/") and mount != "/":
            continue
        try:
            size = os.statvfs(host.path(mount))
        except OSError:
            continue
        unit = size.f_frsize
        found.append(
            {"mount": mount, "size_kib": size.f_blocks * unit // 1024, "free_kib": size.f_bavail * unit // 1024}
        )
    return found


def _gpu(host: Host) -> list[str]:
    if host.find_tool("nvidia-smi") is None:
        return []
    done = host.runner.execute(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], None, 30)
    return [line.strip() for line in done.output.splitlines() if line.strip()] if done.status == 0 else []
