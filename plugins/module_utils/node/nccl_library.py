"""The NCCL library that a rank opens: put in its place by digest, from a file, a URL or an image that the host has.

Nothing takes the place before it is proved to be that library, to run on this machine, and to find a glibc that is new
enough where it is opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Optional

from ..contract import marks
from . import elf
from .commands import HostError
from .host import Host

DIRECTORY = marks.LIB_DIR + "/nccl"
CALLS_ITSELF = re.compile(rb"NCCL version (\d+\.\d+\.\d+)")
"""How NCCL names its version in its own text (NCCL, src/init.cc: VERSION_STRING)."""
LIBC = ("/lib/{machine}-linux-gnu/libc.so.6", "/lib64/libc.so.6")
"""Where glibc lies: Debian and its kin, Red Hat's."""
COPY_SECONDS = 600.0

Fill = Callable[[BinaryIO], None]
"""Writes the library into an open file."""


@dataclass(frozen=True)
class Wanted:
    """A library and its place. ``sha256`` is 64 hex digits; ``image`` is whose glibc it meets, None for the host's."""

    path: str
    sha256: str
    version: str
    image: Optional[str]


def lies(host: Host, wanted: Wanted) -> bool:
    """Whether that very file is in its place."""
    try:
        with open(host.path(wanted.path), "rb") as stream:
            return digest(stream) == wanted.sha256
    except OSError:
        return False


def place(host: Host, wanted: Wanted, fill: Fill) -> None:
    """Put the library in its place; raises HostError and leaves what was there where it is not the wanted one."""
    with host.replacing(wanted.path, 0o644) as stream:
        fill(stream)
        stream.flush()
        stream.seek(0)
        found = digest(stream)
        if found != wanted.sha256:
            raise HostError(
                f"SHA-256 of the NCCL library that was given is {found}, expected {wanted.sha256}: "
                "set sparkring_nccl_from to where that library is, or describe the other one in sparkring_settings.nccl"
            )
        _fits(host, wanted, stream)


def remove(host: Host, check: bool) -> list[str]:
    """Take all libraries away; the folder, where there was one."""
    if not host.path(DIRECTORY).is_dir():
        return []
    if not check:
        shutil.rmtree(host.path(DIRECTORY))
    return [DIRECTORY]


def digest(stream: BinaryIO) -> str:
    """SHA-256 of a file from where it stands, as 64 hex digits."""
    made = hashlib.sha256()
    while part := stream.read(1 << 20):
        made.update(part)
    return made.hexdigest()


def from_file(path: str) -> Fill:
    """Take it from a file of this host."""

    def fill(stream: BinaryIO) -> None:
        with open(path, "rb") as given:
            shutil.copyfileobj(given, stream, 1 << 20)

    return fill


def from_image(host: Host, image: str, path: str) -> Fill:
    """Take it out of an image that this host has; nothing of the image runs."""

    def fill(stream: BinaryIO) -> None:
        with _inside(host, image) as copied:
            found = copied(path)
            if found is None:
                raise HostError(f"Image {image} has no {path}: name the library's path in sparkring_nccl_from.path")
            from_file(found)(stream)

    return fill


def _fits(host: Host, wanted: Wanted, stream: BinaryIO) -> None:
    """Raise HostError where this machine, or whatever opens it, could not run the library."""
    with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            machine, needed = elf.machine(data), elf.glibc_needed(data)
        except elf.ElfError as error:
            raise HostError(f"The NCCL library {wanted.sha256} cannot be used: {error}; choose another one") from error
        if machine != os.uname().machine:
            raise HostError(f"The NCCL library is for {machine}, and this host is {os.uname().machine}: choose another")
        said = CALLS_ITSELF.search(data)
        version = said[1].decode() if said else "unknown"
        if version != wanted.version:
            raise HostError(
                f"The NCCL library calls itself {version}, expected {wanted.version}: correct the version in "
                "sparkring_settings.nccl, or give another library"
            )
    where = "this host" if wanted.image is None else f"image {wanted.image}"
    there = _glibc(host, wanted.image)
    if needed > there:
        raise HostError(
            f"The NCCL library needs glibc {_dotted(needed)}, and {where} has {_dotted(there)}: "
            "give one that was built for it"
        )


def _glibc(host: Host, image: str | None) -> elf.Version:
    """The version of glibc on the host or in an image."""
    places = [place.format(machine=os.uname().machine) for place in LIBC]
    if image is None:
        return max(_defined(str(host.path(place))) for place in places)
    with _inside(host, image) as copied:
        return max(_defined(copied(place) or "") for place in places)


def _defined(path: str) -> elf.Version:
    try:
        with open(path, "rb") as stream:
            return elf.glibc_defined(stream.read())
    except (OSError, elf.ElfError):
        return (0,)


def _dotted(version: elf.Version) -> str:
    return ".".join(map(str, version)) if version != (0,) else "none"


@contextlib.contextmanager
def _inside(host: Host, image: str) -> Iterator[Callable[[str], str | None]]:
    """Copies files out of an image: from a path in it to one on this host, None where there is none."""
    made = host.runner.execute(["docker", "create", "--pull", "never", "--network", "none", image, "none"], None, 60)
    if made.status != 0:
        raise HostError(f"Image {image} is not on this host: bring it there first")
    container = made.output.strip()
    try:
        with tempfile.TemporaryDirectory(prefix="sparkring-", dir="/var/tmp") as folder:

            def copied(path: str) -> str | None:
                target = f"{folder}/{path.replace('/', '_')}"
                command = ["docker", "cp", "--follow-link", f"{container}:{path}", target]
                return target if host.runner.execute(command, None, COPY_SECONDS).status == 0 else None

            yield copied
    finally:
        host.runner.execute(["docker", "rm", "--force", container], None, 60)
