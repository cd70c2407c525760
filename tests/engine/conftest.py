"""A real container engine, a registry on loopback, and an image made from the lab's Debian packages."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.lab.image import build_rootfs
from tests.ci import containers

ROOT = Path(__file__).resolve().parents[2]
PORT = 15005
NAME = f"127.0.0.1:{PORT}/standin"
ENTRYPOINT = ["/opt/standin", "serve"]
REGISTRY = """
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Made:
    """An image in the registry and on this machine."""

    reference: str
    digest: str
    id: str


def derive(base: str, reference: str, entrypoint: list[str]) -> Made:
    """An image that holds the stand-in, pushed so that it has a digest."""
    container = docker("create", base, "none")
    with tempfile.TemporaryDirectory() as folder:
        standin = Path(shutil.copy(ROOT / "tests/serving/standin.py", folder))
        standin.chmod(0o755)
        docker("cp", str(standin), f"{container}:/opt/standin")
    docker("commit", "--change", f"ENTRYPOINT {json.dumps(entrypoint)}", container, reference)
    docker("rm", container)
    docker("push", "--quiet", reference)
    told: dict[str, Any] = json.loads(docker("image", "inspect", "--format", "{{json .}}", reference))
    return Made(reference, told["RepoDigests"][0].partition("@")[2], told["Id"])


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("registry")
    config = folder / "config.yml"
    config.write_text(REGISTRY.format(folder=folder, port=PORT))
    with subprocess.Popen(
        ["docker-registry", "serve", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    ) as server:
        try:
            wait("the registry", lambda: socket.socket().connect_ex(("127.0.0.1", PORT)) == 0)
            yield
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def images(registry: None) -> Iterator[dict[str, Made]]:
    """``right`` is the recipe's image, ``other`` one with another entrypoint."""
    rootfs, _built = build_rootfs(str(ROOT / ".lab"))
    containers.STATE.mkdir(parents=True, exist_ok=True)
    containers.engine()
    base = containers.image(rootfs)
    try:
        yield {
            "right": derive(base, f"{NAME}:1", ENTRYPOINT),
            "other": derive(base, f"{NAME}:other", ["/bin/sh", "-c"]),
        }
    finally:
        for name in docker("image", "ls", "--quiet", NAME).split():
            subprocess.run(["docker", "image", "rm", "--force", name], capture_output=True, check=False)
        containers.stop("engine")


def wait(what: str, holds: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not come within {seconds} s"
        time.sleep(0.2)
