"""What binding reads of a survey; everything else in it is let through."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Loose(BaseModel):
    """A part of a survey: raw observations, of which only some are read here."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)


class SurveyManagement(Loose):
    """Interface by which the survey was taken."""

    netdev: str
    address: str
    prefix: int


class SurveyLink(Loose):
    """One netdev of a device."""

    netdev: str
    mac: str
    bdf: str | None = None
    master: str | None = None


class SurveyDevice(Loose):
    """One RDMA device; ``driver`` is its kernel driver."""

    device: str
    netdev: str | None
    driver: str | None


class Survey(Loose):
    """What one host is."""

    schema_name: Literal["sparkring.survey/1"] = Field(alias="schema")
    hostname: str
    identity: str
    management: SurveyManagement | None
    links: list[SurveyLink]
    rdma: list[SurveyDevice]
