"""A link to a server with latency: all data arrives some milliseconds later."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

from runtime.launch.embedded.ports import LOOPBACK


class SlowLink:
    """A port behind which a server is, as many milliseconds away in each direction."""

    def __init__(self, port: int, delay_ms: float) -> None:
        self.port = 0
        self._server_port = port
        self.delay_ms = delay_ms
        """It may grow while data is in flight, which stays in order then."""
        self.journeys = 0
        """How often something was carried over it, in either direction."""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._writers: set[asyncio.StreamWriter] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, LOOPBACK, 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._wait_closed())
        self._loop.close()

    async def _wait_closed(self) -> None:
        """Wait until all connections have ended."""
        me = asyncio.current_task()
        await asyncio.gather(*(asyncio.all_tasks() - {me}), return_exceptions=True)
        await asyncio.gather(*(each.wait_closed() for each in self._writers), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(LOOPBACK, self._server_port)
        self._writers |= {writer, back}
        try:
            await asyncio.gather(self._carry(reader, back), self._carry(there, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            back.close()

    async def _carry(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        """Forward data in its order; data that comes close in time is in flight at the same time."""
        loop = asyncio.get_running_loop()
        while content := await source.read(65536):
            self.journeys += 1
            loop.call_later(self.delay_ms / 1000, target.write, content)
        await asyncio.sleep(self.delay_ms / 1000)
        if target.can_write_eof():
            target.write_eof()
