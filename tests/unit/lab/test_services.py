"""The process that leads ssh ports into the namespace."""

from __future__ import annotations

import asyncio
import functools

from ansible_collections.sparkring.cluster.plugins.module_utils.lab import services


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-" + await reader.read())
    await writer.drain()
    writer.close()


async def _through(far_port: int | None) -> bytes:
    far = await asyncio.start_server(_echo, "127.0.0.1", 0)
    port = far.sockets[0].getsockname()[1] if far_port is None else far_port
    near = await asyncio.start_server(functools.partial(services.forward, "127.0.0.1", port), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*near.sockets[0].getsockname())
    writer.write(b"x" * 200000)
    writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()
        near.close()
        far.close()


def test_both_directions_and_their_ends_pass() -> None:
    assert asyncio.run(_through(None)) == b"SSH-" + b"x" * 200000


def test_a_host_that_is_down_ends_the_connection() -> None:
    assert asyncio.run(_through(1)) == b""
