"""What the controller reads of a survey: bind little, the doctor much; everything else in it is let through.

Fields with a default may be missing: a survey of an earlier version, or a host where that could not be read.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Loose(BaseModel):
    """A part of a survey: raw observations, of which only some are read here."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)


class SurveyManagement(Loose):
    """Interface by which the survey was taken."""

    netdev: str
    address: str
    prefix: int


class SurveyPrivilege(Loose):
    """Whether root took the survey; ``unread`` are the parts that stay empty without."""

    root: bool = True
    unread: list[str] = []


class SurveyClock(Loose):
    """The host's time in seconds since 1970 UTC."""

    host: float | None = None


class SurveyPcie(Loose):
    """PCIe link of a device, such as ``32.0 GT/s PCIe`` on 4 lanes."""

    speed: str | None = None
    width: int | None = None


class SurveyLink(Loose):
    """One netdev of a device."""

    netdev: str
    mac: str
    bdf: str | None = None
    master: str | None = None
    mtu: int | None = None
    carrier: bool = False
    speed_mbps: int | None = None
    driver: str | None = None
    addresses: list[str] = Field(default=[], description="IPv4, with prefix length")
    link_local: list[str] = Field(default=[], description="IPv6 link-local, without prefix length")
    phys_port_name: str | None = None
    wireless: bool = False
    pcie: SurveyPcie | None = None


class SurveyInterface(Loose):
    """An interface without a device that holds IPv4 addresses; ``kind`` as ``ip link`` names it."""

    netdev: str
    kind: str | None = None
    addresses: list[str] = []


class SurveyGid(Loose):
    """One entry of an RDMA device's GID table."""

    index: int
    gid: str
    type: str | None = None
    netdev: str | None = None


class SurveyDevice(Loose):
    """One RDMA device; ``driver`` is its kernel driver."""

    device: str
    netdev: str | None
    driver: str | None
    node_guid: str | None = None
    firmware: str | None = None
    state: str | None = None
    active_mtu: int | None = None
    gids: list[SurveyGid] = []


class SurveyUser(Loose):
    """A queue pair that a process holds."""

    ifname: str | None = None
    pid: int
    comm: str | None = None


class SurveyForward(Loose):
    """The forwarding part of the firewall, rules in order as ``iptables -S`` prints them."""

    policy: str | None = None
    docker_user: bool = False
    rules: list[str] = []


class SurveyDocker(Loose):
    """Docker's state."""

    installed: bool = False
    running: bool = False
    version: str | None = None


class SurveyProfile(Loose):
    """One ethernet profile of NetworkManager, with its settings by nmcli's names."""

    name: str
    netdev: str | None = None
    filename: str | None = None
    active: bool = False
    active_on: str | None = None
    settings: dict[str, str] = {}


class SurveyNetworkManager(Loose):
    """What NetworkManager says."""

    running: bool = False
    devices: dict[str, str] = {}
    profiles: list[SurveyProfile] = []


class SurveyNetworkd(Loose):
    """How systemd-networkd holds one netdev."""

    state: str
    file: str | None = None


class SurveyNetplan(Loose):
    """Netdevs and IPv4 addresses that one netplan file names."""

    file: str
    netdevs: list[str] = []
    addresses: list[str] = []


class SurveyTraffic(Loose):
    """Queueing disciplines and filters of one netdev, as tc prints them."""

    qdiscs: list[dict[str, Any]] = []
    filters: list[dict[str, Any]] = []


class SurveyKernel(Loose):
    """Versions."""

    release: str | None = None
    os: str | None = None
    gpu_driver: str | None = None


class SurveyMemory(Loose):
    """Memory in KiB, as the kernel counts it."""

    total_kib: int | None = None
    available_kib: int | None = None
    free_kib: int | None = None
    cached_kib: int | None = None
    shmem_kib: int | None = None
    cma_total_kib: int | None = None
    cma_free_kib: int | None = None
    hugepage_kib: int | None = None


class SurveyDisk(Loose):
    """One mounted device."""

    mount: str
    size_kib: int
    free_kib: int


class Survey(Loose):
    """What one host is."""

    schema_name: Literal["sparkring.survey/1"] = Field(alias="schema")
    hostname: str
    identity: str
    management: SurveyManagement | None
    links: list[SurveyLink]
    rdma: list[SurveyDevice]
    machine_id: str | None = None
    privilege: SurveyPrivilege = SurveyPrivilege()
    clock: SurveyClock = SurveyClock()
    interfaces: list[SurveyInterface] = []
    users: list[SurveyUser] = []
    lldp: list[dict[str, Any]] = []
    routes: list[dict[str, Any]] = []
    neighbours: list[dict[str, Any]] = []
    sysctls: dict[str, str] = {}
    tc: dict[str, SurveyTraffic] = {}
    forward: SurveyForward = SurveyForward()
    docker: SurveyDocker = SurveyDocker()
    networkmanager: SurveyNetworkManager = SurveyNetworkManager()
    networkd: dict[str, SurveyNetworkd] = {}
    netplan: list[SurveyNetplan] = []
    devlink: dict[str, dict[str, Any]] = {}
    modules: dict[str, dict[str, str]] = {}
    kernel: SurveyKernel = SurveyKernel()
    previous_boot: list[str] = []
    memory: SurveyMemory = SurveyMemory()
    disk: list[SurveyDisk] = []
    gpu: list[str] = []
