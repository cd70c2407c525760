"""What serves the lab, in one process: ssh ports on the machine's loopback, packages inside the namespace.

It stands alone (standard library, no relative import): the lab starts a copy of this file. It opens
its loopback listeners first and then moves into the namespace, so every later connection starts there.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import http.server
import json
import os
import socket
import sys
import threading

CLONE_NEWNET = 0x40000000


def enter_namespace(path: str) -> None:
    """Move this process into a network namespace (os.setns came with Python 3.12)."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if libc.setns(descriptor, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {path}")
    finally:
        os.close(descriptor)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Plain file server without an access log."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


async def copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until its end, and pass the end on."""
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


async def forward(address: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Join one accepted connection to a host's port."""
    try:
        far_reader, far_writer = await asyncio.wait_for(asyncio.open_connection(address, port), 10)
    except (OSError, asyncio.TimeoutError):
        writer.close()
        return
    await asyncio.gather(copy_stream(reader, far_writer), copy_stream(far_reader, writer))
    far_writer.close()
    writer.close()


async def serve(listeners: list[tuple[socket.socket, str, int]]) -> None:
    """Forward until the process is ended."""
    servers = [
        await asyncio.start_server(functools.partial(forward, address, port), sock=listener)
        for listener, address, port in listeners
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


def main() -> None:
    """Read the settings from the first argument, say ``ready`` once all listeners stand, and serve."""
    settings = json.loads(sys.argv[1])
    listeners = [
        (socket.create_server(("127.0.0.1", item["listen"])), item["address"], item["port"])
        for item in settings["forwards"]
    ]
    enter_namespace(settings["namespace"])
    handler = functools.partial(QuietHandler, directory=settings["repository"])
    server = http.server.ThreadingHTTPServer((settings["http_address"], settings["http_port"]), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("ready", flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    asyncio.run(serve(listeners))


if __name__ == "__main__":
    main()
