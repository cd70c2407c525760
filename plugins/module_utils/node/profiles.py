"""NetworkManager profiles: read through nmcli, written only where they are ours."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..contract import marks
from ..contract.endpoints import ROLE_BY_NAME
from ..contract.host_plan import Link
from .commands import HostError
from .host import Host

START_SECONDS = 45
IDLE_SECONDS = 4
"""How long NetworkManager gets to bring up new profiles, and to begin with it."""

SETTINGS = (
    "connection.id",
    "connection.interface-name",
    "connection.autoconnect",
    "connection.autoconnect-priority",
    "802-3-ethernet.mtu",
    "ipv4.method",
    "ipv4.addresses",
    "ipv4.never-default",
    "ipv4.ignore-auto-dns",
    "ipv6.method",
    "ipv6.addr-gen-mode",
    "ipv6.never-default",
)


@dataclass(frozen=True)
class Profile:
    """One ethernet profile; ``active_on`` is the netdev on which it is up, or coming up."""

    name: str
    uuid: str
    filename: str
    active_on: str | None
    settings: dict[str, str]

    @property
    def netdev(self) -> str | None:
        """The netdev that the profile is bound to by name."""
        return self.settings.get("connection.interface-name") or None

    @property
    def role(self) -> str | None:
        """Role of the endpoint that a profile of ours serves; None for anyone else's."""
        role = self.name.rpartition("-")[2]
        return role if self.name.startswith(marks.PROFILE_PREFIX) and role in ROLE_BY_NAME else None


@dataclass(frozen=True)
class NetworkManager:
    """What NetworkManager says: whether it runs, the state of each device, the ethernet profiles."""

    running: bool
    devices: dict[str, str]
    profiles: list[Profile]


def none() -> NetworkManager:
    """A host where NetworkManager does not run."""
    return NetworkManager(False, {}, [])


def refuse_silence(manager: NetworkManager, links: Iterable[Link]) -> None:
    """Raises HostError where NetworkManager serves links and does not answer: profiles are neither there nor gone."""
    if not manager.running and any(not link.adopted for link in links):
        raise HostError("NetworkManager does not answer here, and its profiles cannot be judged: start it")


def _fields(line: str) -> list[str]:
    return [re.sub(r"\\(.)", r"\1", part) for part in re.split(r"(?<!\\):", line)]


def observe(host: Host) -> NetworkManager:
    """Read NetworkManager; one that does not run or is not installed is no error."""
    done = host.runner.execute(["nmcli", "-t", "-f", "DEVICE,STATE", "device", "status"], None, 30)
    if done.status != 0:
        return none()
    devices = {}
    for line in done.output.splitlines():
        if line:
            name, state = _fields(line)[:2]
            devices[name] = state
    rows = []
    columns = "UUID,TYPE,DEVICE,FILENAME,NAME"
    for line in host.runner.run(["nmcli", "-t", "-f", columns, "connection", "show"]).splitlines():
        row = _fields(line)
        if len(row) == 5 and row[1] == "802-3-ethernet":
            rows.append(row)
    settings = _settings(host, [row[0] for row in rows])
    profiles = [Profile(row[4], row[0], row[3], row[2] or None, settings.get(row[0], {})) for row in rows]
    return NetworkManager(True, devices, sorted(profiles, key=lambda item: (item.name, item.uuid)))


def _settings(host: Host, uuids: list[str]) -> dict[str, dict[str, str]]:
    """Settings of several profiles in one call; a field seen again begins the next profile."""
    if not uuids:
        return {}
    command = ["nmcli", "-t", "-e", "no", "-f", "connection.uuid," + ",".join(SETTINGS), "connection", "show", "uuid"]
    words = [uuids[0]]
    for uuid in uuids[1:]:
        words += ["uuid", uuid]
    result: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in host.runner.run([*command, *words]).splitlines():
        name, separator, value = line.partition(":")
        if not separator:
            continue
        if name in current:
            current = {}
        current[name] = value
        if "connection.uuid" in current:
            result[current["connection.uuid"]] = current
    return {uuid: {name: values.get(name, "") for name in SETTINGS} for uuid, values in result.items()}


def lay(host: Host, present: list[str], wanted: list[dict[str, Any]]) -> None:
    """Write the profiles and see them up.

    ``present`` are the UUIDs of our profiles that these replace: one that keeps its UUID is
    modified and started again, any other is deleted. NetworkManager starts a new profile by
    itself, and a command to do so would start it twice.
    """
    kept = {body["uuid"] for body in wanted} & set(present)
    take(host, [uuid for uuid in present if uuid not in kept])
    for body in wanted:
        settings = body["settings"]
        words = [word for name in SETTINGS for word in (name, settings[name])]
        command = ["nmcli", "connection", "modify", "uuid", body["uuid"], *words]
        if body["uuid"] not in kept:
            command = ["nmcli", "connection", "add", "type", "ethernet", "ifname", body["netdev"]]
            command += ["con-name", settings["connection.id"], "connection.uuid", body["uuid"], *words[4:]]
        host.runner.run(command)
    again = [body for body in wanted if body["uuid"] in kept]
    fresh = _not_up(host, [body for body in wanted if body["uuid"] not in kept])
    waiting = again + fresh
    if waiting:
        with ThreadPoolExecutor(max_workers=len(waiting)) as pool:
            works = [pool.submit(_up, host, body) for body in waiting]
        # One that fails does not keep the others from coming up.
        for work in works:
            work.result()


def _not_up(host: Host, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of new profiles that NetworkManager does not bring up by itself; the others are up on return."""
    left = bodies
    for second in range(START_SECONDS):
        status = host.runner.run(["nmcli", "-t", "-f", "DEVICE,STATE,CON-UUID", "device", "status"])
        states = {row[0]: (row[1], row[2]) for row in map(_fields, status.splitlines()) if len(row) == 3}
        left = [body for body in bodies if states.get(body["netdev"]) != ("connected", body["uuid"])]
        idle = [body for body in left if states.get(body["netdev"], ("", ""))[1] != body["uuid"]]
        if not left or (len(idle) == len(left) and second >= IDLE_SECONDS):
            break
        time.sleep(1.0)
    return left


def _up(host: Host, body: dict[str, Any]) -> None:
    netdev = body["netdev"]
    done = host.runner.execute(["nmcli", "--wait", "45", "connection", "up", "uuid", body["uuid"]], None, 60)
    if done.status != 0:
        if host.read(f"/sys/class/net/{netdev}/carrier") != "1":
            raise HostError(f"{netdev} has no carrier: check its cable and that the host at its other end is on")
        said = (done.errors or done.output).strip().splitlines()
        reason = said[0] if said else "no message"
        raise HostError(f"{netdev}: NetworkManager could not bring up its profile ({reason})")


def take(host: Host, uuids: list[str]) -> None:
    """Delete profiles of ours, which also takes their links down to where they were before."""
    if uuids:
        words = [word for uuid in uuids for word in ("uuid", uuid)]
        host.runner.run(["nmcli", "--wait", "30", "connection", "delete", *words], timeout=60)
