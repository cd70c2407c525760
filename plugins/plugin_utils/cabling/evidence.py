"""What each port sees at the far end of its cable, by LLDP or by an answered IPv6 link-local neighbour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ansible_collections.sparkring.cluster.plugins.plugin_utils.doctor.ring import Port, ports_of
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.survey import Survey

PORTS = (0, 1)
State = Literal["no link", "unseen", "cabled"]
Source = Literal["lldp", "ipv6"]


@dataclass(frozen=True, order=True)
class End:
    """One port of one host."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host} p{self.port}"


@dataclass(frozen=True, order=True)
class Cable:
    """A cable that both its ends see; ``source`` is ``ipv6`` where LLDP does not confirm both."""

    a: End
    b: End
    source: Source

    def __str__(self) -> str:
        return f"{self.a} ↔ {self.b}"


@dataclass(frozen=True)
class PortView:
    """What one port sees: surveyed far ports, far ends that no survey knows, and names that several hosts have."""

    state: State
    far: tuple[End, ...] = ()
    source: Source = "lldp"
    unknown: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


class Evidence:
    """All surveys, looked up by MAC and by name. Hosts with one identity are one machine, under its first name."""

    def __init__(self, surveys: Mapping[str, Mapping[str, Any]]) -> None:
        read = {name: Survey.model_validate(surveys[name]) for name in sorted(surveys) if surveys[name]}
        self.same: list[tuple[str, str]] = []
        self.surveys: dict[str, Survey] = {}
        first: dict[str, str] = {}
        for name, survey in read.items():
            owner = first.setdefault(survey.identity, name)
            if owner == name:
                self.surveys[name] = survey
            else:
                self.same.append((owner, name))
        self._ports: dict[End, list[Port]] = {End(host, number): [] for host in self.surveys for number in PORTS}
        self._by_mac: dict[str, End] = {}
        self._by_netdev: dict[tuple[str, str], End] = {}
        self._chassis: dict[str, str] = {}
        self._named: dict[str, list[str]] = {}
        for host, survey in self.surveys.items():
            for port in ports_of(host, survey).values():
                end = End(host, port.number)
                self._ports[end].append(port)
                self._by_mac[port.link.mac.lower()] = end
                self._by_netdev[host, port.netdev] = end
            self._chassis.update({link.mac.lower(): host for link in survey.links})
            self._named.setdefault(_short(survey.hostname), []).append(host)

    def views(self) -> dict[End, PortView]:
        """What every port sees."""
        return {end: self._view(end) for end in sorted(self._ports)}

    def _view(self, end: End) -> PortView:
        functions = self._ports[end]
        if not any(port.link.carrier for port in functions):
            return PortView("no link")
        netdevs = {port.netdev for port in functions if port.link.carrier}
        # Sightings of the port's own other function say nothing of the cable.
        far, unknown, shared = self._by_lldp(_rows(self.surveys[end.host], "lldp", netdevs))
        if far - {end}:
            return PortView("cabled", tuple(sorted(far - {end})))
        weak, strange = self._by_ipv6(_rows(self.surveys[end.host], "ipv6_neighbours", netdevs))
        if weak - {end}:
            return PortView("cabled", tuple(sorted(weak - {end})), "ipv6")
        return PortView(
            "unseen", unknown=tuple(sorted(unknown or (set() if shared else strange))), shared=tuple(sorted(shared))
        )

    def _by_lldp(self, seen: list[Mapping[str, Any]]) -> tuple[set[End], set[str], set[str]]:
        far: set[End] = set()
        unknown: set[str] = set()
        shared: set[str] = set()
        for row in seen:
            name, port = row.get("chassis_name"), row.get("port_descr") or row.get("port_id")
            chassis = str(row.get("chassis_id")).lower()
            named = self._named.get(_short(name), []) if name else []
            host = self._chassis.get(chassis) or (named[0] if len(named) == 1 else None)
            end = self._by_mac.get(str(row.get("port_id")).lower()) or self._by_netdev.get((str(host), str(port)))
            if end is not None:
                far.add(end)
            elif host is None and len(named) > 1:
                shared.add(str(name))
            else:
                unknown.add(f"{name or row.get('chassis_id') or 'a nameless neighbour'} {port or ''}".strip())
        return far, unknown, shared

    def _by_ipv6(self, seen: list[Mapping[str, Any]]) -> tuple[set[End], set[str]]:
        macs = {str(row.get("mac")).lower() for row in seen}
        far = {self._by_mac[mac] for mac in macs if mac in self._by_mac}
        return far, {f"MAC {mac}" for mac in macs if mac not in self._by_mac}

    def named(self, name: str) -> list[str]:
        """Hosts that go by one host name."""
        return self._named.get(_short(name), [])


def _rows(survey: Survey, part: str, netdevs: set[str]) -> list[Mapping[str, Any]]:
    """Entries of one part of a survey that were seen on some netdevs."""
    return [row for row in getattr(survey, part, []) if row.get("netdev") in netdevs]


def _short(name: str) -> str:
    return name.partition(".")[0].lower()
