"""The NCCL library out of a real image, and the glibc of one."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import nccl_library
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host
from ansible_collections.sparkring.cluster.plugins.module_utils.node.nccl_library import Wanted
from tests.engine.conftest import Made, docker


@pytest.fixture
def library(images: dict[str, Made], tmp_path: Path) -> tuple[Wanted, str]:
    """A library that lies in an image, behind a link, and the image."""
    source = b'const char *ncclVersion(void) { return "NCCL version 2.30.7"; }'
    made = tmp_path / "libnccl.so.2.30.7"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(made)], input=source, check=True)
    (tmp_path / "libnccl.so.2").symlink_to(made.name)
    container = docker("create", images["right"].id, "none")
    for name in (made.name, "libnccl.so.2"):
        docker("cp", str(tmp_path / name), f"{container}:/opt/{name}")
    image = docker("commit", container)
    docker("rm", container)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    return Wanted(f"{tmp_path}/placed/libnccl.so.2", digest, "2.30.7", image), image


def test_an_image_gives_the_library(library: tuple[Wanted, str]) -> None:
    wanted, image = library
    host, before = Host(), docker("ps", "--all", "--quiet")
    nccl_library.place(host, wanted, nccl_library.from_image(host, image, "/opt/libnccl.so.2"))
    assert nccl_library.lies(host, wanted)
    assert docker("ps", "--all", "--quiet") == before
    docker("image", "rm", image)


def test_a_path_that_it_lacks_is_named(library: tuple[Wanted, str]) -> None:
    wanted, image = library
    host = Host()
    with pytest.raises(HostError) as refused:
        nccl_library.place(host, wanted, nccl_library.from_image(host, image, "/opt/none"))
    assert str(refused.value) == f"Image {image} has no /opt/none: name the library's path in sparkring_nccl_from.path"
    docker("image", "rm", image)
