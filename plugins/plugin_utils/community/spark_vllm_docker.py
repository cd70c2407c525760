"""The recipes of eugr/spark-vllm-docker, ``recipe_version: "1"``."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from . import parts, shell
from .found import Found, Source
from .report import Report

NAME = "spark-vllm-docker"
Scalar = str | int | float | bool | None

WITHOUT = {
    "recipe_version": "it names the format",
    "pull_image": "images are laid on every host before a rank starts, and none is pulled then",
    "cluster_only": "parallel says how many hosts it takes",
}
"""Keys that say nothing a recipe carries."""


class Shape(BaseModel):
    """What is read of it. Other keys are let in, to be reported."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    description: str | None = None
    model: str | None = None
    model_revision: str | None = None
    container: str
    command: str
    solo_only: bool = False
    build_args: list[str] = []
    mods: list[str] = []
    defaults: dict[str, Scalar] = {}
    env: dict[str, Scalar] = {}


def read(source: Source, report: Report) -> Found:
    """The recipe in a file of this format."""
    shape = parts.validated(Shape, source)
    report.mapped("name", "title")
    if shape.description is not None:
        report.mapped("description", "notes")
    found = Found(
        format=NAME,
        title=shape.name,
        notes=shape.description or "",
        model=shape.model,
        revision=shape.model_revision,
        image=shape.container,
        command=parts.command(shape.command, _values(shape.defaults), shell.fill_doubled, report),
        environment=dict(shape.env),
        image_needs=parts.mods("mods", shape.mods, report),
        image_built=parts.build_args(shape.build_args, report),
    )
    if shape.solo_only:
        found.most = ("solo_only", 1)
    report.drop_known("", _others(shape), WITHOUT)
    return found


def _values(defaults: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in defaults.items() if value is not None}


def _others(shape: Shape) -> list[str]:
    return list(shape.model_extra or {})
