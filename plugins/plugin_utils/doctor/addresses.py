"""Checks of addresses, of who gives them, and of the GIDs that follow from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from ipaddress import IPv4Interface, IPv4Network, IPv6Address

from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.survey import SurveyProfile

from .registry import Found, check
from .ring import LINK_LOCAL, Node, Port, Ring

PINNED_GID = 3
"""GID index that the seed images' transports pin (facts: fabric 3)."""
SETUP = "run mesh-setup"


def listed(items: list[str]) -> str:
    """Some items in words, at most three by name."""
    return ", ".join(items[:3]) + (f" and {len(items) - 3} more" if len(items) > 3 else "")


def profile_on(node: Node, port: Port) -> SurveyProfile | None:
    """NetworkManager's profile that is up on a port."""
    return next((item for item in node.survey.networkmanager.profiles if item.active_on == port.netdev), None)


def each(ring: Ring) -> Iterator[tuple[Node, Port]]:
    """Every fabric port with its host."""
    for node in ring.nodes.values():
        for port in node.ports.values():
            yield node, port


@check("addr.missing", "warn", "links", "A cabled port has no IPv4 address though other ports of the ring have one.")
def missing(ring: Ring) -> Iterator[Found]:
    """Half addressed rings; one without any address is only not set up yet."""
    if not ring.subnets:
        return
    for node in ring.nodes.values():
        mine = [port for port in ring.cabled if port.host == node.name and port.link.carrier]
        bare = [port.netdev for port in mine if not port.addresses]
        if bare:
            yield Found(node.name, f"{node.name}: {listed(bare)} cabled, but without an IPv4 address.", f"{SETUP}.")


@check("addr.none", "info", "links", "No port of the ring has an address: it is not set up yet.")
def none(ring: Ring) -> Iterator[Found]:
    """A ring that nobody set up."""
    if any(port.link.carrier for port in ring.ports) and not any(port.addresses for port in ring.ports):
        yield Found(ring.name, f"Ring {ring.name} has no addresses yet.", f"{SETUP}.")


@check("addr.several", "fail", "links", "A fabric port has more than one IPv4 address; RoCE needs exactly one.")
def several(ring: Ring) -> Iterator[Found]:
    """Ports whose GID table holds more than one IPv4."""
    for port in ring.ports:
        if len(port.static) > 1:
            held = ", ".join(str(address) for address in port.static)
            yield Found(
                port.place,
                f"{port.place} has {len(port.static)} IPv4 addresses ({held}); a RoCE port has exactly one.",
                f"remove the one that its profile does not give: ip addr del ADDRESS dev {port.netdev}.",
            )


@check("addr.link_local", "fail", "links", "A fabric port has nothing but an automatic 169.254 address.")
def link_local(ring: Ring) -> Iterator[Found]:
    """Addresses that the next boot changes and that every port shares a network with."""
    for port in ring.ports:
        automatic = [address for address in port.addresses if address.ip in LINK_LOCAL]
        if automatic and not port.static and port.link.carrier:
            yield Found(
                port.place,
                f"{port.place} has only the automatic address {automatic[0]}, which changes from boot to boot.",
                f"{SETUP}, which gives static addresses.",
            )


@check("addr.duplicate", "fail", "links", "Two ports of the ring have the same IPv4 address.")
def duplicate(ring: Ring) -> Iterator[Found]:
    """One address on two ports."""
    first: dict[str, Port] = {}
    for port in ring.ports:
        for address in port.static:
            other = first.setdefault(str(address.ip), port)
            if other is not port:
                yield Found(
                    str(address.ip),
                    f"{address.ip} is on {other.place} and on {port.place}.",
                    f"give {port.place} another address of its cable's subnet, or {SETUP}.",
                )


@check(
    "addr.subnet_shared",
    "fail",
    "links",
    "Two ports of one host share a subnet; each function of each cable needs one.",
)
def subnet_shared(ring: Ring) -> Iterator[Found]:
    """Ports of one host in overlapping subnets."""
    for node in ring.nodes.values():
        held = [(port, address) for port in node.ports.values() for address in port.static]
        for (one, a), (other, b) in itertools.combinations(held, 2):
            if one is not other and a.network.overlaps(b.network):
                peer = ring.peer(other)
                both = f"{other.netdev} and its far end {peer.place}" if peer else other.netdev
                yield Found(
                    f"{one.place} - {other.netdev}",
                    f"{node.name}: {one.netdev} ({a}) and {other.netdev} ({b}) share the subnet {a.network}.",
                    f"move {both} to a subnet of their own; mesh-setup gives every rail one.",
                )


@check("addr.cable_prefix_mismatch", "fail", "links", "The two ends of one cable are in different subnets.")
def prefix_mismatch(ring: Ring) -> Iterator[Found]:
    """Both ends of every rail compared."""
    for port, peer in ring.rails:
        if port.static and peer.static and not {a.network for a in port.static} & {b.network for b in peer.static}:
            yield Found(
                f"{port.place} - {peer.place}",
                f"{port.place} ({port.static[0]}) and {peer.place} ({peer.static[0]}) are two ends of one cable in "
                "different subnets.",
                f"put both ends into one subnet, or {SETUP}.",
            )


def fabric_networks(ring: Ring) -> list[IPv4Network]:
    """Subnets that the ring has or shall have: planned, else present, else the supernet that a plan would take."""
    if ring.plan is not None:
        texts = [text for cable in ring.plan.cables for text in (cable.subnets.primary, cable.subnets.secondary)]
        return [IPv4Network(text) for text in texts]
    if ring.subnets:
        return list(ring.subnets)
    return [IPv4Network(ring.supernet)] if ring.supernet else []


@check(
    "addr.overlap", "fail", "links interfaces routes", "A fabric subnet overlaps a LAN, a VPN, Docker or another route."
)
def overlap(ring: Ring) -> Iterator[Found]:
    """Addresses and routes of everything that is not the fabric."""
    networks = fabric_networks(ring)
    for node in ring.nodes.values():
        told: set[tuple[str, IPv4Network]] = set()
        for netdev, words, network in _elsewhere(node):
            hit = next((item for item in networks if item.overlaps(network)), None)
            if hit is not None and (netdev, network) not in told:
                told.add((netdev, network))
                yield Found(
                    f"{node.name} {netdev}",
                    f"{node.name}: {netdev} ({words}) overlaps the fabric's {hit}.",
                    f"set another sparkring_supernet, or move {netdev} to another network.",
                )


def _elsewhere(node: Node) -> Iterator[tuple[str, str, IPv4Network]]:
    fabric = node.netdevs
    holders = [(link.netdev, link.addresses) for link in node.survey.links if link.netdev not in fabric]
    holders += [(item.netdev, item.addresses) for item in node.survey.interfaces]
    for netdev, addresses in holders:
        for address in addresses:
            yield netdev, address, IPv4Interface(address).network
    for route in node.survey.routes:
        network = route_network(route)
        if network is not None and network.prefixlen and route.get("dev", "lo") not in {*fabric, "lo"}:
            yield route["dev"], f"route to {network}", network


def route_network(route: dict[str, object]) -> IPv4Network | None:
    """Destination of an IPv4 unicast route; None for any other."""
    destination = str(route.get("dst", ""))
    if route.get("type", "unicast") != "unicast" or ":" in destination:
        return None
    if destination == "default":
        return None if ":" in str(route.get("gateway", "")) else IPv4Network("0.0.0.0/0")
    try:
        return IPv4Network(destination, strict=False)
    except ValueError:
        return None


@check(
    "addr.dhcp", "warn", "networkmanager", "A profile that asks for DHCP is up on a port and drops static addresses."
)
def dhcp(ring: Ring) -> Iterator[Found]:
    """Stock profiles on ports of a ring that has addresses; on a new ring mesh-setup takes the ports over anyway."""
    if not any(port.static for port in ring.ports):
        return
    for node, port in each(ring):
        profile = profile_on(node, port)
        if profile is not None and profile.settings.get("ipv4.method") == "auto" and port.link.carrier:
            yield Found(
                port.place,
                f"{port.place}: NetworkManager's profile '{profile.name}' asks for DHCP and drops static addresses.",
                f"{SETUP}, which takes {port.netdev} over from '{profile.name}'.",
            )


@check(
    "addr.volatile", "fail", "networkmanager networkd netplan", "A port's address is nowhere that outlives a reboot."
)
def volatile(ring: Ring) -> Iterator[Found]:
    """Addresses that only a file under /run gives, or nobody."""
    for node, port in each(ring):
        for address in port.static if node.survey.networkmanager.running else ():
            if _in_netplan(node, port, address) or port.netdev in node.survey.networkd:
                continue
            profile = profile_on(node, port)
            if profile is None:
                where = "was set by hand"
            elif (profile.filename or "").startswith("/run/"):
                where = f"stands only in {profile.filename}"
            else:
                continue
            yield Found(
                port.place,
                f"{port.place}: address {address} {where} and is lost at the next reboot.",
                f"{SETUP}, which keeps it in a profile under /etc, or write it into /etc/netplan.",
            )


def _in_netplan(node: Node, port: Port, address: IPv4Interface) -> bool:
    return any(port.netdev in item.netdevs and str(address) in item.addresses for item in node.survey.netplan)


@check("owner.two", "fail", "networkmanager networkd", "NetworkManager and systemd-networkd both configure one port.")
def two_owners(ring: Ring) -> Iterator[Found]:
    """Ports that two services configure."""
    for node, port in each(ring):
        profile, held = profile_on(node, port), node.survey.networkd.get(port.netdev)
        if profile is not None and held is not None:
            yield Found(
                port.place,
                f"{port.place} is configured by NetworkManager ('{profile.name}') and systemd-networkd ({held.file}).",
                f"remove {held.file}, or set `renderer: NetworkManager` in the netplan file that makes it.",
            )


@check(
    "owner.not_networkmanager",
    "info",
    "networkmanager networkd",
    "A port is held by something else than NetworkManager.",
)
def other_owner(ring: Ring) -> Iterator[Found]:
    """Ports that mesh-setup could not take over as they are."""
    for node in ring.nodes.values():
        held = [
            port.netdev
            for port in node.ports.values()
            if profile_on(node, port) is None
            and (
                port.netdev in node.survey.networkd
                or node.survey.networkmanager.devices.get(port.netdev) == "unmanaged"
            )
        ]
        if held:
            yield Found(
                node.name,
                f"{node.name}: NetworkManager does not manage {listed(held)}.",
                "before mesh-setup, set `renderer: NetworkManager` in netplan, or take away unmanaged-devices.",
            )


@check(
    "ipv6.mode_differs",
    "warn",
    "links",
    "Some ports have an IPv6 link-local address and others none, which moves GIDs.",
)
def ipv6_mode(ring: Ring) -> Iterator[Found]:
    """One IPv6 mode on all rails, whichever it is."""
    up = [port for port in ring.cabled if port.link.carrier and port.static]
    without = [port for port in up if not port.link.link_local]
    if without and len(without) < len(up):
        few = without if 2 * len(without) <= len(up) else [port for port in up if port.link.link_local]
        word = "no IPv6 link-local address" if few is without else "an IPv6 link-local address"
        places = listed([port.place for port in few])
        yield Found(
            ring.name,
            f"{places} {'has' if len(few) == 1 else 'have'} {word}, unlike the ring's other ports, so GIDs differ.",
            "set one ipv6.method (link-local) in all profiles, or run mesh-setup.",
        )


@check("ipv6.several", "warn", "links", "A port has more than one IPv6 link-local address, which moves its IPv4 GID.")
def ipv6_several(ring: Ring) -> Iterator[Found]:
    """Ports whose link-local address is made twice."""
    for node, port in each(ring):
        if len(port.link.link_local) > 1:
            profile = profile_on(node, port)
            name = profile.name if profile else "PROFILE"
            yield Found(
                port.place,
                f"{port.place} has {len(port.link.link_local)} IPv6 link-local addresses, which moves its IPv4 GID.",
                f"nmcli connection modify '{name}' ipv6.addr-gen-mode eui64, then nmcli connection up '{name}'.",
            )


def ipv4_gids(port: Port) -> dict[str, int]:
    """Index of each RoCE v2 GID that carries an IPv4 address of the port's netdev, by that address."""
    found = {}
    for gid in port.device.gids:
        mapped = IPv6Address(gid.gid).ipv4_mapped
        if mapped is not None and gid.type == "RoCE v2" and gid.netdev in (port.netdev, None):
            found[str(mapped)] = gid.index
    return found


@check("gid.missing", "fail", "rdma links", "A port's address has no RoCE v2 GID, so RDMA cannot use it.")
def gid_missing(ring: Ring) -> Iterator[Found]:
    """GIDs by content, not by index."""
    for port in ring.ports:
        for address in port.static:
            if port.link.carrier and str(address.ip) not in ipv4_gids(port):
                again = f"ip addr del {address} dev {port.netdev}; ip addr add {address} dev {port.netdev}"
                yield Found(
                    port.place,
                    f"{port.host} {port.device.device} has no RoCE v2 GID for {address.ip} ({port.netdev}).",
                    f"stop what holds {port.device.device}, then on {port.host}: {again}.",
                )


@check("gid.index", "info", "rdma links", "IPv4 GIDs are not at index 3, where some images' transports expect them.")
def gid_index(ring: Ring) -> Iterator[Found]:
    """Ports whose GID moved; a transport that finds it by content does not mind."""
    for node in ring.nodes.values():
        moved = [
            f"{port.device.device} at {index}"
            for port in node.ports.values()
            for address, index in ipv4_gids(port).items()
            if index != PINNED_GID and address in {str(item.ip) for item in port.static}
        ]
        if moved:
            yield Found(
                node.name,
                f"{node.name}: IPv4 GIDs are not at index {PINNED_GID}: {listed(moved)}. Only images that pin it mind.",
            )
