"""What both formats have: a command with defaults, patches of the image, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import reader

from . import command as commands
from . import shell
from .command import Command
from .found import Source
from .report import Report

Shape = TypeVar("Shape", bound=BaseModel)

BAKE = "make an image that has it"
RAY = ("mods/install-ray",)
"""Patches that only bring Ray, which is not used here."""


def validated(shape: type[Shape], source: Source) -> Shape:
    """The content as a foreign format's model; raises RecipeError with file, line and field."""
    return reader.validated(shape, source.path, source.content, source.lines)


def command(
    text: str,
    values: Mapping[str, str],
    fill: Callable[[str, Mapping[str, str]], str],
    report: Report,
) -> Command | None:
    """The command of a template; None where it is refused."""
    used = _used(text, values)
    for name in values:
        if name in used:
            report.mapped(f"defaults.{name}", f"{{{name}}} of command") if name != "model" else None
        elif name != "model":
            report.dropped(f"defaults.{name}", "the command does not use it")
    try:
        return commands.parse(shell.words(fill(text, values)))
    except shell.ShellError as error:
        report.refused("command", str(error))
        return None


def _used(text: str, values: Mapping[str, str]) -> set[str]:
    """The names that a template fills in, also those within the values of others."""
    used: set[str] = set()
    fresh = shell.names(text)
    while fresh := {name for name in fresh if name in values} - used:
        used |= fresh
        fresh = {inner for name in fresh for inner in shell.names(values[name])}
    return used


def flags_of_defaults(model: str, defaults: Mapping[str, Any], report: Report) -> Command | None:
    """The command that sparkrun makes where a recipe has none: each default is the flag of its name."""
    flags: dict[str, list[str]] = {}
    for name, value in defaults.items():
        flag = commands.spelled(NAMES.get(name, "--" + name))
        if value is None or value is False:
            report.dropped(f"defaults.{name}", "it sets no flag; write the flag's other form if one is meant")
            continue
        report.mapped(f"defaults.{name}", f"command.{flag}")
        flags[flag] = [] if value is True else [str(value)]
    return Command(["vllm", "serve"], model, flags)


NAMES = {
    "tensor_parallel": "--tensor-parallel-size",
    "pipeline_parallel": "--pipeline-parallel-size",
    "data_parallel": "--data-parallel-size",
}
"""Defaults that are not named as their flags are."""


def mods(path: str, given: list[str], report: Report) -> list[str]:
    """The patches that the image must hold."""
    needed = []
    for number, name in enumerate(given):
        if name in RAY:
            report.dropped(f"{path}.{number}", f"{name} brings Ray, which is not used here")
            continue
        report.dropped(f"{path}.{number}", f"{name} patches the container, which SparkRing never does; {BAKE}")
        needed.append(name)
    return needed


def build_args(given: list[str], report: Report) -> list[str]:
    """How the image is built, for the notes."""
    if given:
        report.dropped("build_args", "SparkRing builds no image; build it with its own project and write its id")
    return given
