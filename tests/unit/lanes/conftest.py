"""Three responders on loopback, with stand-ins for ib_write_bw, tc and sysfs."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import responder as responder_module
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host
from ansible_collections.sparkring.cluster.plugins.module_utils.node.responder import Responder, Verbs

from . import ring

IB_WRITE_BW = """#!{python} -SE
import json, pathlib, socket, sys
state = pathlib.Path({state!r})
arguments = sys.argv[1:]
with open(state / "calls", "a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
value = lambda name: arguments[arguments.index(name) + 1]
device, near, port = value("--ib-dev"), value("--source_ip"), int(value("--port"))
effect = json.loads((state / "effects.json").read_text()).get(device, {{}})
if arguments[-2] != "--source_ip":
    with socket.create_connection((arguments[-1], port), 5, (near, 0)) as connection:
        connection.recv(1)
    if "fail" in effect:
        sys.exit(" Completion with error at client\\n " + effect["fail"])
    for netdev, packets in effect.get("packets", {{}}).items():
        path = state / "packets" / netdev
        path.write_text(str(int(path.read_text()) + packets))
    if "forwarded" in effect:
        forwarded = state / "forwarded"
        forwarded.write_text(str(int(forwarded.read_text()) + effect["forwarded"].pop(0)))
        effects = json.loads((state / "effects.json").read_text())
        effects[device] = effect if effect["forwarded"] else {{**effect, "forwarded": [0]}}
        (state / "effects.json").write_text(json.dumps(effects))
    print(effect.get("says", "97.654321"))
elif "deaf" in effect:
    sys.exit("Couldn't listen to port " + str(port))
else:
    with socket.create_server((near, port)) as listener:
        listener.accept()[0].close()
"""

TC = """#!{python} -SE
import json, pathlib, sys
netdev = sys.argv[6]
assert sys.argv[1:6] == ["-s", "-j", "filter", "show", "dev"] and sys.argv[7:] == ["ingress"]
path = pathlib.Path({state!r}) / "packets" / netdev
if not path.exists():
    print("[]")
    sys.exit()
stats = {{"bytes": 1, "packets": int(path.read_text()), "drops": 0}}
head = {{"protocol": "[35001]", "pref": 41, "kind": "flower", "chain": 0}}
actions = [{{"order": n, "kind": kind, "stats": stats}} for n, kind in enumerate(["pedit", "pedit", "mirred"], 1)]
print(json.dumps([head, {{**head, "options": {{"handle": 1, "keys": {{}}, "actions": actions}}}}]))
"""


@dataclass
class Bench:
    """The stand-ins' state, and the port that every responder listens on."""

    state: Path
    host: Host
    port: int

    def effect(self, device: str, **effect: Any) -> None:
        """What a write from ``device`` does."""
        path = self.state / "effects.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), device: effect}))

    def calls(self) -> list[list[str]]:
        """Arguments of every ib_write_bw so far."""
        path = self.state / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    state, programs, sysfs = tmp_path / "state", tmp_path / "bin", tmp_path / "sys"
    (state / "packets").mkdir(parents=True)
    programs.mkdir()
    for name, text in (("ib_write_bw", IB_WRITE_BW), ("tc", TC)):
        (programs / name).write_text(text.format(python=sys.executable, state=str(state)))
        (programs / name).chmod(0o755)
    (state / "effects.json").write_text("{}")
    (state / "forwarded").write_text("0")
    for relay in (ring.THERE, ring.BACK):
        (state / "packets" / relay.ingress).write_text("1000")
    for end in [*ring.CW.values(), *ring.CCW.values()]:
        write_gids(sysfs, end.rdma_device, end.netdev, end.address)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(responder_module, "forwarded_datagrams", lambda _text: int((state / "forwarded").read_text()))
    return Bench(state, Host(root=tmp_path), free_port())


def write_gids(sysfs: Path, device: str, netdev: str, address: str) -> None:
    """Link-local v1 and v2 first, then IPv4 v1 and, at index 3, v2."""
    port = sysfs / "class/infiniband" / device / "ports/1"
    first, second, third, fourth = (int(part) for part in address.split("."))
    mapped = f"0000:0000:0000:0000:0000:ffff:{first:02x}{second:02x}:{third:02x}{fourth:02x}"
    local = "fe80:0000:0000:0000:0200:00ff:fe00:0001"
    for index, (gid, kind) in enumerate(
        [(local, "IB/RoCE v1"), (local, "RoCE v2"), (mapped, "IB/RoCE v1"), (mapped, "RoCE v2")]
    ):
        for folder, text in (("gids", gid), ("gid_attrs/types", kind), ("gid_attrs/ndevs", netdev)):
            (port / folder).mkdir(parents=True, exist_ok=True)
            (port / folder / str(index)).write_text(text + "\n")


@pytest.fixture
def responders(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Responder]]:
    """A responder for each host."""
    monkeypatch.setattr(responder_module, "GLANCE_SECONDS", 0.02)
    running = {}
    threads = []
    for host in ring.HOSTS:
        plan = ring.host_plan(host)
        running[host] = Responder(plan, ring.KEY, Verbs(plan, bench.host), bench.port)
        threads.append(threading.Thread(target=running[host].run))
        threads[-1].start()
    yield running
    for responder in running.values():
        responder.stop()
    for thread in threads:
        thread.join()
