"""A rank's unit as systemd reads it, and its environment as systemd or the container engine reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ansible_collections.sparkring.cluster.plugins.module_utils.contract import marks, rank_unit
from ansible_collections.sparkring.cluster.plugins.module_utils.contract.rank_unit import Image, RankUnit

DOCKER = "/usr/bin/docker"
_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


def unit_text(unit: RankUnit) -> str:
    """The unit file."""
    return "\n".join([marks.FILE_HEADER, *_unit(unit), "", *_service(unit)]) + "\n"


def environment_text(unit: RankUnit) -> str:
    """The environment file: the engine of containers takes lines as they are, systemd wants values quoted."""
    write = str if unit.engine == "container" else _quoted
    return "".join(f"{name}={write(value)}\n" for name, value in sorted(unit.environment.items()))


def _unit(unit: RankUnit) -> Iterator[str]:
    yield "[Unit]"
    yield f"Description=Rank {unit.rank} of {unit.deployment} on ring {unit.ring}"
    yield f"# Recipe {unit.recipe}: {unit.status}"
    if unit.changed:
        yield f"# Changed from the recipe: {', '.join(unit.changed)}"
    yield f"# Plan {unit.plan_digest}"
    yield f"# Equal on all {unit.ranks} ranks: {unit.invariant}"
    engine = ["docker.service"] if unit.engine == "container" else []
    yield f"After={' '.join(['network-online.target', marks.FABRIC_UNIT, *engine])}"
    yield "Wants=network-online.target"
    if engine:
        yield "Requires=docker.service"


def _service(unit: RankUnit) -> Iterator[str]:
    yield "[Service]"
    yield "Type=exec"
    if unit.gids:
        yield _exec("ExecStartPre", ["/usr/bin/python3", "-IS", marks.PROGRAM_PATH, "gids"])
    if unit.image is not None:
        yield from _container(unit, unit.image)
    else:
        yield from _program(unit)
    yield "LimitMEMLOCK=infinity"
    yield f"TimeoutStartSec={unit.timeout_seconds}"
    yield "TimeoutStopSec=120"
    yield "KillMode=mixed"
    yield "Restart=no"


def _container(unit: RankUnit, image: Image) -> Iterator[str]:
    entry = image.entrypoint or []
    words = [DOCKER, "run", *unit.options, "--env-file", rank_unit.ENVIRONMENT_PATH]
    words += ["--env-file", rank_unit.GID_PATH] if unit.gids else []
    words += ["--entrypoint", entry[0]] if entry else []
    yield _exec("ExecStart", [*words, image.run, *entry[1:], *unit.command])
    # The container is no child of this unit: what the engine still runs is taken away by name.
    yield f"ExecStopPost=-{DOCKER} rm --force {unit.container}"


def _program(unit: RankUnit) -> Iterator[str]:
    # What vLLM and torch compile goes below HOME, the one place that every rank may write.
    yield f"CacheDirectory=sparkring/{unit.deployment}"
    yield f"Environment=HOME=%C/sparkring/{unit.deployment}"
    yield "LimitNOFILE=65536"
    yield f"EnvironmentFile={rank_unit.ENVIRONMENT_PATH}"
    if unit.gids:
        yield f"EnvironmentFile={rank_unit.GID_PATH}"
    if unit.rank == 0:
        yield f"EnvironmentFile={rank_unit.KEY_PATH}"
    yield _exec("ExecStart", unit.command)
    yield "NoNewPrivileges=yes"
    yield "CapabilityBoundingSet=CAP_IPC_LOCK"
    yield "ProtectSystem=strict"
    yield "ProtectHome=read-only"
    yield "PrivateTmp=yes"
    for folder in unit.folders:
        if folder.write:
            yield f"ReadWritePaths={folder.source}"


def _exec(key: str, words: list[str]) -> str:
    """One line an option, its value beside it; what is no option stays together."""
    lines = [_word(words[0])]
    for word in words[1:]:
        full = len(lines) > 1 and lines[-1].startswith("-") and " " in lines[-1]
        if word.startswith("-") or full:
            lines.append(_word(word))
        else:
            lines[-1] += f" {_word(word)}"
    return f"{key}=" + " \\\n  ".join(lines)


def _word(word: str) -> str:
    """A word of an Exec line: specifiers and variables are doubled, all else is quoted where it must be."""
    safe = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(safe):
        return safe
    escaped = safe.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _quoted(value: str) -> str:
    """A value of an environment file, where systemd expands nothing between double quotes but backslashes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
