"""The part of the survey that is about the ConnectX card: driver settings, cable modules, PCIe lanes, users."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..contract import hairpin_state
from . import hairpin_journal
from .commands import CommandFailed
from .host import Host

MLX5 = "mlx5_core"
MODULE = {
    "Identifier": "identifier",
    "Connector": "connector",
    "Vendor name": "vendor",
    "Vendor PN": "part",
    "Length (Copper or Active cable)": "length",
    "Length (Copper)": "length",
}
"""What ``ethtool -m`` says of a cable, and what the survey calls it; serial numbers are left out."""


def answer(host: Host, command: list[str]) -> Any:
    """JSON of a tool that may be missing or have nothing to say."""
    try:
        return host.runner.json(command)
    except CommandFailed:
        return []


def _functions(links: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [link for link in links if link["driver"] == MLX5 and link["bdf"]]


def devlink(host: Host, links: list[dict[str, Any]]) -> dict[str, Any]:
    """Driver settings of each ConnectX function, hairpin and its evidence included."""
    return {link["bdf"]: function(host, link["bdf"], link["netdev"]) for link in _functions(links)}


def function(host: Host, bdf: str, netdev: str) -> dict[str, Any]:
    """Driver settings of one function."""
    handle = "pci/" + bdf
    offload = host.runner.execute(["ethtool", "-k", netdev], None, 20).output
    line = next((line for line in offload.splitlines() if line.strip().startswith("hw-tc-offload:")), "")
    parameters = _of_device(host, ["devlink", "-j", "dev", "param", "show", handle])
    device = _of_device(host, ["devlink", "-s", "-j", "dev", "show", handle])
    hairpin = hairpin_state.setting(parameters, device)
    hairpin["restart_owed"] = hairpin_journal.owed(host, bdf, hairpin["driver_restarts"])
    return {
        "netdev": netdev,
        "info": _of_device(host, ["devlink", "-j", "dev", "info", handle]),
        "parameters": parameters,
        "device": device,
        "eswitch": _of_device(host, ["devlink", "-j", "dev", "eswitch", "show", handle]),
        "hw_tc_offload": line.partition(":")[2].strip() or None,
        "hairpin": hairpin,
    }


def _of_device(host: Host, command: list[str]) -> Any:
    """Answer about one device: devlink wraps it in its kind and the device's handle."""
    found = answer(host, command)
    for _ in range(2):
        found = next(iter(found.values())) if isinstance(found, dict) and found else {}
    return found


def modules(host: Host, links: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """What is plugged into each ConnectX function's port, as its EEPROM says; needs root."""
    netdevs = [link["netdev"] for link in _functions(links)]
    if not netdevs:
        return {}
    with ThreadPoolExecutor(max_workers=len(netdevs)) as pool:
        read = list(pool.map(lambda netdev: host.runner.execute(["ethtool", "-m", netdev], None, 20), netdevs))
    found = {}
    for netdev, done in zip(netdevs, read):
        said: dict[str, str] = {}
        for line in done.output.splitlines() if done.status == 0 else []:
            name, _, value = line.partition(":")
            if name.strip() in MODULE and value.strip():
                said.setdefault(MODULE[name.strip()], value.strip())
        if said:
            found[netdev] = said
    return found


def pcie(host: Host, netdev: str) -> dict[str, Any] | None:
    """Speed and lanes of a device's PCIe link, now and at most; None where it is not on a bus."""
    base = f"/sys/class/net/{netdev}/device/"
    speed = host.read(base + "current_link_speed")
    if speed is None:
        return None
    return {
        "speed": speed,
        "width": host.read_integer(base + "current_link_width"),
        "max_speed": host.read(base + "max_link_speed"),
        "max_width": host.read_integer(base + "max_link_width"),
    }


def entries(printed: Any) -> list[dict[str, Any]]:
    """Entries of an answer of ``rdma -j resource show``, which versions of iproute2 nest differently."""
    if isinstance(printed, dict):
        return [printed]
    return [entry for item in printed for entry in entries(item)] if isinstance(printed, list) else []


def users(host: Host) -> list[dict[str, Any]]:
    """Queue pairs that processes hold, by RDMA device; the kernel's own are left out."""
    found = []
    for pair in entries(answer(host, ["rdma", "-j", "resource", "show", "qp"])):
        if pair.get("pid"):
            found.append({name: pair.get(name) for name in ("ifname", "pid", "comm", "type", "state")})
    return found
