"""A host whose card takes a hairpin setting: answers devlink, ethtool, rdma and nvidia-smi besides.

The shapes of devlink's and rdma's answers are written from the facts and from iproute2's source, not
recorded on hardware. Time passes only when the library sleeps or a restart takes it.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan
from ansible_collections.sparkring.cluster.plugins.module_utils.node import hairpin_run, units
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import Completed, HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host
from tests.fake_kernel import FakeKernel, Link, Refusal, rdma_name

DEFAULTS = {"hairpin_num_queues": 2, "hairpin_queue_size": 1024}
WANTED = {"hairpin_num_queues": 4, "hairpin_queue_size": 8192}
DOWN_SECONDS = 6.0
ADDRESS_SECONDS = 2.0

GOOD = "good"
ERRS_BUT_DONE = "errs, and was restarted"
REFUSES = "refuses"
FAILS = "fails, and says so"
NO_RISE = "says good, and was not restarted"
HANGS = "hangs"
STAYS_AWAY = "its netdev does not return"
RENAMED = "its netdev returns under another name"
NO_ADDRESS = "its address does not return"
NO_ADDRESS_UNASKED = "its address returns when asked for"
NO_OFFLOAD = "it returns without offload"
NO_ANSWER = "devlink is silent afterwards"


class PowerCut(Exception):
    """The host loses power, or the program is killed."""


@dataclass
class Function:
    """One function of the card: values that devlink shows, and those that the driver uses."""

    bdf: str
    netdev: str
    shown: dict[str, int] = field(default_factory=lambda: dict(DEFAULTS))
    used: dict[str, int] = field(default_factory=lambda: dict(DEFAULTS))
    restarts: int = 0
    failed: bool = False
    silent: bool = False
    offload: str = "on"
    steering: str = "hmfs"
    eswitch: dict[str, str] = field(
        default_factory=lambda: {"mode": "legacy", "inline-mode": "none", "encap-mode": "basic"}
    )

    def probe(self) -> None:
        """The driver is loaded: defaults, no restart yet."""
        self.shown, self.used = dict(DEFAULTS), dict(DEFAULTS)
        self.restarts, self.failed, self.silent = 0, False, False


class CutHost(Host):
    """A host whose writes count as events after which power may be cut."""

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Replace a file."""
        super().write(path, data, mode)
        assert isinstance(self.runner, FakeCard)
        self.runner.event("write " + path)

    def remove(self, path: str) -> None:
        """Remove a file."""
        super().remove(path)
        assert isinstance(self.runner, FakeCard)
        self.runner.event("remove " + path)


@dataclass
class FakeCard(FakeKernel):
    """One simulated host with a card; ``cut_after`` is the number of events after which power is cut."""

    functions: dict[str, Function] = field(default_factory=dict)
    behaviour: dict[str, str] = field(default_factory=dict)
    old_iproute2: bool = False
    resources: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"qp": [], "pd": []})
    gpu: list[str] | None = None
    busy: dict[str, tuple[str, str]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    boots: int = 1
    now: float = 0.0
    later: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    events: int = 0
    cut_after: int | None = None
    before_change: Callable[[str, list[str]], None] | None = None
    absent: dict[str, Link] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Lay what a card shows."""
        super().__post_init__()
        for netdev in self.links:
            domain, port = ("0002" if "P2" in netdev else "0000"), netdev[-1]
            bdf = f"{domain}:01:00.{port}"
            self.functions[bdf] = Function(bdf, netdev)
            base = self.root / f"sys/bus/pci/devices/{bdf}"
            (base / f"infiniband/{rdma_name(netdev)}").mkdir(parents=True)
            self.file(f"sys/bus/pci/devices/{bdf}/net/{netdev}/address", self.links[netdev].mac)
            self.file(f"sys/class/net/{netdev}/device/uevent", f"PCI_SLOT_NAME={bdf}")
            (self.root / f"sys/class/net/{netdev}/device/driver").symlink_to(
                self.root / "sys/bus/pci/drivers/mlx5_core"
            )
        self.file("sys/bus/pci/drivers/mlx5_core", "")
        self._boot_id()

    def _boot_id(self) -> None:
        self.file("proc/sys/kernel/random/boot_id", f"boot-{self.boots}")

    def bdf(self, netdev: str) -> str:
        """PCI address of a netdev."""
        return next(item.bdf for item in self.functions.values() if item.netdev == netdev)

    def host(self) -> Host:
        """The library's view of this host."""

        def find_tool(name: str) -> str | None:
            return None if name == "nvidia-smi" and self.gpu is None else "/usr/bin/" + name

        return CutHost(self, self.root, find_tool, lambda device: 4096)

    def clock(self) -> hairpin_run.Clock:
        """The time of this host."""
        return hairpin_run.Clock(lambda: self.now, self.sleep)

    def sleep(self, seconds: float) -> None:
        """Let time pass, and happen what was to happen in it."""
        self.now += seconds
        due = [item for item in self.later if item[0] <= self.now]
        self.later[:] = [item for item in self.later if item[0] > self.now]
        for _, action in due:
            action()

    def event(self, what: str) -> None:
        """Something was done; the power may be cut after it."""
        self.events += 1
        if self.cut_after is not None and self.events > self.cut_after:
            self.cut_after = None
            raise PowerCut(what)

    def truly(self) -> bool:
        """Whether the driver uses the wanted values on every function."""
        return all(item.used == WANTED and item.offload == "on" for item in self.functions.values())

    def altering(self) -> list[str]:
        """Commands so far that may have changed something."""
        asking = ("ethtool -k", "nvidia-smi", "nmcli -e no -g")
        return [line for line in self.changing() if not line.startswith(asking)]

    # Commands ---------------------------------------------------------------------------------

    def execute(self, command: Sequence[str], stdin: str | None, timeout: float) -> Completed:
        """Answer one command."""
        words = list(command)
        if words[0] in self.broken:
            return Completed(1, "", f"{words[0]} is broken")
        if words[:2] == ["devlink", "dev"] and self.before_change:
            self.before_change(self._function(words).bdf, words)
        done = super().execute(command, stdin, timeout)
        self.event(" ".join(words))
        return done

    def outlasting(self, command: Sequence[str], timeout: float) -> Completed:
        """Answer one command that may hang."""
        if self.behaviour.get(self._function(list(command)).bdf) == HANGS:
            self.log.append(" ".join(command))
            if self.before_change:
                self.before_change(self._function(list(command)).bdf, list(command))
            self.sleep(timeout)
            self._function(list(command)).silent = True
            self.event(" ".join(command))
            return Completed(124, "", f"no answer within {timeout:g} s")
        return self.execute(command, None, timeout)

    def _function(self, words: list[str]) -> Function:
        handle = next(word for word in words if word.startswith("pci/"))
        return self.functions[handle.removeprefix("pci/")]

    def _devlink(self, words: list[str]) -> Any:
        function = self._function(words)
        handle = "pci/" + function.bdf
        if function.silent:
            raise Refusal("kernel answers: No such device")
        asked = [word for word in words if word != handle]
        if asked == ["-j", "dev", "param", "show"]:
            return {"param": {handle: self._parameters(function)}}
        if asked == ["-s", "-j", "dev", "show"]:
            return {"dev": {handle: self._statistics(function)}}
        if asked == ["-j", "dev", "info"]:
            return {"info": {handle: {"driver": "mlx5_core", "versions": {"running": {"fw.version": "28.45.4028"}}}}}
        if asked == ["-j", "dev", "eswitch", "show"]:
            return {"dev": {handle: dict(function.eswitch)}}
        if asked[:4] == ["dev", "param", "set", "name"]:
            return self._set(function, asked[4:])
        if asked == ["dev", "reload", "action", "driver_reinit"]:
            return self._reload(function)
        raise AssertionError(f"devlink {words}")

    def _parameters(self, function: Function) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        values: dict[str, Any] = {"flow_steering_mode": function.steering, **function.shown}
        for name, value in values.items():
            mode = "runtime" if name == "flow_steering_mode" else "driverinit"
            entry = {"cmode": mode, "value": str(value) if self.old_iproute2 else value}
            if not self.old_iproute2 and name in DEFAULTS:
                entry["default"] = DEFAULTS[name]
            rows.append({"name": name, "type": "driver-specific", "values": [entry]})
        permanent = {"cmode": "permanent", "value": True}
        return [*rows, {"name": "enable_sriov", "type": "generic", "values": [permanent]}]

    def _statistics(self, function: Function) -> dict[str, Any]:
        counts: dict[str, Any] = {"driver_reinit": {"unspecified": function.restarts}}
        if not self.old_iproute2:
            counts["fw_activate"] = {"unspecified": 0, "no_reset": 0}
        shown: dict[str, Any] = {"stats": {"reload": counts, "remote_reload": {"driver_reinit": {"unspecified": 7}}}}
        return {"reload_failed": True, **shown} if function.failed else shown

    def _set(self, function: Function, words: list[str]) -> str:
        name, value = words[0], words[2]
        assert words[1] == "value" and words[3:] == ["cmode", "driverinit"], words
        if self.behaviour.get(function.bdf) == "set " + name:
            raise Refusal("kernel answers: Invalid argument")
        function.shown[name] = int(value)
        return ""

    def _reload(self, function: Function) -> str:
        how = self.behaviour.get(function.bdf, GOOD)
        self.sleep(1.0)
        if how == REFUSES:
            raise Refusal("kernel answers: Device or resource busy")
        if how == NO_RISE:
            return ""
        self._away(function)
        if how == FAILS:
            function.failed = True
            raise Refusal("kernel answers: Input/output error")
        function.used, function.failed = dict(function.shown), False
        function.restarts += 1
        if how == NO_OFFLOAD:
            function.offload = "off"
        if how == NO_ANSWER:
            function.silent = True
        if how not in (STAYS_AWAY, NO_ANSWER):
            self.later.append((self.now + DOWN_SECONDS, lambda: self._back(function, how)))
        if how == ERRS_BUT_DONE:
            raise Refusal("kernel answers: Connection timed out")
        return ""

    def _hidden(self, function: Function) -> list[tuple[Path, Path]]:
        device = rdma_name(function.netdev)
        shown = [
            f"sys/class/net/{function.netdev}",
            f"sys/class/infiniband/{device}",
            f"sys/bus/pci/devices/{function.bdf}/net/{function.netdev}",
            f"sys/bus/pci/devices/{function.bdf}/infiniband/{device}",
        ]
        away = self.root.parent / (self.root.name + ".away")
        return [(self.root / path, away / path) for path in shown]

    def _away(self, function: Function) -> None:
        netdev = function.netdev
        if function.failed:
            return
        self._down(netdev)
        self.absent[netdev] = self.links.pop(netdev)
        self.qdiscs.pop(netdev, None)
        self.filters[:] = [item for item in self.filters if item["dev"] != netdev]
        self.neighbours[:] = [item for item in self.neighbours if item["dev"] != netdev]
        for path, place in self._hidden(function):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, place)

    def _back(self, function: Function, how: str) -> None:
        netdev = function.netdev
        folder = self.root / f"sys/bus/pci/devices/{function.bdf}/net"
        shutil.rmtree(folder / "eth0", ignore_errors=True)
        if how == RENAMED:
            (folder / "eth0").mkdir()
            return
        self.links[netdev] = self.absent.pop(netdev)
        for path, place in self._hidden(function):
            shutil.move(place, path)
        for name, value in (("forwarding", "0"), ("rp_filter", "2")):
            self.file(f"proc/sys/net/ipv4/conf/{netdev}/{name}", value)
        if how not in (NO_ADDRESS, NO_ADDRESS_UNASKED):
            self.later.append((self.now + ADDRESS_SECONDS, lambda: self._connect(netdev)))

    def _connect(self, netdev: str) -> None:
        for item, settings in self.profiles.items():
            wanted = settings.get("connection.interface-name") == netdev and "ipv4.addresses" in settings
            if wanted and self.links[netdev].carrier and netdev not in self.active:
                self._up(item)

    def _up(self, item: str) -> str:
        said = super()._up(item)
        netdev = self.profiles[item]["connection.interface-name"]
        self._announce(netdev)
        return said

    def _down(self, netdev: str) -> None:
        super()._down(netdev)
        self._announce(netdev)

    def _announce(self, netdev: str) -> None:
        """The GID table follows the address."""
        port = f"sys/class/infiniband/{rdma_name(netdev)}/ports/1"
        gid = "0000:0000:0000:0000:0000:0000:0000:0000"
        for address in self.links[netdev].addresses:
            gid = ipaddress.IPv6Address("::ffff:" + address.partition("/")[0]).exploded
        if (self.root / port).exists():
            self.file(f"{port}/gids/3", gid)
            self.file(f"{port}/gid_attrs/types/3", "RoCE v2")
            self.file(f"{port}/gid_attrs/ndevs/3", netdev)

    def _ethtool(self, words: list[str]) -> str:
        function = next(item for item in self.functions.values() if item.netdev == words[1])
        if words[1] not in self.links:
            raise Refusal(f"netlink error: no device matches name {words[1]}", 75)
        if words[0] == "-k":
            return f"Features for {words[1]}:\nrx-checksumming: on\nhw-tc-offload: {function.offload}\nntuple: off\n"
        if words[0] == "-m":
            raise Refusal("netlink error: Operation not supported", 1)
        assert words[0] == "-K" and words[2:] == ["hw-tc-offload", "on"], words
        if self.behaviour.get(function.bdf) != "offload stays off":
            function.offload = "on"
        return ""

    def _rdma(self, words: list[str]) -> Any:
        if words[:3] == ["-j", "resource", "show"]:
            number = 0 if self.old_iproute2 else None
            own: dict[str, Any] = {"ifindex": 0, "ifname": "rocep1s0f0", "port": 1, "lqpn": 1, "comm": "ib_core"}
            own = own if number is None else {**own, "pid": number}
            found = [own, *self.resources[words[3]]]
            return [{}, found] if self.old_iproute2 else found
        return super()._rdma(words)

    def _nvidia_smi(self, words: list[str]) -> str:
        assert words == ["--query-compute-apps=pid,process_name", "--format=csv,noheader"], words
        return "".join(line + "\n" for line in self.gpu or [])

    def _nmcli(self, words: list[str]) -> str:
        if words[:3] == ["--wait", "10", "device"]:
            function = self.functions[self.bdf(words[4])]
            if self.behaviour.get(function.bdf) == NO_ADDRESS_UNASKED:
                self._connect(words[4])
            return ""
        if words[:4] == ["-e", "no", "-g", "802-3-ethernet.mac-address"]:
            return self.profiles[words[-1]].get("802-3-ethernet.mac-address", "") + "\n"
        return super()._nmcli(words)

    def _systemctl(self, words: list[str]) -> str:
        if words[:2] != ["show", "--property=Id,ActiveState,ControlGroup"]:
            return super()._systemctl(words)
        known = dict.fromkeys(self.running, ("active", "")) | self.busy
        return "\n".join(
            f"Id={name}\nActiveState={state}\nControlGroup={group}\n"
            for name, (state, group) in sorted(known.items())
            if any(fnmatch.fnmatch(name, pattern) for pattern in words[2:])
        )

    def _start(self, name: str) -> None:
        if name != marks.HAIRPIN_UNIT:
            super()._start(name)
            return
        try:
            hairpin_run.bring(self.host(), self.plan(), hairpin_run.BOOT, clock=self.clock())
        except HostError as error:
            raise Refusal(f"Job for {name} failed: {error}") from error
        self.running.add(name)

    # The host's life --------------------------------------------------------------------------

    def kill(self) -> None:
        """The program is gone, and the time that its work takes passes."""
        self.cut_after = None
        self.sleep(60.0)

    def reboot(self) -> None:
        """Power off and on: defaults on the card, then the boot unit if it is enabled, then the network."""
        self.cut_after, self.boots = None, self.boots + 1
        self.later.clear()
        for function in self.functions.values():
            if function.netdev in self.absent:
                self._back(function, NO_ADDRESS)
            function.probe()
        self._boot_id()
        super().reboot()
        for netdev in self.links:
            self._down(netdev)

    def start_hairpin(self) -> str:
        """What the boot unit says when it fails; empty when it is good or not enabled."""
        if marks.HAIRPIN_UNIT not in units.enabled(self.host()):
            return ""
        try:
            self._start(marks.HAIRPIN_UNIT)
        except Refusal as error:
            return str(error)
        return ""

    def start_network(self) -> None:
        """NetworkManager comes up."""
        for netdev in self.links:
            self._connect(netdev)


def planned(card: FakeCard, plan: dict[str, Any]) -> HostPlan:
    """A plan for the card, with its PCI addresses and the setting needed."""
    for link in plan["links"]:
        link["bdf"] = card.bdf(link["netdev"])
    plan["hairpin"]["needed"] = True
    plan["units"] = [marks.HAIRPIN_UNIT, *plan["units"]]
    return HostPlan.from_plain(plan)
