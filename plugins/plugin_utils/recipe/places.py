"""Where one rank stands on its ring: the values of the names in braces that differ from rank to rank."""

from __future__ import annotations

from typing import Any

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.host_plan import HostPlan, Link
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.ring_plan import RingPlan
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import words
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.model import Recipe

FACED = (1, 3)
"""A rank of a four-cycle faces the ranks that are its number XOR these (facts: recipes 1.4)."""


class Places:
    """One rank's addresses, devices and peers, from the plan."""

    def __init__(self, recipe: Recipe, plan: RingPlan, section: HostPlan) -> None:
        self._recipe, self._plan, self._section = recipe, plan, section
        self.address, self.interface = self._rendezvous(section)
        self.head, _ = self._rendezvous(next(item for item in plan.hosts.values() if item.position == 0))

    @property
    def primaries(self) -> list[Link]:
        """Links over the primary functions, p0 first."""
        return sorted((link for link in self._section.links if link.function == "primary"), key=lambda link: link.port)

    @property
    def secondaries(self) -> list[Link]:
        """Links over the secondary functions, p0 first."""
        return sorted((link for link in self._section.links if link.function != "primary"), key=lambda link: link.port)

    def _devices(self, primary: bool) -> list[str]:
        """RDMA devices of one kind of function; those of the lanes where the links are the operator's."""
        links = self.primaries if primary else self.secondaries
        if self._section.links:
            return [link.rdma_device for link in links]
        lanes = [lane for lane in self._section.lanes if (lane.function == "primary") is primary]
        return list(dict.fromkeys(lane.source.rdma_device for lane in lanes))

    @property
    def gids(self) -> dict[str, list[str]]:
        """The names whose value is a GID index, and the devices that must agree on it."""
        primary = self._devices(primary=True)
        everything = [*primary, *self._devices(primary=False)]
        wide = {"hcas_all", "hcas_exact", "hcas_by_domain"}
        asked = words.names(list((self._recipe.environment or {}).values()))
        devices = everything if asked & wide else primary
        if asked & {"hca"}:
            devices = devices[:1]
        made = {"gid": devices}
        for prefix, links in (("", self.primaries), ("second_", self.secondaries)):
            for slot, link in enumerate(self._facing(links)):
                made[f"{prefix}gid{slot}"] = [link.rdma_device]
        return made

    def values(self) -> dict[str, Any]:
        """The names of this rank that have a value on this ring."""
        rank = self._section.position
        primary, secondary = self._devices(primary=True), self._devices(primary=False)
        made: dict[str, Any] = {
            "rank": rank,
            "headless": "1" if rank else "",
            "address": self.address,
            "head": self.head,
            "interface": self.interface,
        }
        if primary:
            made["hca"] = primary[0]
            made["hcas"] = ",".join(primary)
            made["hcas_all"] = ",".join([*primary, *secondary])
            made["hcas_exact"] = ",".join(f"{device}:1" for device in [*primary, *secondary])
            made["hcas_by_domain"] = ",".join([primary[0], *secondary[:1]])
            made["peer_hcas"] = self._peer_hcas([*primary, *secondary])
        for prefix, links in (("", self.primaries), ("second_", self.secondaries)):
            for slot, link in enumerate(self._facing(links)):
                made[f"{prefix}peer{slot}"] = link.peer_address
                made[f"{prefix}device{slot}"] = link.rdma_device
        return made

    def _rendezvous(self, section: HostPlan) -> tuple[str, str]:
        """Address and network device by which a rank is found.

        On the fabric, even ranks use p0 and odd ones p1, so that neighbours meet on the cable between them.
        """
        links = [link for link in section.links if link.function == "primary"]
        if self._recipe.transport.rendezvous == "management" or not links:
            return section.management.address, section.management.netdev
        wanted = [link for link in links if link.port == section.position % 2] or links
        return wanted[0].address.partition("/")[0], wanted[0].netdev

    def _facing(self, links: list[Link]) -> list[Link]:
        """The links to the two ranks that a rank of a four-cycle faces, in their order; none on other rings."""
        hosts = {item.position: item.host for item in self._plan.hosts.values()}
        if len(hosts) != 4:
            return []
        by_host = {link.peer_host: link for link in links}
        faced = [hosts[self._section.position ^ bits] for bits in FACED]
        return [by_host[host] for host in faced] if set(faced) <= by_host.keys() else []

    def _peer_hcas(self, devices: list[str]) -> str:
        """For each other rank the numbers of the devices that reach it, by lane."""
        position = {item.host: item.position for item in self._plan.hosts.values()}
        reached: dict[int, list[int]] = {}
        for lane in sorted(self._section.lanes, key=lambda lane: lane.index):
            if lane.source.rdma_device in devices:
                reached.setdefault(position[lane.peer], []).append(devices.index(lane.source.rdma_device))
        return ",".join(f"{rank}={'/'.join(map(str, numbers))}" for rank, numbers in sorted(reached.items()))
