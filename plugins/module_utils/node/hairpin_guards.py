"""What forbids a driver restart on this host now: each answer a sentence, no answer a refusal too.

A tool that cannot say raises HostError: what is not known to be free is in use.
"""

from __future__ import annotations

from typing import Callable

from ..contract import hairpin_state, host_plan, marks
from . import identity, objects, profiles, survey, survey_card, tc
from .commands import HostError
from .hairpin import Function
from .host import Host

PCI = "/sys/bus/pci/devices"
BUSY_UNITS = (
    marks.UNIT_PREFIX + "marker@*.service",
    marks.UNIT_PREFIX + "rank@*.service",
    # The reference tool's: its markers and meshes do not outlive a restart either.
    "sparkring-mesh.service",
    "sparkring-relay-marker.service",
)
"""Units of marker and model, as patterns for systemctl."""


def absent(host: Host, link: host_plan.Link) -> str:
    """How a function differs from its plan in PCI address, netdev, MAC or RDMA device; empty where it does not."""
    base = f"{PCI}/{link.bdf}"
    if link.bdf is None or not host.path(base).exists():
        return f"{link.netdev} is planned at PCI address {link.bdf}, which does not exist here: run rebind"
    for kind, folder, wanted in (("netdev", "net", link.netdev), ("RDMA device", "infiniband", link.rdma_device)):
        found = host.names(f"{base}/{folder}")
        if found != [wanted]:
            return f"PCI address {link.bdf} has {kind} {', '.join(found) or 'none'}, planned is {wanted}: run rebind"
    mac = host.read(f"{base}/net/{link.netdev}/address") or "none"
    if mac.lower() != link.mac.lower():
        return f"{link.netdev} has MAC {mac}, planned is {link.mac}: run rebind"
    return ""


def wrong_hardware(host: Host, plan: host_plan.HostPlan, functions: list[Function]) -> list[str]:
    """Where host or functions are not those of the plan. A function whose restart failed has no netdev to compare."""
    failed = [item for item in functions if item.judgement.state == hairpin_state.FAILED]
    found = [absent(host, item.link) for item in functions if item not in failed]
    found += [
        f"{item.link.netdev} is planned at PCI address {item.bdf}, which does not exist here: run rebind"
        for item in failed
        if not host.path(f"{PCI}/{item.bdf}").exists()
    ]
    found += [
        f"{link.netdev} is the management interface: run rebind"
        for link in plan.links
        if link.netdev == plan.management.netdev
    ]
    if not failed and identity.of(host) != plan.identity:
        found.insert(0, f"this is not {plan.host}: its identity is {identity.of(host) or 'unknown'}: run rebind")
    if failed and len(failed) == len(functions):
        found.append("the driver's restart failed on every function, and nothing tells this host: power-cycle it")
    return [sentence for sentence in found if sentence]


def active_units(host: Host) -> list[str]:
    """Units of marker and model that run, or that left processes behind."""
    command = ["systemctl", "show", "--property=Id,ActiveState,ControlGroup", *BUSY_UNITS]
    found = []
    for block in host.runner.run(command).split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        name, group = values.get("Id"), values.get("ControlGroup")
        if name is None:
            continue
        if values.get("ActiveState") not in ("inactive", "failed"):
            found.append(f"{name} is {values.get('ActiveState') or 'in no known state'}: stop it")
        elif group and host.read(f"/sys/fs/cgroup{group}/cgroup.procs"):
            found.append(f"{name} is stopped and left processes: end them")
    return found


def foreign_filters(host: Host, plan: host_plan.HostPlan) -> list[str]:
    """Ingress filters of others on fabric netdevs, which nobody would bring back."""
    found = []
    netdevs = {link.netdev for link in plan.links}
    holding = {
        qdisc.get("dev")
        for qdisc in host.runner.json(["tc", "-j", "qdisc", "show"])
        if qdisc.get("kind") in ("clsact", "ingress")
    }
    for netdev in sorted(netdevs & holding):
        for entry in tc.entries(host.runner.json(["tc", "-j", "filter", "show", "dev", netdev, "ingress"])):
            if entry.get("pref") not in objects.our_preferences():
                place = f"{entry.get('kind')} filter at ingress preference {entry.get('pref')}"
                found.append(f"{netdev} has a foreign {place}, which a restart would lose: remove it")
    return list(dict.fromkeys(found))


def rdma_users(host: Host, plan: host_plan.HostPlan) -> list[str]:
    """Processes that hold queue pairs or protection domains on fabric devices."""
    return rdma_holders(host, {link.rdma_device for link in plan.links})


def rdma_holders(host: Host, devices: set[str]) -> list[str]:
    """Processes that hold queue pairs or protection domains on these devices, each a sentence."""
    holders: dict[tuple[int, str], set[str]] = {}
    for kind in ("qp", "pd"):
        for entry in survey_card.entries(host.runner.json(["rdma", "-j", "resource", "show", kind])):
            device, process = str(entry.get("ifname", "")).partition("/")[0], entry.get("pid")
            if device in devices and process:
                holders.setdefault((int(process), str(entry.get("comm") or "?")), set()).add(device)
    return [
        f"process {process} ({name}) uses {', '.join(sorted(used))}: stop it"
        for (process, name), used in sorted(holders.items())
    ]


def gpu_processes(host: Host) -> list[str]:
    """Processes that compute on the GPU; none where it has no driver."""
    if host.find_tool("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader"]
    rows = [line.split(",", 1) for line in host.runner.run(command).splitlines() if "," in line]
    return [f"process {row[0].strip()} ({row[1].strip()}) computes on the GPU: stop it" for row in rows]


def session(host: Host, plan: host_plan.HostPlan) -> list[str]:
    """The fabric link over which the session that runs this came in, if any."""
    own = survey.ssh_address(host)
    if own is None:
        return []
    own = own.partition("%")[0]
    netdevs = {link.netdev for link in plan.links}
    for entry in host.runner.json(["ip", "-j", "-d", "addr", "show"]):
        if entry["ifname"] in netdevs and any(item.get("local") == own for item in entry.get("addr_info", [])):
            return [f"this session comes in by {entry['ifname']} ({own}), which a restart cuts: use another way in"]
    return []


def unbound_profiles(host: Host, plan: host_plan.HostPlan) -> list[str]:
    """Fabric netdevs whose addresses NetworkManager would not bring back by itself."""
    manager = profiles.observe(host)
    active = {profile.active_on: profile for profile in manager.profiles if profile.active_on}
    entries = {entry["ifname"]: entry for entry in host.runner.json(["ip", "-j", "-d", "addr", "show"])}
    found = []
    for link in plan.links:
        profile = active.get(link.netdev)
        addressed = [item for item in entries.get(link.netdev, {}).get("addr_info", []) if item.get("family") == "inet"]
        if profile is None:
            if addressed:
                found.append(f"{link.netdev} has an address that no NetworkManager profile brings back: give it one")
        elif profile.settings.get("connection.autoconnect") != "yes":
            found.append(
                f"the NetworkManager profile '{profile.name}' of {link.netdev} does not connect by itself:"
                f" nmcli connection modify uuid {profile.uuid} connection.autoconnect yes"
            )
        elif profile.netdev != link.netdev and _profile_mac(host, profile.uuid) != link.mac.lower():
            found.append(
                f"the NetworkManager profile '{profile.name}' is not bound to {link.netdev}:"
                f" nmcli connection modify uuid {profile.uuid} connection.interface-name {link.netdev}"
            )
    return found


def _profile_mac(host: Host, uuid: str) -> str:
    field = "802-3-ethernet.mac-address"
    return host.runner.run(["nmcli", "-e", "no", "-g", field, "connection", "show", "uuid", uuid]).strip().lower()


def refusals(host: Host, plan: host_plan.HostPlan, live: bool) -> list[str]:
    """All that forbids a restart now of functions that are those of the plan; what cannot be asked forbids it too."""
    questions: list[Callable[[], list[str]]] = [
        lambda: active_units(host),
        lambda: foreign_filters(host, plan),
        lambda: rdma_users(host, plan),
    ]
    if live:
        questions += [
            lambda: gpu_processes(host),
            lambda: session(host, plan),
            lambda: unbound_profiles(host, plan),
        ]
    found = []
    for question in questions:
        try:
            found += question()
        except HostError as error:
            found.append(str(error))
    return found
