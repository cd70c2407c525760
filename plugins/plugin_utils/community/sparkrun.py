"""The recipes of spark-arena/sparkrun, ``recipe_version: "2"``."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from . import parts, shell
from .command import Command
from .found import Found, Source
from .report import Report

NAME = "sparkrun"
Scalar = str | int | float | bool | None

RUNTIMES = ("", "vllm", "vllm-distributed", "vllm-ray", "eugr-vllm")
"""Those that start vLLM."""
WITHOUT = {
    "recipe_version": "it names the format",
    "runtime_version": "the image's digest says which version runs",
    "cluster_only": "parallel says how many hosts it takes",
    "mode": "parallel says how many hosts it takes",
    "executor": "every rank runs in Docker Engine, started by a unit",
    "builder": "SparkRing builds no image",
    "builder_config": "SparkRing builds no image",
    "post_exec": "no command runs after the start; a real completion shows that it serves",
    "post_commands": "no command runs after the start; a real completion shows that it serves",
    "stop_after_post": "a deployment is served until it is stopped",
    "benchmark": "it measures, and changes nothing of what is served",
    "runtime_cache": "the recipe's container.mounts say what outlives a container",
    "distribution_config": "checkpoints are laid on the hosts apart from the recipe",
    "cluster_config": "it belongs to one cluster; settings of the ring say where things lie",
}
METADATA = "it describes, and changes nothing of what is served"
EXECUTOR = {
    "privileged": "no container is privileged; it is given /dev/infiniband, locked memory and the GPUs",
    "auto_remove": "a unit starts and removes its container",
    "restart_policy": "all ranks stop and start together, and a unit sees to it",
    "gpus": "a container is given all GPUs of its host",
    "gpu_access_mode": "a container is given all GPUs of its host",
    "network": "a container has the network of its host",
    "ipc": "a container has the IPC of its host",
    "ulimit": "a container may lock all its memory, and has no other limit set",
    "devices": "a container is given /dev/infiniband and the GPUs, and no other device",
    "user": "the image says as whom it runs",
    "labels": "a container has the labels of its deployment",
}
CAPABILITIES = ("IPC_LOCK", "SYS_NICE")
"""Those that give a container nothing over its host but memory and priority."""
OPTIONS = ("label=disable",)
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Shape(BaseModel):
    """What is read of it. Other keys are let in, to be reported."""

    model_config = ConfigDict(extra="allow", frozen=True)

    model: str
    model_revision: str | None = None
    runtime: str = ""
    container: str | None = None
    containers: list[Any] = []
    executor: str = "docker"
    solo_only: bool = False
    mode: Literal["auto", "solo", "cluster"] = "auto"
    min_nodes: int | None = None
    max_nodes: int | None = None
    metadata: dict[str, Any] = {}
    defaults: dict[str, Scalar] = {}
    env: dict[str, Scalar] = {}
    command: str | None = None
    executor_config: dict[str, Any] = {}
    readiness: dict[str, Any] = {}
    pre_exec: list[Any] = []
    mods: list[str] = []
    build_args: list[str] = []


def read(source: Source, report: Report) -> Found:
    """The recipe in a file of this format."""
    shape = parts.validated(Shape, source)
    found = Found(
        format=NAME,
        title=_title(shape, report),
        model=shape.model,
        revision=shape.model_revision,
        image=shape.container,
        command=_command(shape, report),
        environment=dict(shape.env),
        image_needs=[*parts.mods("mods", shape.mods, report), *_before(shape.pre_exec, report)],
        image_built=parts.build_args(shape.build_args, report),
    )
    _hosts(shape, found, report)
    _executor(shape, found, report)
    _readiness(shape.readiness, found, report)
    if shape.containers:
        report.refused("containers", "every rank runs the same image; give the one under container")
    report.drop_known("", _others(shape), WITHOUT)
    return found


def _title(shape: Shape, report: Report) -> str:
    told = str(shape.metadata.get("description") or "").strip()
    if told:
        report.mapped("metadata.description", "title")
    report.drop_known(
        "metadata.",
        [name for name in shape.metadata if name != "description" or not told],
        dict.fromkeys(shape.metadata, METADATA),
    )
    return told or shape.model


def _command(shape: Shape, report: Report) -> Command | None:
    if shape.runtime not in RUNTIMES:
        report.refused("runtime", f"it is {shape.runtime}, and SparkRing serves with vLLM")
        return None
    if "runtime" in shape.model_fields_set:
        report.dropped("runtime", "vLLM is what SparkRing serves with, its own ranks in the place of Ray")
    values = {"model": shape.model} | {name: str(value) for name, value in shape.defaults.items() if value is not None}
    if shape.command is not None:
        return parts.command(shape.command, values, shell.fill_plain, report)
    return parts.flags_of_defaults(shape.model, shape.defaults, report)


def _before(given: list[Any], report: Report) -> list[str]:
    for number, item in enumerate(given):
        what = "copies files into" if isinstance(item, dict) else "runs a command in"
        report.dropped(f"pre_exec.{number}", f"it {what} the container, which SparkRing never does; {parts.BAKE}")
    return [f"pre_exec.{number}" for number in range(len(given))]


def _hosts(shape: Shape, found: Found, report: Report) -> None:
    if shape.solo_only:
        found.most = ("solo_only", 1)
    elif shape.mode == "solo":
        found.most = ("mode", 1)
    elif shape.max_nodes is not None:
        found.most = ("max_nodes", shape.max_nodes)
    if shape.min_nodes is not None:
        found.least = ("min_nodes", shape.min_nodes)


def _executor(shape: Shape, found: Found, report: Report) -> None:
    if shape.executor != "docker":
        report.refused("executor", f"it is {shape.executor}, and every rank runs in Docker Engine")
    elif "executor" in shape.model_fields_set:
        report.dropped("executor", WITHOUT["executor"])
    for name, value in shape.executor_config.items():
        path = f"executor_config.{name}"
        if name in ("cap_add", "security_opt") and not isinstance(value or [], list):
            report.refused(path, "it is no list")
        elif name == "cap_add":
            _capabilities(path, value or [], found, report)
        elif name == "security_opt":
            _options(path, value or [], found, report)
        elif name == "shm_size":
            _size(path, value, "shared_memory", found, report)
        elif name == "memory_limit":
            _size(path, value, "memory_bytes", found, report)
        elif name == "entrypoint" and value:
            report.refused(path, "a program of the image would start the engine; SparkRing starts it directly")
        elif name == "entrypoint":
            report.mapped(path, "image.entrypoint")
        else:
            report.drop_known("executor_config.", [name], EXECUTOR)


def _capabilities(path: str, given: list[Any], found: Found, report: Report) -> None:
    for number, name in enumerate(map(str, given)):
        if name in CAPABILITIES:
            found.container.setdefault("add_capabilities", []).append(name)
            report.mapped(f"{path}.{number}", "container.add_capabilities")
        else:
            report.refused(f"{path}.{number}", f"{name} gives the container power over its host")


def _options(path: str, given: list[Any], found: Found, report: Report) -> None:
    for number, name in enumerate(map(str, given)):
        if name in OPTIONS:
            found.container.setdefault("security_options", []).append(name)
            report.mapped(f"{path}.{number}", "container.security_options")
        elif name.startswith("no-new-privileges"):
            report.dropped(f"{path}.{number}", "every container has it")
        else:
            report.refused(f"{path}.{number}", f"{name} loosens what keeps the container apart from its host")


def _size(path: str, value: Any, ours: str, found: Found, report: Report) -> None:
    size = re.fullmatch(r"(\d+)([kmg]?)(?:i?b)?", str(value).strip().lower())
    if size is None:
        report.dropped(path, f"{value} is no whole number of bytes, m or g; write container.{ours}")
    elif ours == "memory_bytes":
        found.container[ours] = int(size[1]) * UNITS[size[2]]
        report.mapped(path, f"container.{ours}")
    elif size[2] in ("m", "g"):
        found.container[ours] = size[1] + size[2]
        report.mapped(path, f"container.{ours}")
    else:
        report.dropped(path, f"{value} is not in m or g; write container.{ours}")


def _readiness(given: dict[str, Any], found: Found, report: Report) -> None:
    for name, value in given.items():
        if name == "port_timeout_s" and isinstance(value, int) and value > 0:
            found.startup["timeout_seconds"] = value
            report.mapped("readiness.port_timeout_s", "startup.timeout_seconds")
        else:
            report.dropped(f"readiness.{name}", "a real completion shows that it serves")


def _others(shape: Shape) -> list[str]:
    told = [name for name in ("mode",) if name in shape.model_fields_set and shape.mode != "solo"]
    return [*told, *(shape.model_extra or {})]
