"""The receipt document, ``sparkring.receipt/1``."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """A part of the receipt: no unknown field, no change afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Answer(Strict):
    """What one question found; ``fix`` is empty when it holds."""

    id: str
    subject: str
    ok: bool
    expected: str
    found: str
    fix: str


class CheckResult(Answer):
    """The answer to one question on one host."""

    host: str


class LaneResult(Answer):
    """The RDMA write over one lane; packets and datagrams are counted by relay host."""

    lane: str
    source: str = Field(alias="from")
    target: str = Field(alias="to")
    index: int
    relays: list[str]
    gbps: float | None
    relay_packets: dict[str, int]
    return_packets: dict[str, int]
    forwarded: dict[str, int]


class HostVersions(Strict):
    """What one host runs, as its survey shows it; null where no survey was given."""

    driver: str
    kernel: str | None
    os: str | None
    machine: str | None
    firmware: list[str]


class Versions(Strict):
    """What the verification was made with."""

    collection: str
    ansible_core: str
    hosts: dict[str, HostVersions]


class Receipt(Strict):
    """What was verified of one ring, when, with what, and what that does not show.

    ``evidence`` is ``hardware`` only when every host's survey shows mlx5 firmware and every
    relay filter is in hardware, ``rehearsed`` when a host is virtual, else ``none``.
    """

    schema_name: Literal["sparkring.receipt/1"] = Field(default="sparkring.receipt/1", alias="schema")
    verb: Literal["verify"] = "verify"
    ring: str
    layout: str
    plan_digest: str
    made: str
    ok: bool
    summary: str
    evidence: Literal["hardware", "rehearsed", "none"]
    hosts: list[str]
    versions: Versions
    checks: list[CheckResult]
    lanes: list[LaneResult]
    limitations: list[str]
