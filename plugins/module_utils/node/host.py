"""This host as the library sees it: its tools, and its files below one root."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from .commands import SEARCH_PATH, HostError, Runner


def find_tool(name: str) -> str | None:
    """Path of a tool, or None."""
    return shutil.which(name, path=SEARCH_PATH)


def port_mtu(device: str) -> int | None:
    """Active MTU in bytes of port 1 of an RDMA device; None where libibverbs cannot tell.

    The kernel shows it in no file and ``rdma`` does not print it, so the library is asked.
    """
    import ctypes  # only a survey and the checks need it, and every boot unit would pay for it

    try:
        verbs = ctypes.CDLL("libibverbs.so.1")
    except OSError:
        return None
    verbs.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    verbs.ibv_get_device_name.restype = ctypes.c_char_p
    verbs.ibv_get_device_name.argtypes = [ctypes.c_void_p]
    verbs.ibv_open_device.restype = ctypes.c_void_p
    verbs.ibv_open_device.argtypes = [ctypes.c_void_p]
    verbs.ibv_query_port.argtypes = [ctypes.c_void_p, ctypes.c_uint8, ctypes.c_void_p]
    verbs.ibv_close_device.argtypes = [ctypes.c_void_p]
    verbs.ibv_free_device_list.argtypes = [ctypes.c_void_p]
    count = ctypes.c_int()
    devices = verbs.ibv_get_device_list(ctypes.byref(count))
    if not devices:
        return None
    try:
        for index in range(count.value):
            if (verbs.ibv_get_device_name(devices[index]) or b"").decode() != device:
                continue
            context = verbs.ibv_open_device(devices[index])
            if not context:
                return None
            attributes = (ctypes.c_uint32 * 64)()
            failed = verbs.ibv_query_port(context, 1, ctypes.byref(attributes))
            verbs.ibv_close_device(context)
            # struct ibv_port_attr begins: state, max_mtu, active_mtu; IBV_MTU_256 is 1.
            return None if failed or not 1 <= attributes[2] <= 5 else 128 << attributes[2]
    finally:
        verbs.ibv_free_device_list(devices)
    return None


def _settle(folder: Path) -> None:
    """See the names in a directory on the disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _named(error: Exception, path: str) -> Exception:
    """What to say of a file that could not be written."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HostError(f"No space left for {path}: free some and run again")
    return error


class Host:
    """Access to one host. Every path given to its methods is absolute on that host."""

    def __init__(
        self,
        runner: Runner | None = None,
        root: Path = Path("/"),
        find_tool: Callable[[str], str | None] = find_tool,
        port_mtu: Callable[[str], int | None] = port_mtu,
    ) -> None:
        self.runner = runner or Runner()
        self.root = root
        self.find_tool = find_tool
        self.port_mtu = port_mtu

    def path(self, path: str) -> Path:
        """The real path of a path on the host."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str | None:
        """Text of a file without its last newline; None where it cannot be read."""
        data = self.read_bytes(path)
        return None if data is None else data.decode(errors="replace").rstrip("\n")

    def read_bytes(self, path: str) -> bytes | None:
        """Bytes of a file; None where it cannot be read."""
        try:
            return self.path(path).read_bytes()
        except OSError:
            return None

    def read_integer(self, path: str) -> int | None:
        """A file that holds one number; None where it cannot be read or holds none."""
        try:
            return int(self.read(path) or "")
        except ValueError:
            return None

    def link_name(self, path: str) -> str | None:
        """Last part of what a symbolic link points to; None where it is no link."""
        try:
            return os.path.basename(os.readlink(self.path(path)))
        except OSError:
            return None

    def names(self, path: str) -> list[str]:
        """Sorted names in a directory; empty where there is none."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError:
            return []

    def write(self, path: str, data: bytes, mode: int) -> None:
        """Replace a file by bytes, as ``replacing`` does."""
        with self.replacing(path, mode) as stream:
            stream.write(data)

    @contextlib.contextmanager
    def replacing(self, path: str, mode: int) -> Iterator[BinaryIO]:
        """Replace a file in one step, so that power loss leaves the old or the new one; after return, the new one.

        Raises HostError where no space is left; the old file stays then, as after every other error.
        """
        target = self.path(path)
        fresh = target.with_name(target.name + ".new")
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            with open(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode), "w+b") as stream:
                yield stream
                stream.flush()
                os.fchmod(stream.fileno(), mode)
                os.fsync(stream.fileno())
            os.replace(fresh, target)
            _settle(target.parent)
        except Exception as error:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise _named(error, path) from error

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link to a path on the host, also on the disk; one that is there stays."""
        place = self.path(path)
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            with contextlib.suppress(FileExistsError):
                os.symlink(self.path(target), place)
            _settle(place.parent)
        except OSError as error:
            raise _named(error, path) from error

    def move(self, path: str, target: str) -> None:
        """Give a file or folder another name in one step."""
        os.rename(self.path(path), self.path(target))

    def free_bytes(self, path: str) -> int:
        """Bytes that are free for a file at a path, of which only a parent need exist yet."""
        place = self.path(path)
        while not place.exists() and place != place.parent:
            place = place.parent
        state = os.statvfs(place)
        return state.f_bavail * state.f_frsize

    def settle(self) -> None:
        """See everything onto the disk that any program has written."""
        os.sync()

    def write_setting(self, path: str, value: str) -> None:
        """Write a kernel setting, which cannot be replaced as a file."""
        self.path(path).write_text(value + "\n")

    def remove(self, path: str) -> None:
        """Remove a file, also from what power loss leaves; it is no error when it is gone."""
        target = self.path(path)
        with contextlib.suppress(FileNotFoundError):
            target.unlink()
            _settle(target.parent)

    def remove_empty(self, path: str) -> None:
        """Remove a directory if it is there and empty."""
        with contextlib.suppress(OSError):
            self.path(path).rmdir()
