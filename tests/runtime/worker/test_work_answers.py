"""Answers that get lost between the database and a worker, by a line that is cut at the worst moment."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from generated.orchestrator.lifecycle import JOB_COMPLETE
from generated.orchestrator.messages import QUEUED, RUNNING
from generated.orchestrator.records import JobRecord
from runtime.stores.contract import LeaseProof
from runtime.worker.config import Outcome, WorkerConfig
from tests.runtime.stores.postgres.conftest import folder, kit, make_kit, server, url
from tests.runtime.stores.postgres.kit import Kit
from tests.runtime.worker.working import DONE, RELEASED, UNSTORABLE, run_worker
from tests.support.eventually import eventually

__all__ = ["folder", "kit", "make_kit", "server", "url"]


class Proxy:
    """Stands between a store and its server. After a word it keeps all answers back; it can hang up."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.word = b""
        self.has_heard = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, forth}
        self._tasks |= {
            asyncio.create_task(self._pass(reader, forth, is_answer=False)),
            asyncio.create_task(self._pass(back, writer, is_answer=True)),
        }

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if not is_answer:
                    self.has_heard |= bool(self.word) and self.word in data
                if not (is_answer and self.has_heard):
                    writer.write(data)
        writer.transport.abort()

    def cut(self) -> None:
        """Abort all connections."""
        self.word, self.has_heard = b"", False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def close(self) -> None:
        self.cut()
        await asyncio.gather(*self._tasks)
        self._server.close()
        await self._server.wait_closed()


@pytest.mark.req("ORC-146")
@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (Outcome(JOB_COMPLETE, {"result": '"a word"'}), b"a word"),
        (RELEASED, b"COMMIT"),
        (UNSTORABLE, b"COMMIT"),
    ],
)
async def test_an_answer_that_got_lost_is_looked_up(kit: Kit, outcome: Outcome, word: bytes) -> None:
    """The outcome was written and the connection broke before the worker knew: it finds out."""
    before, _, rest = kit.url.rpartition("@")
    host, _, name = rest.partition("/")
    proxy = Proxy(int(host.rpartition(":")[2]))
    through = Kit(f"{before}@127.0.0.1:{await proxy.start()}/{name}")
    await through.open()
    job = (await kit.add(QUEUED)).job_id

    async def perform(record: JobRecord, _held: LeaseProof) -> Outcome:
        if record.job_id != job:
            return DONE
        proxy.word = word
        return outcome

    def has_ended(record: JobRecord) -> bool:
        return record.state not in (QUEUED, RUNNING)

    try:
        async with run_worker(through, perform, WorkerConfig(1, 0.02, 30, 10, 5)) as works:
            await eventually(lambda: kit.job(job), wanted=has_ended)
            proxy.cut()
            other = (await kit.add(QUEUED)).job_id
            await eventually(lambda: kit.job(other), wanted=has_ended)
        assert works.losses() == []
        assert [run for run, _ in works.runs] == [job, other]
        assert len(await kit.edges(job)) == (5 if outcome.is_final else 4)
    finally:
        await through.close()
        await proxy.close()
