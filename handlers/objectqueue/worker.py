"""The worker: takes tasks whose types it knows, runs their handlers, and says of each run how it ended."""

from __future__ import annotations

import asyncio
import json
from functools import partial

from generated.objectqueue.errors import RESULT_NOT_JSON, TIMED_OUT, UNKNOWN_TASK_TYPE
from generated.objectqueue.events import (
    LEASE_LOST,
    TASK_FAILED,
    WORKER_STARTED,
    WORKER_STOPPED,
    WORKER_SUPERSEDED,
)
from generated.objectqueue.lifecycle import TASK, TASK_COMPLETE, TASK_FAIL, TASK_RELEASE, TASK_RETRY
from generated.objectqueue.messages import RUNNING
from generated.objectqueue.policy import ERROR_TEXT
from generated.objectqueue.records import TaskRecord, WorkerRecord
from generated.objectqueue.settings import WorkerSettings
from handlers.jobs import Job
from handlers.jobs.executor import Executor
from handlers.jobs.loader import load_setting
from handlers.jobs.runner import Reasons, run, storable
from handlers.objectqueue.progress import Progress
from handlers.objectqueue.views import SHARDS
from handlers.objectqueue.worker_heartbeat import Presence
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.node.process_identity import name_process
from runtime.node.settings import SettingsError
from runtime.observe import log as events
from runtime.stores.object_store import NotReadable, ObjectStore
from runtime.stores.store import Held, StoreUnusable
from runtime.worker.config import Outcome, Pace, Told
from runtime.worker.lease_worker import LeaseWorker
from runtime.world import World

_REASONS = Reasons(TIMED_OUT, RESULT_NOT_JSON)
_FOR_EVER_S = 1e8
"""A handler that says nothing of its own is limited by the lease of its task."""
_POLL_S = 5.0
_PAUSE_S = 1.0


class Worker:
    """Knows handlers and the bucket, and no other component."""

    def __init__(
        self,
        tasks: ObjectStore[TaskRecord],
        workers: ObjectStore[WorkerRecord],
        settings: WorkerSettings,
        world: World,
    ) -> None:
        self._tasks = tasks
        self._workers = workers
        self._settings = settings
        self._world = world
        self._shards = _shards(settings.qo_shards)
        self._functions = load_setting("QO_HANDLERS", settings.qo_handlers)
        self._running: dict[tuple[str, int], float] = {}

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Takes tasks and runs them until it is told to stop; then ends what it has, and leaves."""
        settings = self._settings
        known = tuple(sorted(self._functions))
        wanted = WorkerRecord(
            worker_id=settings.qo_worker_id,
            shards=self._shards,
            task_types=known,
            instance=self._world.new_id(),
            process=name_process(),
        )
        presence = Presence(self._workers, wanted, settings, call)
        if not await self._entered(presence, call, stopping):
            return
        ending = asyncio.Event()
        async with Executor(settings.qo_handlers, call, ending) as execute:
            worker = self._leasing(presence, execute, call, ending)
            aside = [
                asyncio.create_task(presence.beat()),
                asyncio.create_task(self._look_after(worker)),
                asyncio.create_task(_end_after(stopping, ending)),
                asyncio.create_task(_end_after(presence.superseded, ending)),
            ]
            try:
                await worker.work(call, ending)
            finally:
                for each in aside:
                    each.cancel()
                await asyncio.gather(*aside, return_exceptions=True)
        if presence.superseded.is_set():
            name = settings.qo_worker_id
            call.tell(WORKER_SUPERSEDED, "it stops, and what it held is given back", worker_id=name)
            raise StoreUnusable(
                f"Another worker has taken over the name {name}: this one was silent too long."
            )
        await presence.leave()
        call.tell(WORKER_STOPPED, "it holds nothing any more", worker_id=settings.qo_worker_id)

    def _leasing(
        self, presence: Presence, execute: Executor, call: Call, stopping: asyncio.Event
    ) -> LeaseWorker[TaskRecord]:
        settings, lease = self._settings, TASK.lease
        assert lease is not None
        kinds = None if settings.qo_fail_unknown_types else set(self._functions)
        made: LeaseWorker[TaskRecord] = LeaseWorker(
            self._tasks.taking(self._shards, kinds),
            lease,
            TASK.key,
            settings.qo_worker_id,
            Pace(
                slots=settings.qo_concurrency,
                poll_s=_POLL_S,
                lease_s=None,
                renew_s=_FOR_EVER_S if settings.qo_renew_leases else None,
                grace_s=settings.qo_shutdown_grace,
                exchanges=settings.qo_concurrency + 1,
                apart=True,
            ),
            lambda record, held: self._perform(record, held, made, execute, call, stopping),
            Outcome(TASK_RELEASE, {"error": "shutdown"}),
            Outcome(TASK_FAIL, {"error": RESULT_NOT_JSON}),
            Told(WORKER_STARTED, LEASE_LOST),
            overrun=partial(_overrun, call),
            watcher=presence,
        )
        return made

    async def _entered(self, presence: Presence, call: Call, stopping: asyncio.Event) -> bool:
        """Shows itself as soon as the bucket can be reached; False if the worker is stopped before."""
        is_told = False
        while not stopping.is_set():
            try:
                return await presence.enter(stopping)
            except Failure as failure:
                if failure.grpc != "UNAVAILABLE":
                    raise
                if not is_told:
                    call.tell(events.ACQUIRE_FAILED, failure.message, grpc_code=failure.grpc)
                is_told = True
                await self._world.sleep(self._world.uniform(_PAUSE_S / 2, _PAUSE_S))
        return False

    async def _look_after(self, worker: LeaseWorker[TaskRecord]) -> None:
        """Finds out that somebody has cancelled a task or taken it away, while its run goes on."""
        every_s = self._settings.qo_heartbeat_seconds
        while True:
            await self._world.sleep(every_s)
            now = self._world.monotonic()
            for (key, fence), began in list(self._running.items()):
                if now - began >= every_s and not await self._is_ours(key, fence):
                    worker.give_up(key, fence)

    async def _is_ours(self, key: str, fence: int) -> bool:
        try:
            record = await self._tasks.get(key)
        except (Failure, NotReadable):
            return True  # Nobody knows; the end of the lease decides.
        return record is not None and record.status == RUNNING and record.attempt == fence

    async def _perform(
        self,
        record: TaskRecord,
        held: Held,
        worker: LeaseWorker[TaskRecord],
        execute: Executor,
        call: Call,
        stopping: asyncio.Event,
    ) -> Outcome:
        """Runs the handler of a task. Whatever it raises is a failed run, and no more than that."""
        function = self._functions.get(record.task_type)
        if function is None:
            return _failed(record, call, f"{UNKNOWN_TASK_TYPE}: {record.task_type}", final=True)
        progress = Progress(
            self._tasks, record.id, held, call, worker.give_up, self._settings.qo_heartbeat_seconds
        )
        given = Job(
            record.id,
            record.task_type,
            self._world,
            payload=json.loads(record.input or "null"),
            attempt=held.fence,
            token=record.id,
            report=progress.report,
            is_stopping=stopping.is_set,
        )
        place = record.id, held.fence
        self._running[place] = self._world.monotonic()
        try:
            ran = await run(function, given, function.timeout_s or _FOR_EVER_S, _REASONS, execute)
        finally:
            self._running.pop(place, None)
            await progress.stop()
        if ran.error is not None:
            return _failed(record, call, ran.error, final=ran.is_final)
        return Outcome(TASK_COMPLETE, {"output": ran.result})


def _overrun(call: Call, record: TaskRecord) -> Outcome:
    """A run that was stopped because its lease was over."""
    return _failed(record, call, f"{TIMED_OUT}: it took longer than {record.timeout_seconds} s")


def _failed(record: TaskRecord, call: Call, error: str, *, final: bool = False) -> Outcome:
    """A failed run with its error."""
    text = storable(error, ERROR_TEXT)
    call.tell(TASK_FAILED, text, task_id=record.id, attempt=record.attempt, task_type=record.task_type)
    return Outcome(TASK_FAIL if final else TASK_RETRY, {"error": text})


def _shards(text: str | None) -> tuple[str, ...]:
    """The shards that are named, or all."""
    named = [each.strip().lower() for each in (text or "").split(",")] if text else list(SHARDS)
    if wrong := [each for each in named if each not in SHARDS]:
        raise SettingsError([f"QO_SHARDS: {wrong[0]!r} is not one of the digits 0 to f"])
    return tuple(dict.fromkeys(named))


async def _end_after(event: asyncio.Event, ending: asyncio.Event) -> None:
    await event.wait()
    ending.set()
