"""For each kind of owned object: how root on the host deletes one and alters one behind our back."""

from __future__ import annotations

from typing import Any

WRONG_MAC = "02:00:00:00:00:99"


def spoilers(plan: dict[str, Any]) -> dict[str, str]:
    """Command line by what it does, for the first object of each kind in a host's plan."""
    link, route, rule = plan["links"][0], plan["routes"][0], plan["forward_rules"][0]
    mesh, near, relay, marker = (plan[part][0] for part in ("mesh_routes", "neighbours", "filters", "marker_rules"))
    filter_words = (
        f"dev {relay['netdev']} ingress protocol {relay['tag']} pref {relay['preference']} handle {relay['handle']}"
    )
    forward = f"FORWARD -i {rule['ingress']} -o {rule['egress']} -m comment --comment sparkring.cluster -j ACCEPT"
    unit = f"sparkring-node-marker@{marker['rdma_device']}.service"
    return {
        "profile deleted": f"nmcli connection delete uuid {link['profile_uuid']}",
        "profile altered": (
            f"nmcli connection modify uuid {link['profile_uuid']} 802-3-ethernet.mtu 1500 && "
            f"nmcli connection up uuid {link['profile_uuid']}"
        ),
        "link set down": f"ip link set {link['netdev']} down",
        "address deleted": f"ip address del {link['address']} dev {link['netdev']}",
        "route deleted": f"ip route del {route['destination']} via {route['via']}",
        "route altered": f"ip route del {route['destination']} && ip route add {route['destination']} "
        f"via {route['via']} dev {route['netdev']} metric 77 proto 83",
        "sysctl altered": f"sysctl -q -w {plan['sysctls'][0]['key']}=0",
        "forward rule deleted": f"iptables -w -D {forward}",
        "mesh route deleted": f"ip route del {mesh['destination']} dev {mesh['netdev']}",
        "neighbour deleted": f"ip neigh del {near['address']} dev {near['netdev']}",
        "neighbour altered": (
            f"ip neigh replace {near['address']} lladdr {WRONG_MAC} dev {near['netdev']} nud permanent proto 83"
        ),
        "qdisc deleted": f"tc qdisc del dev {relay['netdev']} clsact",
        "filter deleted": f"tc filter del {filter_words} flower",
        "filter altered": (
            f"tc filter replace {filter_words} flower action pedit ex munge eth dst set {WRONG_MAC} pipe "
            f"action pedit ex munge eth type set {relay['set_tag']} pipe "
            f"action mirred egress redirect dev {relay['egress']}"
        ),
        "marker rule deleted": f"tc filter del dev {marker['netdev']} egress pref 41",
        "marker killed": f"systemctl kill -s KILL {unit}",
        "marker stopped": f"systemctl stop {unit}",
        "unit disabled": f"systemctl disable {unit}",
        "unit file deleted": "rm /etc/systemd/system/sparkring-node-marker@.service && systemctl daemon-reload",
    }
