"""The command of a foreign recipe: what is started, its model, its flags."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .shell import ShellError

ALIASES = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dcp": "--decode-context-parallel-size",
    "-dp": "--data-parallel-size",
}
SERVER = "vllm.entrypoints.openai.api_server"

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_FLAG = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)


@dataclass
class Command:
    """``entrypoint`` is what runs, ``environment`` what stood before it. A flag without a word after it is bare."""

    entrypoint: list[str]
    model: str | None
    flags: dict[str, list[str]]
    environment: dict[str, str] = field(default_factory=dict)
    how: str = "positional"


def parse(given: list[str]) -> Command:
    """The command in its words; raises ShellError where it is not one start of vLLM's server."""
    rest, environment = list(given), {}
    while rest and (found := _ASSIGNMENT.fullmatch(rest[0])):
        environment[found[1]] = found[2]
        del rest[0]
    if rest and rest[0] == "exec":
        del rest[0]
    size = _entrypoint(rest)
    entrypoint, rest = rest[:size], rest[size:]
    how = "--model" if entrypoint[-1] == SERVER else "positional"
    model = rest.pop(0) if rest and how == "positional" and not _FLAG.fullmatch(rest[0]) else None
    flags = _flags(rest)
    if "--model" in flags:
        model, how = _single("--model", flags.pop("--model")), "--model"
    return Command(entrypoint, model, flags, environment, how)


def _entrypoint(given: list[str]) -> int:
    """How many words start the server."""
    first = given[0].rpartition("/")[2] if given else ""
    if first == "vllm" and given[1:2] == ["serve"]:
        return 2
    if re.fullmatch(r"python3?(\.\d+)?", first) and given[1:3] == ["-m", SERVER]:
        return 3
    raise ShellError(f"it starts {given[0] if given else 'nothing'}, and only a plain vllm serve is carried")


def _flags(given: list[str]) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    flag = None
    for word in given:
        found = _FLAG.fullmatch(word)
        if found is None:
            if flag is None:
                raise ShellError(f"its word {word} belongs to no flag")
            made[flag].append(word)
            continue
        flag = spelled(found[1])
        if flag in made:
            raise ShellError(f"{flag} is given twice; remove one")
        made[flag] = [found[2]] if found[2] is not None else []
    return made


def spelled(flag: str) -> str:
    """A flag as the engine's help spells it: long, with dashes; what follows a dot is a name of its own."""
    first, dot, rest = flag.partition(".")
    if first.startswith("--"):
        first = first.replace("_", "-")
    return ALIASES.get(first, first) + dot + rest


def _single(flag: str, given: list[str]) -> str:
    if len(given) != 1:
        raise ShellError(f"{flag} needs one word after it")
    return given[0]
