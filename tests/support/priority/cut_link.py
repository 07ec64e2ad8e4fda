"""A link to Redis that breaks just when the answer of a claim is in flight."""

from __future__ import annotations

import asyncio

from tests.support.priority.slow_link import SlowLink

_CLAIMED = b"$2\r\n[]\r\n$9\r\nexecuting\r\n"
"""In an answer, the needs and the state of a task that was just claimed: values come without names."""


class CutLink(SlowLink):
    """A port behind which a Redis is.

    `cuts` is how many assignments are still to be lost. With `fails_next` the next one arrives, and after it
    nothing does as long as `is_down` is set.
    """

    def __init__(self, port: int) -> None:
        super().__init__(port, 0)
        self.cuts = 0
        self.fails_next = self.is_down = False

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while content := await source.read(65536):
            if self.is_down:
                raise ConnectionResetError
            if _CLAIMED in content:
                if self.cuts:
                    self.cuts -= 1
                    raise ConnectionResetError
                self.is_down, self.fails_next = self.fails_next, False
            target.write(content)
        if target.can_write_eof():
            target.write_eof()
