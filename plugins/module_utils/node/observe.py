"""What this host owns now, and what of others stands in the plan's way."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ..contract import documents, host_plan, marks, tags
from . import adopted, forward, hairpin, markers, objects, profiles, record, tc, units
from .host import Host
from .objects import Item

_PROTOCOL = str(marks.ROUTE_PROTOCOL)


@dataclass
class State:
    """One look at the host: the objects of ours on it and the raw facts that refusals need."""

    items: list[Item] = field(default_factory=list)
    firewall: forward.Forward = field(default_factory=forward.none)
    network_manager: profiles.NetworkManager = field(default_factory=profiles.none)
    links: dict[str, dict[str, Any]] = field(default_factory=dict)
    routes: list[dict[str, Any]] = field(default_factory=list)
    neighbours: list[dict[str, Any]] = field(default_factory=list)
    foreign_filters: list[str] = field(default_factory=list)
    ingress_qdiscs: set[str] = field(default_factory=set)
    clsact: set[str] = field(default_factory=set)
    record: record.Record = field(default_factory=record.Record)
    plan: dict[str, Any] | None = None
    marker_changed: bool = False
    granted: set[str] = field(default_factory=set)
    """Addresses that a change under way has given, or was about to take."""

    def chain(self) -> str:
        """The chain that forward rules belong in on this host."""
        return self.firewall.chain


def look(host: Host, plan: host_plan.HostPlan, whole: bool = True) -> State:
    """Observe the host. Not ``whole`` leaves out files, profiles, markers and units, as restoring does."""
    state = State(record=record.read(host))
    state.links = {entry["ifname"]: entry for entry in host.runner.json(["ip", "-j", "-d", "addr", "show"])}
    state.routes = host.runner.json(["ip", "-j", "-4", "route", "show", "table", "all"])
    state.neighbours = host.runner.json(["ip", "-j", "-4", "neigh", "show"])
    state.firewall = forward.observe(host)
    if whole:
        state.network_manager = profiles.observe(host)
        state.plan = stored_plan(host)
        state.items += _files(host)
        state.items += _binary(host, state)
        state.items += _links(state, plan)
    _traffic_control(host, state, plan)
    state.items += _sysctls(host, state, plan)
    state.items += _forward_rules(state)
    state.items += _routes(state)
    state.items += _neighbours(state)
    if whole:
        state.items += _units(host, plan)
    _name(state, plan)
    return state


def stored_plan(host: Host) -> dict[str, Any] | None:
    """The plan on the host's disk; None where there is none that can be read."""
    try:
        stored = json.loads(host.read(marks.PLAN_PATH) or "null")
    except ValueError:
        return None
    return stored if isinstance(stored, dict) and stored.get("schema") == documents.HOST_PLAN else None


def _files(host: Host) -> list[Item]:
    items = []
    unit_files = [f"{marks.UNIT_DIR}/{name}" for names in units.FILES.values() for name in names]
    for path in (marks.PLAN_PATH, marks.PROGRAM_PATH, *unit_files):
        content = host.read_bytes(path)
        if content is not None:
            items.append(objects.file_item(path, content, host.path(path).stat().st_mode & 0o7777))
    return items


def _binary(host: Host, state: State) -> list[Item]:
    if not host.path(marks.MARKER_PATH).exists():
        return []
    state.marker_changed = not markers.is_the_built_binary(host)
    body = {"path": marks.MARKER_PATH, "source": markers.build_record(host).get("source", "")}
    return [Item("file" + marks.MARKER_PATH, objects.BINARY, body)]


def ipv4_addresses(link: dict[str, Any]) -> list[str]:
    """IPv4 addresses of an ``ip -j addr`` entry, with prefix lengths."""
    return [
        f"{entry['local']}/{entry['prefixlen']}"
        for entry in link.get("addr_info", [])
        if entry.get("family") == "inet" and "local" in entry
    ]


def _links(state: State, plan: host_plan.HostPlan) -> list[Item]:
    items = []
    planned = {link.profile_uuid: link for link in plan.links}
    for profile in state.network_manager.profiles:
        if profile.uuid not in planned and profile.role is None:
            continue
        role = planned[profile.uuid].role if profile.uuid in planned else str(profile.role)
        netdev = profile.netdev or profile.active_on or ""
        link = state.links.get(netdev, {})
        body = {
            "netdev": netdev,
            "uuid": profile.uuid,
            "settings": profile.settings,
            "active": bool(netdev) and profile.active_on == netdev,
            "addresses": ipv4_addresses(link),
            "mtu": link.get("mtu"),
        }
        items.append(Item("link/" + role, objects.LINK, body))
    return items


def _traffic_control(host: Host, state: State, plan: host_plan.HostPlan) -> None:
    """Qdiscs, relay filters and software markers; two processes for all netdevs together."""
    planned = {item.netdev for item in plan.qdiscs}
    for qdisc in host.runner.json(["tc", "-j", "qdisc", "show"]):
        netdev = qdisc.get("dev", "")
        if qdisc.get("kind") == "ingress":
            state.ingress_qdiscs.add(netdev)
        if qdisc.get("kind") != "clsact":
            continue
        state.clsact.add(netdev)
        if netdev in planned or netdev in state.record.qdiscs:
            added = netdev in state.record.qdiscs
            state.items.append(Item("qdisc/" + netdev, objects.QDISC, {"netdev": netdev}, None, added))
    sides = [(netdev, side) for netdev in sorted(state.clsact) for side in ("ingress", "egress")]
    answers = host.runner.json_batch("tc", [f"filter show dev {netdev} {side}" for netdev, side in sides])
    for place, (netdev, side) in enumerate(sides):
        for entry in tc.entries(answers[place]):
            if side == "ingress":
                _ingress_filter(state, netdev, entry)
            elif not markers.in_nic(plan.driver):
                _egress_filter(state, plan, netdev, entry)
    if markers.in_nic(plan.driver):
        state.items += [_marker(body) for body in markers.running_compiled(host)]


def _ingress_filter(state: State, netdev: str, entry: dict[str, Any]) -> None:
    fields = tc.relay_filter(entry)
    ours = entry.get("pref") in objects.our_preferences()
    number = tc.protocol_number(entry.get("protocol"))
    if fields is not None and ours:
        identifier = f"filter/{netdev}/{fields['tag']}"
        state.items.append(Item(identifier, objects.FILTER, {"netdev": netdev, **fields}))
    elif ours:
        state.foreign_filters.append(
            f"{netdev} has a foreign {entry.get('kind')} filter at ingress preference {entry.get('pref')}"
        )
    elif number is not None and tags.TAG_BASE < number <= tags.TAG_BASE + tags.MAX_RELAYS:
        state.foreign_filters.append(
            f"{netdev} has another tool's filter for {tags.hexadecimal(number)}"
            f" at ingress preference {entry.get('pref')}"
        )


def _egress_filter(state: State, plan: host_plan.HostPlan, netdev: str, entry: dict[str, Any]) -> None:
    if entry.get("pref") not in markers.PREFERENCES:
        return
    fields = tc.marker_rule(entry)
    if fields is None:
        state.foreign_filters.append(
            f"{netdev} has a foreign {entry.get('kind')} filter at egress preference {entry.get('pref')}"
        )
        return
    devices = {link.netdev: link.rdma_device for link in plan.links}
    body = {"device": devices.get(netdev, netdev), **fields}
    del body["handle"]
    state.items.append(_marker(body))


def _marker(body: dict[str, Any]) -> Item:
    return Item(f"marker/{body['device']}/{body['destination']}", objects.MARKER, body)


def _sysctls(host: Host, state: State, plan: host_plan.HostPlan) -> list[Item]:
    items = []
    keys = {item.key for item in plan.sysctls} | set(state.record.sysctls)
    for key in sorted(keys):
        value = host.read("/proc/sys/" + key)
        if value is not None:
            changed = key in state.record.sysctls
            items.append(Item("sysctl/" + key, objects.SYSCTL, {"key": key, "value": value}, None, changed))
    return items


def _forward_rules(state: State) -> list[Item]:
    items = []
    for line in state.firewall.rules:
        body = forward.rule(line)
        if body is not None:
            items.append(Item(f"forward/{body['ingress']}>{body['egress']}", objects.FORWARD, body))
    return items


def _routes(state: State) -> list[Item]:
    items = []
    for route in state.routes:
        if str(route.get("protocol")) != _PROTOCOL:
            continue
        destination = route["dst"] if "/" in route["dst"] else route["dst"] + "/32"
        body = {
            "destination": destination,
            "netdev": route.get("dev", ""),
            "via": route.get("gateway"),
            "source": route.get("prefsrc"),
            "scope": route.get("scope") if route.get("scope") != "global" else None,
            "table": str(route.get("table", "main")),
            "metric": route.get("metric"),
            "kind": route.get("type", "unicast"),
        }
        mesh = destination.endswith("/32")
        identifier = "mesh-route/" + destination.removesuffix("/32") if mesh else "route/" + destination
        items.append(Item(identifier, objects.ROUTE, body, route.get("dev")))
    return items


def _neighbours(state: State) -> list[Item]:
    items = []
    for entry in state.neighbours:
        if str(entry.get("protocol")) == _PROTOCOL and "PERMANENT" in entry.get("state", []):
            body = {"address": entry["dst"], "netdev": entry["dev"], "mac": entry.get("lladdr", "")}
            items.append(Item("neighbour/" + entry["dst"], objects.NEIGHBOUR, body, entry["dev"]))
    return items


def _units(host: Host, plan: host_plan.HostPlan) -> list[Item]:
    starting = units.enabled(host)
    shown = units.show(host, sorted(set(starting) | set(plan.units)))
    items = []
    for name in sorted(set(starting) | set(plan.units)):
        active = shown.get(name, {}).get("ActiveState") in ("active", "activating", "reloading")
        if name in starting or active:
            settled = shown.get(name, {}).get("ActiveState") == "active"
            items.append(
                Item("unit/" + name, objects.UNIT, {"name": name, "enabled": name in starting, "active": settled})
            )
    return items


def _name(state: State, plan: host_plan.HostPlan) -> None:
    """Give every observed object an id of its own: the planned one's, where the plan has its like.

    Of several with one id, the one that is exactly as planned keeps it, further ones are numbered.
    """
    desired = objects.desired(plan, state.chain(), b"", None)
    planned = {item.key(): item for item in desired}
    bodies = {item.id: item.body for item in desired}
    named = []
    for item in state.items:
        like = planned.get(item.key())
        named.append(item if like is None else Item(like.id, item.kind, item.body, item.netdev, item.removable))
    named.sort(key=lambda item: item.body != bodies.get(item.id, item.body))
    seen: dict[str, int] = {}
    state.items = []
    for item in named:
        seen[item.id] = seen.get(item.id, 0) + 1
        identifier = item.id if seen[item.id] == 1 else f"{item.id}#{seen[item.id]}"
        state.items.append(Item(identifier, item.kind, item.body, item.netdev, item.removable))


def refusals(host: Host, state: State, plan: host_plan.HostPlan) -> list[str]:
    """Sentences about what must be settled by hand before anything is changed; empty is good."""
    found: list[str] = []
    found += _wrong_host(state, plan)
    if state.plan is not None and state.plan.get("ring") != plan.ring:
        found.append(f"this host belongs to ring {state.plan.get('ring')}: remove that ring from it first")
    if state.marker_changed:
        found.append(f"{marks.MARKER_PATH} is not the binary that was built here: delete it to have it built again")
    if plan.forward_rules and not state.firewall.available:
        found.append("iptables is missing or does not work here: run prepare")
    found += _occupied_links(state, plan)
    found += foreign_objects(state, plan)
    found += hairpin.refusals(host, plan)
    return found


def _wrong_host(state: State, plan: host_plan.HostPlan) -> list[str]:
    found = []
    for link in plan.links:
        entry = state.links.get(link.netdev)
        if entry is None:
            found.append(f"{link.netdev} does not exist here: compare the survey with the bindings")
        elif entry.get("address", "").lower() != link.mac.lower():
            found.append(f"{link.netdev} has MAC {entry.get('address')}, planned is {link.mac}: run rebind")
        elif entry.get("master"):
            found.append(f"{link.netdev} belongs to {entry['master']}: take it out of there first")
        if link.netdev == plan.management.netdev:
            found.append(f"{link.netdev} is the management interface and cannot be a fabric link")
    return found


def _occupied_links(state: State, plan: host_plan.HostPlan) -> list[str]:
    manager = state.network_manager
    laid = [link for link in plan.links if not link.adopted]
    if laid and not manager.running:
        return ["NetworkManager does not run here: run prepare, or start it"]
    ours = {link.profile_uuid for link in plan.links}
    ours |= {profile.uuid for profile in manager.profiles if profile.role is not None}
    found: list[str] = []
    for link in plan.links:
        entry = state.links.get(link.netdev)
        if link.adopted and entry is not None:
            found += adopted.refusals(link, entry, ipv4_addresses(entry), manager)
    for link in laid:
        if manager.devices.get(link.netdev) == "unmanaged":
            found.append(f"{link.netdev} is not managed by NetworkManager: let NetworkManager manage it")
        granted = {link.address, *state.granted}
        for profile in manager.profiles:
            here = link.netdev in (profile.active_on, profile.netdev)
            if here and profile.uuid in ours:
                granted.update(part.strip() for part in profile.settings.get("ipv4.addresses", "").split(","))
            elif here and (profile.active_on == link.netdev or profile.settings.get("connection.autoconnect") != "no"):
                found.append(
                    f"{link.netdev} has the foreign NetworkManager profile '{profile.name}':"
                    f" delete it (nmcli connection delete uuid {profile.uuid})"
                )
                granted.update(ipv4_addresses(state.links.get(link.netdev, {})))
        for address in ipv4_addresses(state.links.get(link.netdev, {})):
            if address not in granted:
                found.append(f"{link.netdev} has the foreign address {address}: remove it")
    return found


def foreign_objects(state: State, plan: host_plan.HostPlan) -> list[str]:
    """Sentences about kernel objects of others in the place of planned ones."""
    found = []
    destinations = {item.destination for item in plan.routes} | {item.destination for item in plan.mesh_routes}
    for route in state.routes:
        destination = route["dst"] if "/" in route["dst"] else route["dst"] + "/32"
        table = str(route.get("table", "main"))
        if table == "main" and destination in destinations and str(route.get("protocol")) != _PROTOCOL:
            where = f"via {route['gateway']} " if "gateway" in route else ""
            found.append(
                f"a foreign route to {destination} exists ({where}dev {route.get('dev')}"
                f" proto {route.get('protocol')}): remove it"
            )
    addresses = {item.address: item for item in plan.neighbours}
    for entry in state.neighbours:
        planned = addresses.get(entry["dst"])
        permanent = "PERMANENT" in entry.get("state", []) and str(entry.get("protocol")) != _PROTOCOL
        if planned is not None and permanent and entry["dev"] == planned.netdev:
            found.append(f"a foreign permanent neighbour {entry['dst']} exists on {entry['dev']}: remove it")
    netdevs = {item.netdev for item in plan.qdiscs}
    found += [f"{netdev} has a foreign ingress qdisc: remove it" for netdev in sorted(netdevs & state.ingress_qdiscs)]
    found += [sentence + ": remove it" for sentence in state.foreign_filters if sentence.split()[0] in netdevs]
    return found
