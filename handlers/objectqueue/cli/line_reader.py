"""Lines of a stream that may take its time, such as what somebody types."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import BinaryIO

_AT_ONCE = 65536


async def arriving(stream: BinaryIO) -> AsyncIterator[bytes]:
    """Each line as soon as it is there. No thread waits for the next one, so that Ctrl-C ends it at once."""
    begun: list[bytes] = []
    while True:
        try:
            await _readable(stream.fileno())
        except (OSError, ValueError):
            # A file, or what is in memory: nobody has to wait for it.
            for line in stream:
                yield line
            return
        got = os.read(stream.fileno(), _AT_ONCE)
        *ends, rest = got.split(b"\n")
        for end in ends:
            yield b"".join((*begun, end))
            begun.clear()
        begun.append(rest)
        if not got:
            break
    if last := b"".join(begun):
        yield last


async def _readable(descriptor: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        # It would be told again and again for as long as nobody reads.
        loop.remove_reader(descriptor)
