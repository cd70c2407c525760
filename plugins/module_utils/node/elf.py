"""What a shared library of 64 bits says of itself: its machine, and the symbol versions that it needs or defines.

Read here because a host need not have binutils, and loading the file would run it as root. Names and numbers are those
of the System V ABI and of <elf.h>.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from mmap import mmap
from typing import Union

Data = Union[bytes, mmap]
Version = tuple[int, ...]

MACHINES: dict[int, str] = {62: "x86_64", 183: "aarch64"}
"""e_machine, by the name that uname gives."""
VERDEF, VERNEED = 0x6FFFFFFD, 0x6FFFFFFE
GLIBC = re.compile(r"GLIBC_(\d+(?:\.\d+)+)$")


class ElfError(ValueError):
    """The file is no such library, or is cut off."""


def machine(data: Data) -> str:
    """The machine it runs on, as uname names it; raises ElfError."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ElfError("it is no shared library of 64 bits")
    (number,) = _unpack("<H", data, 18)
    return MACHINES.get(number, f"machine {number}")


def glibc_needed(data: Data) -> Version:
    """The newest version of glibc that it needs, (0,) where it asks for none; raises ElfError."""
    return max((found for name in _needed(data) for found in _glibc(name)), default=(0,))


def glibc_defined(data: Data) -> Version:
    """The version of glibc that it is, (0,) where it is none; raises ElfError."""
    return max((found for name in _defined(data) for found in _glibc(name)), default=(0,))


def _glibc(name: str) -> Iterator[Version]:
    if found := GLIBC.match(name):
        yield tuple(map(int, found[1].split(".")))


def _needed(data: Data) -> Iterator[str]:
    """Elfw(Verneed) is a list of libraries, each with a list of Elfw(Vernaux)."""
    for start, names in _sections(data, VERNEED):
        place = start
        while True:
            _, count, _, auxiliary, following = _unpack("<HHIII", data, place)
            entry = place + auxiliary
            for _ in range(count):
                _, _, _, name, step = _unpack("<IHHII", data, entry)
                yield _text(data, names + name)
                entry += step
            if not following:
                break
            place += following


def _defined(data: Data) -> Iterator[str]:
    """Elfw(Verdef) is a list of versions, each with its name in the first Elfw(Verdaux)."""
    for start, names in _sections(data, VERDEF):
        place = start
        while True:
            _, _, _, _, _, auxiliary, following = _unpack("<HHHHIII", data, place)
            (name,) = _unpack("<I", data, place + auxiliary)
            yield _text(data, names + name)
            if not following:
                break
            place += following


def _sections(data: Data, wanted: int) -> Iterator[tuple[int, int]]:
    """Where sections of a type begin, and where the strings that they link to do, as offsets in bytes."""
    machine(data)
    (table,) = _unpack("<Q", data, 40)
    size, count = _unpack("<HH", data, 58)
    headers = [_unpack("<IIQQQQII", data, table + size * number) for number in range(count)]
    for header in headers:
        if header[1] == wanted:
            if header[6] >= count:
                raise ElfError("its section headers are damaged")
            yield header[4], headers[header[6]][4]


def _unpack(layout: str, data: Data, place: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(layout, data, place)
    except struct.error as error:
        raise ElfError("it is cut off") from error


def _text(data: Data, place: int) -> str:
    end = data.find(b"\0", place)
    if end < 0:
        raise ElfError("it is cut off")
    return data[place:end].decode(errors="replace")
