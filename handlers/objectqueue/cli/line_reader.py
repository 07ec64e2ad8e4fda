"""Read lines from a stream without blocking the event loop, such as from a terminal or a pipe."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import BinaryIO

_CHUNK_BYTES = 65536


async def read_lines(stream: BinaryIO) -> AsyncIterator[bytes]:
    """Yield each line as soon as it arrives. No thread blocks in a read, so that Ctrl-C ends it at once."""
    partial: list[bytes] = []
    while True:
        try:
            await _wait_readable(stream.fileno())
        except (OSError, ValueError):
            # A regular file or memory, which is always readable.
            for line in stream:
                yield line
            return
        chunk = os.read(stream.fileno(), _CHUNK_BYTES)
        *complete, rest = chunk.split(b"\n")
        for line_end in complete:
            yield b"".join((*partial, line_end))
            partial.clear()
        partial.append(rest)
        if not chunk:
            break
    if last := b"".join(partial):
        yield last


async def _wait_readable(descriptor: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        # Otherwise the callback would run in every turn of the loop until the data is read.
        loop.remove_reader(descriptor)
