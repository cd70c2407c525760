"""Answers the lane checks of one verify run on one host.

A transient unit listens on the management address, obeys only authentic requests
(see ``messages``), and knows five verbs on the objects of its own plan: ``counters``,
``serve``, ``write``, ``stop``, ``end``. It ends when it is told to, and by itself when nothing
is asked any more.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..contract import marks
from ..contract.host_plan import HostPlan, Lane
from . import gid
from .commands import HostError
from .host import Host
from .markers import notify
from .messages import MIN_KEY_BYTES, Answering, Channel, Refused

WRITES = 200
WRITE_BYTES = 4096
GREETING_SECONDS = 10.0
LISTEN_SECONDS = 20.0
WRITE_SECONDS = 30.0
SERVER_SECONDS = 60.0
IDLE_SECONDS = 600.0
MAX_CONNECTIONS = 8
GLANCE_SECONDS = 0.5
TCP_LISTEN = "0A"
COMMAND_SECONDS = 20.0


class ResponderError(HostError):
    """What the responder could not do, in one sentence."""


def filter_packets(document: list[dict[str, Any]], preference: int, handle: int) -> int | None:
    """Packets that passed every action of one flower filter in ``tc -s -j`` output; None when it is absent."""
    for entry in document:
        options = entry.get("options") or {}
        if entry.get("pref") != preference or options.get("handle") != handle:
            continue
        counts = [action["stats"]["packets"] for action in options.get("actions", []) if "stats" in action]
        return min(counts) if counts else None
    return None


def forwarded_datagrams(snmp: str) -> int:
    """IPv4 datagrams that the kernel forwarded, from the text of /proc/net/snmp."""
    names, values = [line.split()[1:] for line in snmp.splitlines() if line.startswith("Ip:")]
    return int(values[names.index("ForwDatagrams")])


def listens(port: int) -> bool:
    """Whether something listens on the TCP port; asking the kernel leaves the one connection that perftest takes."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(f":{port:04X}") and fields[3] == TCP_LISTEN:
                return True
    return False


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -\t")]
    return lines[-1] if lines else "it said nothing"


class Verbs:
    """What a responder can do; every argument is checked against its own plan."""

    def __init__(self, plan: HostPlan, sees: Host) -> None:
        self._plan = plan
        self._sees = sees
        self._lanes = {lane.id: lane for lane in plan.lanes}
        self._filters = {item.id: item for item in plan.filters}
        self._peers = {peer.host: peer.management_address for peer in plan.peers}
        self._servers: dict[int, tuple[subprocess.Popen[str], float]] = {}
        self.ended = False
        self._verbs: dict[str, tuple[tuple[str, ...], Callable[..., dict[str, Any]]]] = {
            "counters": (("filters",), self.counters),
            "serve": (("lane", "port"), self.serve),
            "write": (("lane", "port"), self.write),
            "stop": (("port",), self.stop),
            "end": ((), self.end),
        }

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run one authentic request; raises ResponderError when it is not for this host or not in its plan."""
        if request.get("host") != self._plan.host:
            raise ResponderError(f"the request is for {request.get('host')!r}, not for {self._plan.host}")
        verb = request.get("verb")
        if not isinstance(verb, str) or verb not in self._verbs:
            raise ResponderError(f"the verb {verb!r} is unknown")
        names, method = self._verbs[verb]
        arguments = {name: value for name, value in request.items() if name not in ("host", "verb", "id")}
        if set(arguments) != set(names):
            raise ResponderError(f"{verb} takes {', '.join(names) or 'no arguments'}")
        return method(**arguments)

    def counters(self, filters: Any) -> dict[str, Any]:
        """Packets of the named relay filters (null when absent) and IPv4 datagrams forwarded."""
        if not isinstance(filters, list) or not all(isinstance(name, str) for name in filters):
            raise ResponderError("filters must be a list of filter ids")
        wanted = []
        for name in filters:
            if name not in self._filters:
                raise ResponderError(f"{name} is not in the plan")
            wanted.append(self._filters[name])
        shown = {netdev: self._ingress(netdev) for netdev in sorted({item.netdev for item in wanted})}
        return {
            "filters": {item.id: filter_packets(shown[item.netdev], item.preference, item.handle) for item in wanted},
            "forwarded": forwarded_datagrams(Path("/proc/net/snmp").read_text()),
        }

    def serve(self, lane: Any, port: Any) -> dict[str, Any]:
        """Start the receiving end of a lane on its near device, and wait until it listens."""
        command = self._perftest(self._lane(lane), self._port(port))
        self._stop(port)
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self._servers[port] = (server, time.monotonic() + SERVER_SECONDS)
        deadline = time.monotonic() + LISTEN_SECONDS
        while time.monotonic() < deadline:
            if listens(port):
                return {}
            if server.poll() is not None:
                said = last_line(server.communicate()[1])
                del self._servers[port]
                raise ResponderError(f"ib_write_bw did not listen on {lane}: {said}")
            time.sleep(0.02)
        self._stop(port)
        raise ResponderError(f"ib_write_bw did not listen on {lane} within {LISTEN_SECONDS:.0f} s")

    def write(self, lane: Any, port: Any) -> dict[str, Any]:
        """Write over a lane to the server at its far end; the speed in Gb/s."""
        source = self._lane(lane)
        command = [*self._perftest(source, self._port(port)), self._peers[source.peer]]
        try:
            result = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WRITE_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise ResponderError(f"ib_write_bw on {lane} did not end within {WRITE_SECONDS:.0f} s") from None
        if result.returncode:
            said = last_line(result.stdout + "\n" + result.stderr)
            raise ResponderError(f"ib_write_bw on {lane} ended with {result.returncode}: {said}")
        try:
            return {"gbps": float(last_line(result.stdout))}
        except ValueError:
            raise ResponderError(f"ib_write_bw on {lane} gave no speed: {last_line(result.stdout)}") from None

    def stop(self, port: Any) -> dict[str, Any]:
        """End the receiving end on a port, if one runs."""
        self._stop(self._port(port))
        return {}

    def stop_all(self) -> None:
        """End every receiving end that runs."""
        for port in list(self._servers):
            self._stop(port)

    def end(self) -> dict[str, Any]:
        """Have the responder end once it has answered."""
        self.ended = True
        return {}

    def stop_overdue(self) -> None:
        """End receiving ends that nobody came to."""
        for port, (_server, deadline) in list(self._servers.items()):
            if time.monotonic() > deadline:
                self._stop(port)

    def _stop(self, port: int) -> None:
        if port in self._servers:
            server = self._servers.pop(port)[0]
            server.kill()
            server.communicate()

    def _lane(self, name: Any) -> Lane:
        if not isinstance(name, str) or name not in self._lanes:
            raise ResponderError(f"the lane {name!r} is not in the plan")
        return self._lanes[name]

    def _port(self, port: Any) -> int:
        if type(port) is not int or port not in marks.LANE_PORTS:
            raise ResponderError(f"the port {port!r} is not a lane port")
        return port

    def _perftest(self, lane: Lane, port: int) -> list[str]:
        source = lane.source
        index = gid.by_address(self._sees, source.rdma_device, source.netdev).get(source.address)
        if index is None:
            raise ResponderError(f"{source.rdma_device} has no RoCE v2 GID for {source.address}")
        command = ["ib_write_bw", "--ib-dev", lane.source.rdma_device, "--gid-index", str(index)]
        command += ["--size", str(WRITE_BYTES), "--iters", str(WRITES), "--CPU-freq", "--report_gbits"]
        return [*command, "--output=bandwidth", "--port", str(port), "--source_ip", self._plan.management.address]

    def _ingress(self, netdev: str) -> list[dict[str, Any]]:
        command = ["tc", "-s", "-j", "filter", "show", "dev", netdev, "ingress"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
        if result.returncode:
            raise ResponderError(f"tc could not show the filters of {netdev}: {last_line(result.stderr)}")
        shown: list[dict[str, Any]] = json.loads(result.stdout or "[]")
        return shown


class Responder:
    """The listener: one thread per connection, one request at a time."""

    def __init__(self, plan: HostPlan, key: bytes, verbs: Verbs, port: int = marks.RESPONDER_PORT) -> None:
        if len(key) < MIN_KEY_BYTES:
            raise ResponderError(f"the responder's key must have at least {MIN_KEY_BYTES} bytes")
        self._host = plan.host
        self._key = key
        self._verbs = verbs
        self._turn = threading.Lock()
        self._room = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._last_request = time.monotonic()
        self._stopped = threading.Event()
        self._listener = socket.create_server((plan.management.address, port))

    def run(self) -> None:
        """Answer until told to stop or idle."""
        self._listener.settimeout(GLANCE_SECONDS)
        try:
            while not self._stopped.is_set() and time.monotonic() - self._last_request < IDLE_SECONDS:
                self._accept()
                with self._turn:
                    self._verbs.stop_overdue()
        finally:
            self._listener.close()
            with self._turn:
                self._verbs.stop_all()

    def stop(self) -> None:
        """Make ``run`` return."""
        self._stopped.set()

    def ended(self) -> bool:
        """Whether ``run`` was told to return."""
        return self._stopped.is_set()

    def _accept(self) -> None:
        try:
            connection, _peer = self._listener.accept()
        except socket.timeout:
            return
        if not self._room.acquire(blocking=False):
            connection.close()
            return
        threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        answering = Answering(Channel(connection), self._key)
        patience = GREETING_SECONDS
        try:
            while not self._stopped.is_set():
                request = answering.next_request(patience)
                patience = IDLE_SECONDS
                with self._turn:
                    self._last_request = time.monotonic()
                    reply = self._answer(request)
                    self._last_request = time.monotonic()
                answering.reply(reply)
                if self._verbs.ended:
                    self.stop()
        except (Refused, OSError, ValueError):
            pass  # whoever this was gets no word; nothing was done
        finally:
            connection.close()
            self._room.release()

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"result": self._verbs.run(request)}
        except FileNotFoundError as error:
            return {"error": f"{self._host}: {error.filename} is missing", "fix": "run prepare: it installs the tools"}
        except (ResponderError, OSError, subprocess.SubprocessError, ValueError) as error:
            return {"error": f"{self._host}: {error}"}


def start(plan: dict[str, Any], key: str) -> None:
    """Start the responder's unit on this host; returns once it listens.

    Raises ResponderError when the host does not hold this plan, or the unit does not start.
    """
    host = HostPlan.from_plain(plan).host
    try:
        installed = json.loads(Path(marks.PLAN_PATH).read_text())
    except (OSError, ValueError):
        raise ResponderError(f"{host} holds no plan at {marks.PLAN_PATH}: run mesh-setup first") from None
    if installed != plan:
        raise ResponderError(f"{host} holds another plan at {marks.PLAN_PATH}: run mesh-setup first")
    if not Path(marks.PROGRAM_PATH).is_file():
        raise ResponderError(f"{host} lacks {marks.PROGRAM_PATH}: run mesh-setup first")
    stop()
    Path(marks.RUN_DIR).mkdir(mode=0o755, exist_ok=True)
    descriptor = os.open(marks.RESPONDER_KEY_PATH, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(key)
    result = subprocess.run(unit_command(), capture_output=True, text=True, timeout=120, check=False)
    if result.returncode:
        stop()
        raise ResponderError(
            f"{host}: {marks.RESPONDER_UNIT} did not start ({last_line(result.stderr)}): "
            f"read journalctl -u {marks.RESPONDER_UNIT}"
        )


def unit_command() -> list[str]:
    """The command that starts the transient unit and waits until it is ready."""
    properties = [
        "Type=notify",
        "NotifyAccess=main",
        "TimeoutStartSec=90",
        "LimitMEMLOCK=infinity",
        "ProtectSystem=strict",
        f"ReadWritePaths={marks.RUN_DIR}",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "NoNewPrivileges=yes",
    ]
    command = ["systemd-run", "--quiet", "--collect", f"--unit={marks.RESPONDER_UNIT}"]
    return [
        *command,
        *[f"--property={item}" for item in properties],
        sys.executable,
        "-IS",
        marks.PROGRAM_PATH,
        "respond",
    ]


def stop() -> None:
    """Stop the responder's unit on this host, if it runs, and remove its key."""
    for command in (["systemctl", "stop", marks.RESPONDER_UNIT], ["systemctl", "reset-failed", marks.RESPONDER_UNIT]):
        subprocess.run(command, capture_output=True, timeout=60, check=False)
    Path(marks.RESPONDER_KEY_PATH).unlink(missing_ok=True)


def main() -> int:
    """What the transient unit runs."""
    key_path = Path(marks.RESPONDER_KEY_PATH)
    try:
        plan = HostPlan.from_plain(json.loads(Path(marks.PLAN_PATH).read_text()))
        key = key_path.read_bytes()
        key_path.unlink()
        responder = Responder(plan, key, Verbs(plan, Host()))
    except (ResponderError, OSError, ValueError) as error:
        print(f"The responder cannot start: {error}", file=sys.stderr)
        return 1
    notify("READY=1")
    responder.run()
    return 0
