"""A worker on a real store: what it runs, what it keeps, what it drops and what it gives back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from generated.orchestrator.errors import ServiceUnavailable
from generated.orchestrator.lifecycle import JOB, JOB_COMPLETE, JOB_FAIL
from generated.orchestrator.messages import QUEUED, RETRY, RUNNING, SUCCESS
from generated.orchestrator.records import JobRecord
from runtime.postgres import PostgresStore
from runtime.store import Held
from runtime.tables import Event
from runtime.work import LeaseWorker, Outcome, Pace, Told
from tests.runtime.postgres.conftest import MakeKit, folder, kit, make_kit, server, url
from tests.runtime.postgres.kit import Kit

__all__ = ["folder", "kit", "make_kit", "server", "url"]

OWNER = "the worker"
TOLD = Told(Event("started", "INFO"), Event("lost", "WARNING"))
DONE = Outcome(JOB_COMPLETE, {"result": "1"})
GIVEN_BACK = Outcome(JOB_FAIL, {"error": "given back"})
UNSTORABLE = Outcome(JOB_FAIL, {"error": "not to be kept"}, final=True)
PACE = Pace(slots=2, poll_s=0.02, lease_s=30, renew_s=10, grace_s=5)
SHORT = Pace(slots=2, poll_s=0.02, lease_s=2, renew_s=0.2, grace_s=5)

Perform = Callable[[JobRecord, Held], Awaitable[Outcome]]


class Store:
    """A real store whose answers a test may hold up or replace."""

    def __init__(self, real: PostgresStore[JobRecord]) -> None:
        self._real = real
        self.failing = 0
        self.tried = 0
        self.arrives = asyncio.Event()
        self.arrives.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def acquire(self, *given: Any) -> JobRecord | None:
        self._fail()
        record = await self._real.acquire(*given)
        if record is not None:
            await self.arrives.wait()
        return record

    async def settle(self, *given: Any, **more: Any) -> int:
        self._fail()
        return await self._real.settle(*given, **more)

    def _fail(self) -> None:
        self.tried += 1
        if self.failing:
            self.failing -= 1
            raise ServiceUnavailable


class Works:
    """A worker at work, and what it has run."""

    def __init__(self, kit: Kit, perform: Perform, pace: Pace) -> None:
        self.kit = kit
        self.store = Store(kit.store)
        self.runs: list[tuple[str, Held]] = []
        self.at_once = self.most = 0
        self.stopping = asyncio.Event()
        self._perform = perform
        assert JOB.lease is not None
        self.worker: LeaseWorker[JobRecord] = LeaseWorker(
            self.store, JOB.lease, JOB.key, OWNER, pace, self._run, GIVEN_BACK, UNSTORABLE, TOLD
        )

    async def _run(self, record: JobRecord, held: Held) -> Outcome:
        self.runs.append((record.job_id, held))
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            return await self._perform(record, held)
        finally:
            self.at_once -= 1

    async def begun(self, count: int = 1) -> None:
        """Waits until so many runs have begun."""
        while len(self.runs) < count:
            await asyncio.sleep(0.005)

    async def until(self, key: str, *states: int) -> JobRecord:
        """Waits until a job is in one of some states."""
        while (job := await self.kit.job(key)).state not in states:
            await asyncio.sleep(0.005)
        return job

    def losses(self) -> list[dict[str, Any]]:
        return self.kit.lines.read_back("lost")


@asynccontextmanager
async def working(kit: Kit, perform: Perform, pace: Pace = PACE) -> AsyncIterator[Works]:
    """A worker that is stopped at the end, if the test has not done so."""
    made = Works(kit, perform, pace)
    task = asyncio.create_task(made.worker.work(kit.call("worker"), made.stopping))
    try:
        async with asyncio.timeout(60):
            yield made
            made.stopping.set()
            await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def at_once(_record: JobRecord, _held: Held) -> Outcome:
    """A run that waits for nothing."""
    return DONE


async def for_ever(_record: JobRecord, _held: Held) -> Outcome:
    """A run that does not end by itself."""
    await asyncio.Event().wait()
    return DONE


@pytest.mark.req("ORC-127", "ORC-134", "ORC-130")
async def test_each_slot_runs_one_at_a_time(kit: Kit) -> None:
    """Ten entities in two slots: all are run once, with the lease of their taking, never three at a time."""

    async def perform(_record: JobRecord, _held: Held) -> Outcome:
        await asyncio.sleep(0.01)
        return DONE

    jobs = [(await kit.add(QUEUED)).job_id for _ in range(10)]
    async with working(kit, perform) as works:
        for job in jobs:
            await works.until(job, SUCCESS)
    assert sorted(works.runs) == sorted((job, Held(OWNER, 1)) for job in jobs)
    assert works.most == 2
    (started,) = kit.lines.read_back("started")
    assert (started["worker_id"], started["message"]) == (OWNER, "2 slots")


@pytest.mark.req("ORC-129", "ORC-127")
async def test_a_run_that_waits_for_nothing_needs_no_task(kit: Kit) -> None:
    """It is run and written like any other."""
    job = (await kit.add(QUEUED)).job_id
    async with working(kit, at_once) as works:
        assert (await works.until(job, SUCCESS)).result == "1"


@pytest.mark.req("ORC-121")
async def test_a_lease_is_renewed_while_a_run_goes_on(make_kit: MakeKit) -> None:
    """After more than the whole lease it is still held, by the same number, and then the run succeeds."""
    kit = await make_kit(LEASE_SECONDS=2.0)
    job, ends = (await kit.add(QUEUED)).job_id, asyncio.Event()

    async def perform(_record: JobRecord, _held: Held) -> Outcome:
        await ends.wait()
        return DONE

    async with working(kit, perform, SHORT) as works:
        await works.begun()
        first = (await kit.job(job)).lease_expiry
        assert first is not None
        while not await kit.sql.fetchval("SELECT clock_timestamp() > $1", first):
            await asyncio.sleep(0.02)
        assert (await kit.job(job)).state == RUNNING
        ends.set()
        assert (await works.until(job, SUCCESS)).attempt == 1
    assert works.losses() == []


@pytest.mark.req("ORC-136", "ORC-010")
async def test_a_run_whose_lease_is_lost_is_stopped(make_kit: MakeKit) -> None:
    """It gets a cancel, nothing is written, and the loss is told with key, number and owner."""
    kit, canceled = await make_kit(LEASE_SECONDS=2.0), asyncio.Event()

    async def perform(_record: JobRecord, _held: Held) -> Outcome:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            canceled.set()
            raise
        return DONE

    job = (await kit.add(QUEUED)).job_id
    async with working(kit, perform, SHORT) as works:
        await works.begun()
        await kit.sql.execute("UPDATE jobs SET lease_expiry = clock_timestamp() - interval '1 s'")
        await canceled.wait()
    assert (await kit.job(job)).state == RUNNING
    (lost,) = works.losses()
    assert (lost["job_id"], lost["attempt"], lost["worker_id"]) == (job, 1, OWNER)


@pytest.mark.req("ORC-121", "ORC-016")
async def test_a_row_that_is_locked_for_a_while_stops_nobody(make_kit: MakeKit) -> None:
    """Renewals that find it locked are tried again; the run goes on and succeeds."""
    kit, ends = await make_kit(LEASE_SECONDS=3.0), asyncio.Event()

    async def perform(_record: JobRecord, _held: Held) -> Outcome:
        await ends.wait()
        return DONE

    job = (await kit.add(QUEUED)).job_id
    async with working(kit, perform, Pace(2, 0.02, 3.0, 0.05, 5)) as works:
        await works.begun()
        async with kit.sql.transaction():
            await kit.sql.execute("SELECT FROM jobs WHERE job_id = $1 FOR UPDATE", job)
            await asyncio.sleep(0.3)
        ends.set()
        await works.until(job, SUCCESS)
    assert works.losses() == []


@pytest.mark.req("ORC-146")
async def test_an_outcome_is_written_again_and_again(kit: Kit) -> None:
    """A store that cannot be reached three times is asked a fourth time, and the outcome is written once."""
    job = (await kit.add(QUEUED)).job_id

    async def perform(_record: JobRecord, _held: Held) -> Outcome:
        works.store.failing = 3
        return DONE

    async with working(kit, perform) as works:
        await works.until(job, SUCCESS)
    assert len(works.runs) == 1
    assert works.losses() == []


@pytest.mark.req("ORC-146", "ORC-010")
async def test_an_outcome_is_dropped_at_the_end_of_the_lease(make_kit: MakeKit) -> None:
    """A store that stays away is asked until then; the loss is told and the worker goes on."""
    kit = await make_kit(LEASE_SECONDS=2.0)
    job = (await kit.add(QUEUED)).job_id

    async def perform(record: JobRecord, _held: Held) -> Outcome:
        works.store.failing = 1000 if record.job_id == job else 0
        return DONE

    async with working(kit, perform, SHORT) as works:
        while not works.losses():
            await asyncio.sleep(0.02)
        assert works.store.tried > 3
        works.store.failing = 0
        other = (await kit.add(QUEUED)).job_id
        await works.until(other, SUCCESS)
    assert (await kit.job(job)).state == RUNNING


@pytest.mark.req("ORC-152")
@pytest.mark.parametrize("result", [r'"\u0000"', r'"\ud800"', "1e999999", "no json"])
async def test_what_the_store_cannot_hold_is_replaced(kit: Kit, result: str) -> None:
    """The entity ends as the worker was told for such a case, and others that end beside it do not suffer."""
    odd, good = (await kit.add(QUEUED)).job_id, (await kit.add(QUEUED)).job_id

    async def perform(record: JobRecord, _held: Held) -> Outcome:
        return Outcome(JOB_COMPLETE, {"result": result}) if record.job_id == odd else DONE

    async with working(kit, perform) as works:
        await works.until(good, SUCCESS)
        ended = await works.until(odd, *JOB.terminal)
    assert JOB.states[ended.state] == "DEAD"
    assert ended.last_error == "not to be kept"


@pytest.mark.req("ORC-010", "ORC-145")
async def test_a_store_that_cannot_be_reached_is_waited_for(kit: Kit) -> None:
    """A worker that can take nothing pauses and asks again, however often it takes."""
    job = (await kit.add(QUEUED)).job_id
    works = Works(kit, at_once, PACE)
    works.store.failing = 6
    task = asyncio.create_task(works.worker.work(kit.call("worker"), works.stopping))
    await works.until(job, SUCCESS)
    works.stopping.set()
    await task


@pytest.mark.req("ORC-X06")
async def test_a_worker_that_stops_lets_runs_end_within_the_grace(kit: Kit) -> None:
    """The run that is under way succeeds; what is queued meanwhile stays queued."""
    ends = asyncio.Event()

    async def perform(_record: JobRecord, _held: Held) -> Outcome:
        await ends.wait()
        return DONE

    jobs = [(await kit.add(QUEUED)).job_id for _ in range(2)]
    async with working(kit, perform) as works:
        await works.begun(2)
        later = (await kit.add(QUEUED)).job_id
        works.stopping.set()
        ends.set()
    assert [(await kit.job(job)).state for job in jobs] == [SUCCESS, SUCCESS]
    assert (await kit.job(later)).state == QUEUED


@pytest.mark.req("ORC-X06")
async def test_after_the_grace_a_run_is_given_back(kit: Kit) -> None:
    """It is stopped, and waits to be tried again, with the reason."""
    job = (await kit.add(QUEUED)).job_id
    async with working(kit, for_ever, Pace(1, 0.02, 30, 10, 0.05)) as works:
        await works.begun()
    ended = await kit.job(job)
    assert (ended.state, ended.last_error, ended.retry_count) == (RETRY, "given back", 1)
    assert works.losses() == []


@pytest.mark.req("ORC-X06")
async def test_what_arrives_after_the_grace_is_given_back_unrun(kit: Kit) -> None:
    """The store was asked before the stop and answers after it: nothing is begun any more."""
    job = (await kit.add(QUEUED)).job_id
    async with working(kit, for_ever, Pace(1, 0.02, 30, 10, 0)) as works:
        works.store.arrives.clear()
        await works.until(job, RUNNING)
        works.stopping.set()
        await asyncio.sleep(0.05)
        works.store.arrives.set()
    assert works.runs == []
    assert ((await kit.job(job)).state, (await kit.job(job)).last_error) == (RETRY, "given back")


async def test_a_worker_that_is_cut_off_leaves_no_run_behind(kit: Kit) -> None:
    """When the work itself is canceled, so are its runs; nothing is written."""
    job, works = (await kit.add(QUEUED)).job_id, Works(kit, for_ever, PACE)
    task = asyncio.create_task(works.worker.work(kit.call("worker"), works.stopping))
    await works.begun()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while works.at_once:
        await asyncio.sleep(0)
    assert (await kit.job(job)).state == RUNNING


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
        """Hangs up on everybody."""
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
        (GIVEN_BACK, b"COMMIT"),
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

    async def perform(record: JobRecord, _held: Held) -> Outcome:
        if record.job_id != job:
            return DONE
        proxy.word = word
        return outcome

    try:
        async with working(through, perform, Pace(1, 0.02, 30, 10, 5)) as works:
            while (await kit.job(job)).state in (QUEUED, RUNNING):
                await asyncio.sleep(0.01)
            proxy.cut()
            other = (await kit.add(QUEUED)).job_id
            while (await kit.job(other)).state in (QUEUED, RUNNING):
                await asyncio.sleep(0.01)
        assert works.losses() == []
        assert [run for run, _ in works.runs] == [job, other]
        assert len(await kit.edges(job)) == (5 if outcome.final else 4)
    finally:
        await through.close()
        await proxy.close()
