"""The NCCL library of a host: what takes its place, and what is refused with the old one left."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.node import elf, nccl_library, rank_states
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host
from ansible_collections.sparkring.cluster.plugins.module_utils.node.nccl_library import Wanted
from tests.fake_kernel import FakeKernel, Refusal

SOURCE = """
const char *ncclVersion(void) { return "NCCL version 2.30.7+cuda13.0"; }
extern int gettid(void); int ncclTid(void) { return gettid(); }
"""
NEWER = "GLIBC_2.30 {{ global: gettid; }}; {version} {{ global: newest; }};"
"""A C library of our own: gettid came with 2.30, and ``newest`` with a version that no glibc has."""


def compile_library(source: str, target: Path, *more: str, compiler: str = "gcc") -> Path:
    command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-x", "none", "-o", str(target), *more]
    subprocess.run(command, input=source.encode(), check=True)
    return target


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Shared libraries: one that calls itself NCCL, one that needs a newer glibc, one for another machine; two libc."""
    folder = tmp_path_factory.mktemp("nccl")
    script = folder / "versions"
    made = {"nccl": compile_library(SOURCE, folder / "nccl.so")}
    for name, version in (("old libc", "GLIBC_2.31"), ("new libc", "GLIBC_9.99")):
        script.write_text(NEWER.format(version=version))
        libc = "int gettid(void) { return 0; } int newest(void) { return 0; }"
        made[name] = compile_library(libc, folder / f"{name}.so", f"-Wl,--version-script={script}", "-nostdlib")
    needing = SOURCE + "extern int newest(void); int ncclNewest(void) { return newest(); }"
    made["newer"] = compile_library(needing, folder / "newer.so", str(made["new libc"]))
    other = "aarch64-linux-gnu-gcc" if os.uname().machine == "x86_64" else "x86_64-linux-gnu-gcc"
    made["other machine"] = compile_library(SOURCE, folder / "other.so", compiler=other)
    return made


@dataclass
class ImageKernel(FakeKernel):
    """A host with a container engine: files of images by image and path."""

    images: dict[str, dict[str, Path]] = field(default_factory=dict)
    containers: dict[str, str] = field(default_factory=dict)

    def _docker(self, words: list[str]) -> str:
        if words[0] == "create":
            image = words[-2]
            if image not in self.images:
                raise Refusal(f"No such image: {image}")
            self.containers[f"of-{image}"] = image
            return f"of-{image}\n"
        if words[0] == "cp":
            container, _, path = words[2].partition(":")
            found = self.images[self.containers[container]].get(path)
            if found is None:
                raise Refusal(f"Could not find the file {path} in container {container}")
            Path(words[3]).write_bytes(found.read_bytes())
            return ""
        assert words[:2] == ["rm", "--force"]
        del self.containers[words[2]]
        return ""


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wanted(library: Path, image: str | None = None) -> Wanted:
    digest = sha256(library)
    return Wanted(f"{nccl_library.DIRECTORY}/{digest}/libnccl.so.2", digest, "2.30.7", image)


def libc_path() -> str:
    return f"/lib/{os.uname().machine}-linux-gnu/libc.so.6"


@pytest.fixture
def kernel(tmp_path: Path, libraries: dict[str, Path]) -> ImageKernel:
    made = ImageKernel(tmp_path, {})
    libc = tmp_path / libc_path().lstrip("/")
    libc.parent.mkdir(parents=True)
    libc.write_bytes(libraries["old libc"].read_bytes())
    made.images = {
        "old": {libc_path(): libraries["old libc"], "/opt/libnccl.so.2": libraries["nccl"]},
        "new": {libc_path(): libraries["new libc"]},
        "musl": {},
    }
    return made


def host_of(kernel: ImageKernel) -> Host:
    return Host(kernel, kernel.root, lambda name: "/usr/bin/" + name, lambda device: 4096)


def refusal(kernel: ImageKernel, library: Wanted, fill: nccl_library.Fill) -> str:
    with pytest.raises(HostError) as refused:
        nccl_library.place(host_of(kernel), library, fill)
    assert kernel.containers == {}
    assert [path for path in kernel.root.rglob("libnccl*") if path.name != "libnccl.so.2"] == []
    return str(refused.value)


@pytest.mark.parametrize("image", [None, "old", "new"])
def test_a_file_takes_its_place(kernel: ImageKernel, libraries: dict[str, Path], image: str | None) -> None:
    host, library = host_of(kernel), wanted(libraries["nccl"], image)
    assert not nccl_library.lies(host, library)
    nccl_library.place(host, library, nccl_library.from_file(str(libraries["nccl"])))
    assert nccl_library.lies(host, library)
    assert host.path(library.path).stat().st_mode & 0o777 == 0o644
    assert kernel.containers == {}


def test_an_image_gives_it(kernel: ImageKernel, libraries: dict[str, Path]) -> None:
    host, library = host_of(kernel), wanted(libraries["nccl"], "old")
    nccl_library.place(host, library, nccl_library.from_image(host, "old", "/opt/libnccl.so.2"))
    assert nccl_library.lies(host, library)
    assert kernel.containers == {}


def test_removed_with_the_rank(kernel: ImageKernel, libraries: dict[str, Path]) -> None:
    host, library = host_of(kernel), wanted(libraries["nccl"])
    assert rank_states.reach(host, {"state": "absent"}, False) == {"changed": False, "changes": []}
    nccl_library.place(host, library, nccl_library.from_file(str(libraries["nccl"])))
    told = {"changed": True, "changes": [nccl_library.DIRECTORY]}
    assert rank_states.reach(host, {"state": "absent"}, True) == told
    assert nccl_library.lies(host, library)
    assert rank_states.reach(host, {"state": "absent"}, False) == told
    assert not host.path(nccl_library.DIRECTORY).exists()


def test_another_file_is_refused(kernel: ImageKernel, libraries: dict[str, Path]) -> None:
    library, given = wanted(libraries["nccl"]), libraries["newer"]
    said = refusal(kernel, library, nccl_library.from_file(str(given)))
    assert said == (
        f"SHA-256 of the NCCL library that was given is {sha256(given)}, expected {library.sha256}: set "
        "sparkring_nccl_from to where that library is, or describe the other one in sparkring_settings.nccl"
    )


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("nccl", {"version": "2.32.3"}, "calls itself 2.30.7, expected 2.32.3: correct the version"),
        ("old libc", {}, "calls itself unknown, expected 2.30.7"),
        ("newer", {}, "needs glibc 9.99, and this host has 2.31: give one that was built for it"),
        ("newer", {"image": "old"}, "needs glibc 9.99, and image old has 2.31: give one that was built for it"),
        ("nccl", {"image": "musl"}, "and image musl has none: give one that was built for it"),
        ("nccl", {"image": "absent"}, "Image absent is not on this host: bring it there first"),
        ("other machine", {}, f", and this host is {os.uname().machine}: choose another"),
    ],
)
def test_what_could_not_run_is_refused(
    kernel: ImageKernel, libraries: dict[str, Path], name: str, change: dict[str, str], sentence: str
) -> None:
    library = replace(wanted(libraries[name]), **change)
    assert sentence in refusal(kernel, library, nccl_library.from_file(str(libraries[name])))


def test_a_path_that_an_image_lacks_is_named(kernel: ImageKernel, libraries: dict[str, Path]) -> None:
    fill = nccl_library.from_image(host_of(kernel), "new", "/opt/libnccl.so.2")
    said = refusal(kernel, wanted(libraries["nccl"]), fill)
    assert said == "Image new has no /opt/libnccl.so.2: name the library's path in sparkring_nccl_from.path"


def test_the_old_file_stays_where_the_new_one_is_refused(kernel: ImageKernel, libraries: dict[str, Path]) -> None:
    host, library = host_of(kernel), wanted(libraries["nccl"])
    nccl_library.place(host, library, nccl_library.from_file(str(libraries["nccl"])))
    refusal(kernel, library, nccl_library.from_file(str(libraries["newer"])))
    assert nccl_library.lies(host, library)


def test_versions_are_those_that_readelf_prints(libraries: dict[str, Path]) -> None:
    libc = Path(libc_path())
    for path, read in ((libc, elf.glibc_defined), (libraries["nccl"], elf.glibc_needed)):
        told = subprocess.run(["readelf", "-VW", str(path)], capture_output=True, text=True, check=True).stdout
        versions = {tuple(map(int, found.split("."))) for found in re.findall(r"Name: GLIBC_([\d.]+)\b", told)}
        assert read(path.read_bytes()) == max(versions)


def test_every_cut_library_is_refused_and_none_is_misread(libraries: dict[str, Path]) -> None:
    """A library that is cut at any place gives an error, or the same answer."""
    data = libraries["newer"].read_bytes()
    for end in range(0, len(data), 7):
        try:
            found = elf.glibc_needed(data[:end])
        except elf.ElfError:
            continue
        assert found == (9, 99)
    with pytest.raises(elf.ElfError, match="no shared library"):
        elf.machine(b"#!/bin/sh\n")
