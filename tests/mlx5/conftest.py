"""Builds the marker against real rdma-core headers and the recording stand-in, for several machines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "plugins/module_utils/node/marker_mlx5.c"
PACKAGES = "gcc libibverbs-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
STRICT = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
SANITIZE = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@dataclass(frozen=True)
class Machine:
    """How to build for a machine and run what was built."""

    compiler: str
    flags: list[str] = field(default_factory=list)
    runner: list[str] = field(default_factory=list)


MACHINES = {
    "native": Machine("gcc"),
    "sanitized": Machine("gcc", SANITIZE),
    "aarch64": Machine("aarch64-linux-gnu-gcc", [], ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
}


@dataclass
class Marker:
    """A built marker and its stand-in."""

    command: list[str]
    libraries: Path
    recording: Path

    def environment(self, devices: str = "rocep1s0f0:mlx5", **recording: str) -> dict[str, str]:
        """Environment of a run; keys become RECORDING_<KEY>."""
        return {
            **{key: value for key, value in os.environ.items() if key != "NOTIFY_SOCKET"},
            "LD_LIBRARY_PATH": str(self.libraries),
            "RECORDING": str(self.recording),
            "RECORDING_DEVICES": devices,
            **{f"RECORDING_{key.upper()}": value for key, value in recording.items()},
        }

    def run(self, *arguments: str, **recording: str) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        return subprocess.run(
            [*self.command, *arguments],
            env=self.environment(**recording),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *arguments: str, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Run in the background."""
        return subprocess.Popen(
            [*self.command, *arguments],
            env=environment or self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def calls(self, *kinds: str) -> list[dict[str, Any]]:
        """What the stand-in recorded, in order; only the given kinds of call if any are given."""
        if not self.recording.exists():
            return []
        lines = self.recording.read_text().splitlines()
        return [call for call in map(json.loads, lines) if not kinds or call["call"] in kinds]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[list[str], Path]]:
    """Builds for a machine, once."""
    done: dict[str, tuple[list[str], Path]] = {}

    def build(name: str) -> tuple[list[str], Path]:
        if name not in done:
            done[name] = _build(MACHINES[name], tmp_path_factory.mktemp(name))
        return done[name]

    return build


@pytest.fixture(params=list(MACHINES))
def marker(request: pytest.FixtureRequest, built: Callable[[str], tuple[list[str], Path]], tmp_path: Path) -> Marker:
    """The marker on every machine."""
    command, libraries = built(request.param)
    return Marker(command, libraries, tmp_path / "recording")


@pytest.fixture
def native(built: Callable[[str], tuple[list[str], Path]], tmp_path: Path) -> Marker:
    """The marker on this machine alone, for what is long."""
    command, libraries = built("native")
    return Marker(command, libraries, tmp_path / "recording")


def _build(machine: Machine, folder: Path) -> tuple[list[str], Path]:
    needed = [machine.compiler, *machine.runner[:1]]
    headers = Path("/usr/include/infiniband/mlx5dv.h")
    missing = [name for name in needed if shutil.which(name) is None] + [str(headers)] * (not headers.exists())
    if missing:
        pytest.fail(f"{', '.join(missing)} missing: apt-get install {PACKAGES}")
    include = folder / "include"
    include.mkdir()
    for part in ("infiniband", "rdma"):
        (include / part).symlink_to(f"/usr/include/{part}")
    compile_with = [machine.compiler, *STRICT, "-I", str(include)]
    shared = ["-shared", "-fPIC", "-o"]
    for library, source in (("libibverbs", "recording_ibverbs.c"), ("libmlx5", "recording_mlx5.c")):
        target = str(folder / f"{library}.so.1")
        _run([*compile_with, str(HERE / source), *shared, target, f"-Wl,-soname,{library}.so.1"])
        (folder / f"{library}.so").symlink_to(f"{library}.so.1")
    program = folder / "marker-mlx5"
    libraries = ["-L", str(folder), "-libverbs", "-lmlx5"]
    _run([*compile_with, *machine.flags, str(SOURCE), "-o", str(program), *libraries])
    return [*machine.runner, str(program)], folder


def _run(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stderr}"
