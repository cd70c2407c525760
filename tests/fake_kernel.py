"""A host in memory: answers the node library's commands as ip, tc, iptables, nmcli and systemd do.

Files lie below a directory, which stands for ``/``. Units run the library's own code. Whatever it
does not know, it refuses loudly, so that a new command of the library needs a new answer here.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import fabric, glance, markers, units
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import Completed, HostError, Runner
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host

TEXTS = [list(command) for command in glance.COMMANDS if command[0] != "iptables"]
"""Questions whose answers are compared and not understood."""
READING = (("-j",), ("show",), ("-S",), ("-V",), ("status",), ("is-active",), ("--version",))


@dataclass
class Link:
    """One netdev of the simulated host."""

    mac: str
    mtu: int = 1500
    carrier: bool = True
    up: bool = True
    master: str | None = None
    addresses: list[str] = field(default_factory=list)
    link_locals: int = 1


@dataclass
class FakeKernel(Runner):
    """One simulated host.

    ``kept_masks`` chooses how tc prints pedit masks; ``in_hw`` whether the card takes filters.
    """

    root: Path
    links: dict[str, Link]
    kept_masks: bool = True
    in_hw: bool = True
    autoconnects: bool = True
    docker: bool = False
    routes: list[dict[str, Any]] = field(default_factory=list)
    neighbours: list[dict[str, Any]] = field(default_factory=list)
    qdiscs: dict[str, str] = field(default_factory=dict)
    filters: list[dict[str, Any]] = field(default_factory=list)
    rules: list[str] = field(default_factory=list)
    profiles: dict[str, dict[str, str]] = field(default_factory=dict)
    active: dict[str, str] = field(default_factory=dict)
    unmanaged: list[str] = field(default_factory=list)
    running: set[str] = field(default_factory=set)
    unreachable: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Lay the files that a kernel shows."""
        for position, (netdev, link) in enumerate(sorted(self.links.items())):
            device = self.root / f"sys/class/net/{netdev}/device"
            device.mkdir(parents=True)
            (device.parent / "speed").write_text("-1\n")
            self.set_carrier(netdev, link.carrier)
            for name, value in (("forwarding", "0"), ("rp_filter", "2")):
                self.file(f"proc/sys/net/ipv4/conf/{netdev}/{name}", value)
            rdma = self.root / f"sys/class/infiniband/{rdma_name(netdev)}"
            (rdma / "ports/1").mkdir(parents=True)
            (rdma / "parent").write_text(netdev + "\n")
            (rdma / "node_guid").write_text(f"5054:00ff:fe00:{position:04x}\n")
        self.file("proc/sys/net/ipv4/ip_forward", "0")
        self.file("proc/sys/kernel/hostname", "spark0")
        for target in ("multi-user", "timers"):
            (self.root / marks.UNIT_DIR.lstrip("/") / f"{target}.target.wants").mkdir(parents=True, exist_ok=True)

    def file(self, path: str, text: str) -> None:
        """Write a file below the root."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n")

    def set_carrier(self, netdev: str, carrier: bool) -> None:
        """Plug or pull a cable."""
        self.links[netdev].carrier = carrier
        self.file(f"sys/class/net/{netdev}/carrier", "1" if carrier else "0")

    def host(self) -> Host:
        """The library's view of this host."""
        return Host(self, self.root, lambda name: None if "nvidia" in name else "/usr/bin/" + name, lambda device: 4096)

    def changing(self) -> list[str]:
        """Commands so far that may have changed something."""
        return [line for line in self.log if not line.startswith("read: ")]

    # Dispatch ---------------------------------------------------------------------------------

    def execute(self, command: Sequence[str], stdin: str | None, timeout: float) -> Completed:
        """Answer one command."""
        words = list(command)
        reading = words[0] in ("ping", "lldpctl") or any(mark[0] in words[1:] for mark in READING)
        reading = reading or (stdin or "").startswith("filter show ")
        self.log.append(("read: " if reading else "") + " ".join(words) + ("\n" + stdin if stdin else ""))
        if words in TEXTS:
            return Completed(0, self.text(), "")
        answer = getattr(self, "_" + words[0].replace("-", "_"), None)
        if answer is None:
            return Completed(127, "", f"{words[0]} is not installed")
        try:
            if stdin is not None and "-j" in words:
                answers = [json.dumps(answer(["-j", *line.split()])) for line in stdin.splitlines()]
                return Completed(0, "\n".join(answers) + "\n", "")
            if stdin is not None:
                forced = words[1] == "-force"
                assert words[1 + forced :] == ["-batch", "-"], words
                refused = []
                for number, line in enumerate(stdin.splitlines(), 1):
                    try:
                        answer(line.split())
                    except Refusal as error:
                        refused.append(f"{error}\nCommand failed -:{number}\n")
                        if not forced:
                            break
                return Completed(1 if refused else 0, "", "".join(refused))
            output = answer(words[1:])
        except Refusal as error:
            return Completed(error.status, "", str(error) + "\n")
        return Completed(0, output if isinstance(output, str) else json.dumps(output), "")

    # ip ---------------------------------------------------------------------------------------

    def _ip(self, words: list[str]) -> Any:
        if words[:2] == ["-j", "-d"] and words[2:] == ["addr", "show"]:
            return [self._address_entry(netdev) for netdev in self.links]
        if words in (["-j", "-4", "route", "show", "table", "all"], ["-j", "route", "show", "table", "all"]):
            return self.routes
        if words in (["-j", "-4", "neigh", "show"], ["-j", "neigh", "show"]):
            return self.neighbours
        if words == ["-j", "-6", "neigh", "show"]:
            return []
        if words[:1] == ["route"]:
            return self._change_route(words[1], words[2:])
        if words[:1] == ["address"]:
            return self._change_address(words[1], words[2:])
        if words[:1] == ["neigh"]:
            return self._change_neighbour(words[1], words[2:])
        raise AssertionError(f"ip {words}")

    def _address_entry(self, netdev: str) -> dict[str, Any]:
        link = self.links[netdev]
        entry: dict[str, Any] = {
            "ifname": netdev,
            "address": link.mac,
            "mtu": link.mtu,
            "flags": [*(["UP"] if link.up else []), *([] if link.carrier or not link.up else ["NO-CARRIER"])],
            "operstate": "UP" if link.carrier and link.up else "DOWN",
        }
        if link.master:
            entry["master"] = link.master
        entry["addr_info"] = [
            {
                "family": "inet",
                "local": address.split("/")[0],
                "prefixlen": int(address.split("/")[1]),
                "scope": "global",
            }
            for address in link.addresses
        ]
        entry["addr_info"] += [
            {"family": "inet6", "local": f"fe80::{number}", "prefixlen": 64, "scope": "link"}
            for number in range(1, 1 + link.link_locals)
        ]
        return entry

    def text(self) -> str:
        """Something that differs when anything of the kernel differs."""
        shown = (self.links, self.routes, self.neighbours, self.qdiscs, self.filters, self.rules, self.active)
        return repr((shown, sorted(self.running)))

    def _change_address(self, verb: str, words: list[str]) -> str:
        address, netdev = words[0], words[-1]
        if verb == "del":
            self.links[netdev].addresses.remove(address)
            network = ipaddress.ip_interface(address).network
            self.routes[:] = [
                route
                for route in self.routes
                if route["dev"] != netdev
                or (
                    not (
                        route["dst"] == str(network) or ipaddress.ip_address(route.get("gateway", "0.0.0.0")) in network
                    )
                    and route.get("prefsrc") != address.split("/")[0]
                )
            ]
        else:
            self._hold(netdev, address)
        self.announce(netdev)
        return ""

    def _hold(self, netdev: str, address: str) -> None:
        self.links[netdev].addresses.append(address)
        network = ipaddress.ip_interface(address).network
        self.routes.append({"dst": str(network), "dev": netdev, "protocol": "kernel", "scope": "link", "flags": []})

    def announce(self, netdev: str) -> None:
        """Make the GID table of the device above a netdev hold its addresses."""
        port = self.root / f"sys/class/infiniband/{rdma_name(netdev)}/ports/1"
        for folder in ("gids", "gid_attrs"):
            shutil.rmtree(port / folder, ignore_errors=True)
        for index, address in enumerate(self.links[netdev].addresses, 2):
            mapped = ipaddress.IPv6Address("::ffff:" + address.split("/")[0]).exploded
            for folder, text in (("gids", mapped), ("gid_attrs/types", "RoCE v2"), ("gid_attrs/ndevs", netdev)):
                (port / folder).mkdir(parents=True, exist_ok=True)
                (port / folder / str(index)).write_text(text + "\n")

    def _change_route(self, verb: str, words: list[str]) -> str:
        route: dict[str, Any] = {"protocol": "boot", "flags": []}
        if words[0] == "unicast":
            words = words[1:]
        route["dst"] = words[0].removesuffix("/32")
        names = {
            "via": "gateway",
            "dev": "dev",
            "src": "prefsrc",
            "proto": "protocol",
            "scope": "scope",
            "metric": "metric",
        }
        for option, value in pairs(words[1:]).items():
            route[names[option]] = value
        same = [old for old in self.routes if old["dst"] == route["dst"] and old.get("table", "main") == "main"]
        if verb == "del":
            found = [old for old in same if all(old.get(name) == route[name] for name in route if name != "flags")]
            if not found:
                raise Refusal("RTNETLINK answers: No such process", 2)
            self.routes.remove(found[0])
            return ""
        assert verb == "add", verb
        if same:
            raise Refusal("RTNETLINK answers: File exists", 2)
        subnets = [ipaddress.ip_interface(address).network for address in self.links[route["dev"]].addresses]
        if "gateway" in route and not any(ipaddress.ip_address(route["gateway"]) in subnet for subnet in subnets):
            raise Refusal("Error: Nexthop has invalid gateway.", 2)
        if "prefsrc" in route and not any(route["prefsrc"] in held for held in self.links[route["dev"]].addresses):
            raise Refusal("Error: Invalid prefsrc address.", 2)
        self.routes.append(route)
        return ""

    def _change_neighbour(self, verb: str, words: list[str]) -> str:
        options = pairs(words[1:])
        same = [old for old in self.neighbours if (old["dst"], old["dev"]) == (words[0], options["dev"])]
        if verb == "del":
            if not same:
                raise Refusal("RTNETLINK answers: No such file or directory", 2)
            self.neighbours.remove(same[0])
            return ""
        assert verb == "replace" and options["nud"] == "permanent", words
        self.neighbours[:] = [old for old in self.neighbours if old not in same]
        self.neighbours.append(
            {
                "dst": words[0],
                "dev": options["dev"],
                "lladdr": options["lladdr"],
                "state": ["PERMANENT"],
                "protocol": options["proto"],
            }
        )
        return ""

    def _rdma(self, words: list[str]) -> Any:
        if words[:3] == ["-j", "resource", "show"]:
            return []
        assert words == ["-j", "link", "show"], words
        return [{"ifname": rdma_name(netdev), "netdev": netdev, "state": "ACTIVE"} for netdev in self.links]

    def _lldpctl(self, words: list[str]) -> Any:
        return {"lldp": {}}

    def _docker(self, words: list[str]) -> str:
        return "Docker version 29.2.1, build x\n"

    def _ping(self, words: list[str]) -> str:
        if words[-1] in self.unreachable:
            raise Refusal("")
        return ""

    # tc ---------------------------------------------------------------------------------------

    def _tc(self, words: list[str]) -> Any:
        if words == ["-j", "qdisc", "show"]:
            return [{"kind": kind, "handle": "ffff:", "dev": dev} for dev, kind in self.qdiscs.items()]
        if words[:5] == ["-j", "filter", "show", "dev", words[4]]:
            return self._show_filters(words[4], words[5])
        if words[:2] == ["filter", "show"]:
            return json.dumps(self._show_filters(words[3], words[4]))
        if words[:2] == ["qdisc", "add"]:
            if words[3] in self.qdiscs:
                raise Refusal("Error: Exclusivity flag on, cannot modify.", 2)
            self.qdiscs[words[3]] = words[4]
            return ""
        if words[:2] == ["qdisc", "del"]:
            del self.qdiscs[words[3]]
            self.filters[:] = [item for item in self.filters if item["dev"] != words[3]]
            return ""
        if words[:2] in (["filter", "add"], ["filter", "del"]):
            return self._change_filter(words[1], words[3], words[4], words[5:])
        raise AssertionError(f"tc {words}")

    def _show_filters(self, netdev: str, side: str) -> list[dict[str, Any]]:
        printed = []
        for item in self.filters:
            if (item["dev"], item["side"]) == (netdev, side):
                head = {"protocol": item["protocol"], "pref": item["pref"], "kind": item["kind"], "chain": 0}
                printed += [head, {**head, "options": item["options"]}]
        return printed

    def _change_filter(self, verb: str, netdev: str, side: str, words: list[str]) -> str:
        assert words[0] == "protocol" and words[2] == "pref" and words[4] == "handle" and words[6] == "flower", words
        protocol = "ip" if words[1] == "ip" else f"[{int(words[1], 16)}]"
        place = {"dev": netdev, "side": side, "protocol": protocol, "pref": int(words[3]), "kind": "flower"}
        handle = int(words[5])
        same = [
            item
            for item in self.filters
            if all(item[name] == place[name] for name in place) and item["options"]["handle"] == handle
        ]
        if verb == "del":
            if not same:
                raise Refusal("RTNETLINK answers: No such file or directory", 2)
            self.filters.remove(same[0])
            return ""
        if self.qdiscs.get(netdev) != "clsact":
            raise Refusal("Error: Parent Qdisc doesn't exists.", 2)
        if same or any(
            item["dev"] == netdev
            and item["side"] == side
            and item["pref"] == place["pref"]
            and (item["protocol"], item["kind"]) != (protocol, "flower")
            for item in self.filters
        ):
            raise Refusal("RTNETLINK answers: File exists", 2)
        self.filters.append({**place, "options": self._flower(handle, protocol, words[7:])})
        return ""

    def _flower(self, handle: int, protocol: str, words: list[str]) -> dict[str, Any]:
        options: dict[str, Any] = {"handle": handle, "keys": {}}
        if protocol == "ip":
            options["keys"]["eth_type"] = "ipv4"
        if words[0] == "skip_sw":
            words = words[1:]
            options["skip_sw"] = True
            if not self.in_hw:
                raise Refusal("RTNETLINK answers: Operation not supported", 2)
            options.update({"in_hw": True, "in_hw_count": 1})
        else:
            options["not_in_hw"] = True
        while words[0] != "action":
            options["keys"][words[0]] = int(words[1]) if words[0] == "dst_port" else words[1]
            words = words[2:]
        actions: list[dict[str, Any]] = []
        while words:
            end = words.index("action", 1) if "action" in words[1:] else len(words)
            actions.append({"order": len(actions) + 1, **self._action(words[1:end])})
            words = words[end:]
        return {**options, "actions": actions}

    def _action(self, words: list[str]) -> dict[str, Any]:
        control = {
            "control_action": {"type": "pipe" if words[-1] == "pipe" else "pass"},
            "index": 1,
            "ref": 1,
            "bind": 1,
        }
        if words[0] == "mirred":
            assert words[1:4] == ["egress", "redirect", "dev"], words
            return {"kind": "mirred", "mirred_action": "redirect", "direction": "egress", "to_dev": words[4], **control}
        assert words[:4] == ["pedit", "ex", "munge", "eth"] and words[5] == "set", words
        if words[4] == "dst":
            data = bytes.fromhex(words[6].replace(":", ""))
            keys = [self._key(0, data[:4], 4), self._key(4, data[4:], 2)]
        else:
            keys = [self._key(12, int(words[6], 16).to_bytes(2, "big"), 2)]
        return {"kind": "pedit", **control, "nkeys": len(keys), "keys": keys}

    def _key(self, offset: int, data: bytes, size: int) -> dict[str, Any]:
        kept = 0xFFFFFFFF >> (8 * size)
        mask = kept if self.kept_masks else kept ^ 0xFFFFFFFF
        value = int.from_bytes(data.ljust(4, b"\0"), "big")
        return {"htype": "eth", "offset": offset, "cmd": "set", "val": f"{value:x}", "mask": f"{mask:x}"}

    # iptables ---------------------------------------------------------------------------------

    def _iptables(self, words: list[str]) -> str:
        if words == ["-V"]:
            return "iptables v1.8.9 (nf_tables)\n"
        if words == ["-w", "-S"]:
            chains = ["-N DOCKER-USER"] if self.docker else []
            lines = ["-P INPUT ACCEPT", "-P FORWARD DROP", "-P OUTPUT ACCEPT", *chains, *self.rules]
            return "".join(line.replace("sparkring.cluster", '"sparkring.cluster"') + "\n" for line in lines)
        if words[:2] == ["-w", "-I"]:
            assert words[3] == "1", words
            self.rules.insert(0, f"-A {words[2]} " + " ".join(words[4:]))
            return ""
        if words[:2] == ["-w", "-D"]:
            line = f"-A {words[2]} " + " ".join(words[3:])
            if line not in self.rules:
                raise Refusal("iptables: Bad rule (does a matching rule exist in that chain?).")
            self.rules.remove(line)
            return ""
        raise AssertionError(f"iptables {words}")

    # NetworkManager ---------------------------------------------------------------------------

    def add_profile(self, name: str, netdev: str, active: bool = False, autoconnect: str = "yes") -> str:
        """A profile of someone else."""
        identifier = str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
        base = {"connection.id": name, "connection.interface-name": netdev, "connection.autoconnect": autoconnect}
        self.profiles[identifier] = base
        if active:
            self.active[netdev] = identifier
        return identifier

    def _nmcli(self, words: list[str]) -> str:
        if words[:2] == ["--wait", words[1]]:
            words = words[2:]
        if words == ["-t", "-f", "VERSION", "general", "status"]:
            return "1.42.4\n"
        if words == ["-t", "-f", "DEVICE,STATE", "device", "status"]:
            state = {True: "unmanaged", False: "connected"}
            return "".join(f"{netdev}:{state[netdev in self.unmanaged]}\n" for netdev in self.links)
        if words == ["-t", "-f", "DEVICE,STATE,CON-UUID", "device", "status"]:
            return "".join(
                f"{netdev}:{'connected' if netdev in self.active else 'disconnected'}:{self.active.get(netdev, '')}\n"
                for netdev in self.links
            )
        if words == ["-t", "-f", "UUID,TYPE,DEVICE,FILENAME,NAME", "connection", "show"]:
            return "lo-uuid:loopback:lo:/run/lo:lo\n" + "".join(self._profile_row(item) for item in self.profiles)
        if words[:4] == ["-t", "-e", "no", "-f"] and words[5:7] == ["connection", "show"]:
            blocks = [self._profile_block(item, words[4].split(",")) for item in words[8::2]]
            return "\n".join(blocks)
        if words[:4] == ["connection", "add", "type", "ethernet"]:
            return self._write_profile(None, words[4:])
        if words[:3] == ["connection", "modify", "uuid"]:
            return self._write_profile(words[3], words[4:])
        if words[:3] == ["connection", "up", "uuid"]:
            return self._up(words[3])
        if words[:3] == ["connection", "delete", "uuid"]:
            for item in words[3::2]:
                self._delete_profile(item)
            return ""
        raise AssertionError(f"nmcli {words}")

    def _profile_row(self, item: str) -> str:
        name = self.profiles[item]["connection.id"]
        device = next((netdev for netdev, held in self.active.items() if held == item), "")
        path = f"/etc/NetworkManager/system-connections/{name}.nmconnection"
        return ":".join([item, "802-3-ethernet", device, path.replace(":", "\\:"), name.replace(":", "\\:")]) + "\n"

    def _profile_block(self, item: str, names: list[str]) -> str:
        values = {"connection.uuid": item, **self.profiles[item]}
        return "".join(f"{name}:{values.get(name, '')}\n" for name in names)

    def _write_profile(self, item: str | None, words: list[str]) -> str:
        settings = pairs(words)
        if item is None:
            item = settings.pop("connection.uuid")
            settings["connection.interface-name"] = settings.pop("ifname")
            settings["connection.id"] = settings.pop("con-name")
            assert item not in self.profiles
            self.profiles[item] = {}
            self.profiles[item].update(settings)
            if self.autoconnects and self.links[settings["connection.interface-name"]].carrier:
                self._up(item)
        self.profiles[item].update(settings)
        return ""

    def _up(self, item: str) -> str:
        settings = self.profiles[item]
        netdev = settings["connection.interface-name"]
        if not self.links[netdev].carrier:
            raise Refusal("Error: Connection activation failed: No suitable device found", 4)
        self._down(netdev)
        self.active[netdev] = item
        link = self.links[netdev]
        link.up = True
        link.mtu = int(settings["802-3-ethernet.mtu"])
        for address in settings["ipv4.addresses"].split(", "):
            self._hold(netdev, address)
        self.announce(netdev)
        return ""

    def _down(self, netdev: str) -> None:
        self.active.pop(netdev, None)
        self.links[netdev].addresses = []
        self.announce(netdev)
        self.links[netdev].mtu = 1500
        self.routes[:] = [route for route in self.routes if route["dev"] != netdev]

    def _delete_profile(self, item: str) -> None:
        del self.profiles[item]
        for netdev in [netdev for netdev, held in self.active.items() if held == item]:
            self._down(netdev)

    # The compiler -----------------------------------------------------------------------------

    def _cc(self, words: list[str]) -> str:
        assert words[:3] == ["-O2", "-Wall", "-Wextra"] and words[-2:] == ["-libverbs", "-lmlx5"], words
        Path(words[5]).write_bytes(b"built from " + Path(words[3]).read_bytes())
        return ""

    # systemd ----------------------------------------------------------------------------------

    def _systemctl(self, words: list[str]) -> str:
        verb, names = words[0], [word for word in words[1:] if word not in ("--no-reload", "--no-block")]
        if verb == "show":
            return "\n".join(
                f"Id={name}\nActiveState={'active' if name in self.running else 'inactive'}\nMainPID=0\n"
                for name in names[1:]
            )
        if verb == "is-active":
            return "active" if self.docker else "inactive"
        if verb == "daemon-reload":
            return ""
        for name in names:
            if verb in ("enable", "disable"):
                self._enable(name, verb == "enable")
            if verb in ("stop", "restart"):
                self._stop(name)
            if verb in ("start", "restart"):
                self._start(name)
        assert verb in ("enable", "disable", "stop", "start", "restart"), words
        return ""

    def _enable(self, name: str, wanted: bool) -> None:
        template = marks.MARKER_UNIT_TEMPLATE if units.is_marker(name) else name
        target = self.root / marks.UNIT_DIR.lstrip("/") / template
        wanting = units.WANTS_DIRECTORIES[2 if units.is_marker(name) else 1 if name.endswith(".timer") else 0]
        link = self.root / wanting.lstrip("/") / name
        if not wanted:
            link.unlink()
            return
        if not target.exists():
            raise Refusal(f"Failed to enable unit: Unit file {name} does not exist.")
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            os.symlink(target, link)

    def plan(self) -> HostPlan:
        """The plan that lies on this host."""
        return HostPlan.from_plain(json.loads((self.root / marks.PLAN_PATH.lstrip("/")).read_text()))

    def _start(self, name: str) -> None:
        try:
            if units.is_marker(name) and self.plan().driver == "mlx5":
                self._start_compiled(units.marker_device(name))
            elif units.is_marker(name):
                markers.lay_software(self.host(), markers.planned(self.host(), units.marker_device(name))[1])
            elif name.endswith(".timer"):
                assert (self.root / marks.UNIT_DIR.lstrip("/") / name).exists(), name
            else:
                fabric.restore(self.host(), self.plan(), 0.0)
        except HostError as error:
            raise Refusal(f"Job for {name} failed: {error}") from error
        self.running.add(name)

    def _start_compiled(self, device: str) -> None:
        words = [marks.MARKER_PATH, "--device", device]
        for rule in markers.planned(self.host(), device)[1]:
            words += ["--rule", f"{rule.destination}={rule.tag}"]
        self.file(f"proc/{self._process(device)}/cmdline", "\0".join([*words, "--managed", ""]))

    def _process(self, device: str) -> int:
        return 1000 + sum(device.encode())

    def _stop(self, name: str) -> None:
        if name not in self.running:
            return
        self.running.discard(name)
        if units.is_marker(name) and self.plan().driver == "mlx5":
            folder = self.root / f"proc/{self._process(units.marker_device(name))}"
            (folder / "cmdline").unlink()
            folder.rmdir()
        elif units.is_marker(name):
            for rule in markers.planned(self.host(), units.marker_device(name))[1]:
                markers.take_software(self.host(), rule.netdev, {rule.destination})

    # The host's life --------------------------------------------------------------------------

    def reboot(self) -> None:
        """Lose what a reboot loses, then start as systemd would: profiles, fabric, markers."""
        for netdev in self.links:
            self._down(netdev)
            for name, value in (("forwarding", "0"), ("rp_filter", "2")):
                self.file(f"proc/sys/net/ipv4/conf/{netdev}/{name}", value)
        for held in (self.routes, self.neighbours, self.filters, self.rules):
            held.clear()
        self.qdiscs.clear()
        self.running.clear()
        for path in (self.root / marks.RUN_DIR.lstrip("/")).glob("*"):
            path.unlink()
        for item, settings in self.profiles.items():
            if self.links[settings["connection.interface-name"]].carrier:
                self._up(item)

    def start_units(self) -> list[str]:
        """Start what is enabled; the sentences of those that fail."""
        failed = []
        for name in sorted(units.enabled(self.host()), key=units.is_marker):
            try:
                self._start(name)
            except Refusal as error:
                failed.append(str(error))
        return failed

    def memory(self) -> dict[str, Any]:
        """Everything that a change could have touched, for comparing before with after."""
        files = {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() or path.is_symlink()
        }

        def order(entry: object) -> str:
            return json.dumps(entry, sort_keys=True)

        return {
            "files": files,
            "folders": sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_dir()),
            "links": {name: vars(link).copy() for name, link in self.links.items()},
            "routes": sorted(self.routes, key=order),
            "neighbours": sorted(self.neighbours, key=order),
            "qdiscs": dict(self.qdiscs),
            "filters": sorted(self.filters, key=order),
            "rules": list(self.rules),
            "profiles": json.loads(json.dumps(self.profiles)),
            "active": dict(self.active),
            "running": sorted(self.running),
        }


class Refusal(Exception):
    """A simulated tool says no."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


def rdma_name(netdev: str) -> str:
    """Name of the RDMA device above a netdev with a DGX OS name."""
    return netdev.replace("en", "roce", 1).rpartition("np")[0]


def pairs(words: list[str]) -> dict[str, str]:
    """Options and values in turn, as a mapping."""
    assert len(words) % 2 == 0, words
    return {words[place]: words[place + 1] for place in range(0, len(words), 2)}
