"""The worker: claims tasks of the types it knows, runs their functions, and settles each run."""

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
from handlers.jobs.executor import Executor, FailureReasons, run, to_storable_text
from handlers.jobs.loader import load_setting
from handlers.objectqueue.progress import ProgressWriter
from handlers.objectqueue.shard_claims import ShardClaims
from handlers.objectqueue.views import SHARDS
from handlers.objectqueue.worker_heartbeat import WorkerHeartbeat
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.node.process_identity import name_process
from runtime.node.settings import SettingsError
from runtime.observe import log as events
from runtime.stores.bucket_store import NotReadable
from runtime.stores.contract import EntityStore, LeaseProof
from runtime.stores.store import StoreUnusable
from runtime.worker.config import Outcome, WorkerConfig, WorkerEvents
from runtime.worker.lease_worker import LeaseWorker
from runtime.world import World

_REASONS = FailureReasons(TIMED_OUT, RESULT_NOT_JSON)
_UNLIMITED_S = 1e8
"""No timeout: a function without one of its own is limited by the lease of its task."""
_POLL_S = 5.0
_RETRY_S = 1.0


class Worker:
    """A lease worker for tasks. It uses the bucket and no other component."""

    def __init__(
        self,
        tasks: EntityStore[TaskRecord],
        workers: EntityStore[WorkerRecord],
        settings: WorkerSettings,
        world: World,
    ) -> None:
        self._tasks = tasks
        self._workers = workers
        self._settings = settings
        self._world = world
        self._shards = _parse_shards(settings.qo_shards)
        self._functions = load_setting("QO_HANDLERS", settings.qo_handlers)
        self._running: dict[tuple[str, int], float] = {}

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Claim and run tasks until shutdown; then drain the tasks in flight, and deregister."""
        settings = self._settings
        task_types = tuple(sorted(self._functions))
        record = WorkerRecord(
            worker_id=settings.qo_worker_id,
            shards=self._shards,
            task_types=task_types,
            instance=self._world.new_id(),
            process=name_process(),
        )
        heartbeat = WorkerHeartbeat(self._workers, record, settings, call)
        if not await self._register(heartbeat, call, stopping):
            return
        ending = asyncio.Event()
        async with Executor(settings.qo_handlers, call, ending) as execute:
            worker = self._build_lease_worker(heartbeat, execute, call, ending)
            background = [
                asyncio.create_task(heartbeat.send_heartbeats()),
                asyncio.create_task(self._watch_leases(worker)),
                asyncio.create_task(_set_after(stopping, ending)),
                asyncio.create_task(_set_after(heartbeat.superseded, ending)),
            ]
            try:
                await worker.work(call, ending)
            finally:
                for each in background:
                    each.cancel()
                await asyncio.gather(*background, return_exceptions=True)
        if heartbeat.superseded.is_set():
            name = settings.qo_worker_id
            call.tell(WORKER_SUPERSEDED, "it stops, and what it held is given back", worker_id=name)
            raise StoreUnusable(
                f"Another worker has taken over the name {name}: this one was silent too long."
            )
        await heartbeat.deregister()
        call.tell(WORKER_STOPPED, "it holds nothing any more", worker_id=settings.qo_worker_id)

    def _build_lease_worker(
        self, heartbeat: WorkerHeartbeat, execute: Executor, call: Call, stopping: asyncio.Event
    ) -> LeaseWorker[TaskRecord]:
        settings, lease = self._settings, TASK.lease
        assert lease is not None
        task_types = None if settings.qo_fail_unknown_types else set(self._functions)
        lease_worker: LeaseWorker[TaskRecord] = LeaseWorker(
            ShardClaims(self._tasks, self._shards, task_types),
            lease,
            TASK.key,
            settings.qo_worker_id,
            WorkerConfig(
                slots=settings.qo_concurrency,
                poll_s=_POLL_S,
                lease_s=None,
                renew_s=_UNLIMITED_S if settings.qo_renew_leases else None,
                grace_s=settings.qo_shutdown_grace,
                exchanges=settings.qo_concurrency + 1,
                settles_individually=True,
            ),
            lambda record, claim: self._perform(record, claim, lease_worker, execute, call, stopping),
            Outcome(TASK_RELEASE, {"error": "shutdown"}),
            Outcome(TASK_FAIL, {"error": RESULT_NOT_JSON}),
            WorkerEvents(WORKER_STARTED, LEASE_LOST),
            overrun=partial(_fail_overrun, call),
            observer=heartbeat,
        )
        return lease_worker

    async def _register(self, heartbeat: WorkerHeartbeat, call: Call, stopping: asyncio.Event) -> bool:
        """Register as soon as the bucket can be reached; False if the worker is stopped before."""
        is_logged = False
        while not stopping.is_set():
            try:
                return await heartbeat.register(stopping)
            except Failure as failure:
                if failure.grpc != "UNAVAILABLE":
                    raise
                if not is_logged:
                    call.tell(events.ACQUIRE_FAILED, failure.message, grpc_code=failure.grpc)
                is_logged = True
                await self._world.sleep(self._world.uniform(_RETRY_S / 2, _RETRY_S))
        return False

    async def _watch_leases(self, worker: LeaseWorker[TaskRecord]) -> None:
        """Watch the leases of long runs; give up tasks that were cancelled or claimed by another worker."""
        interval_s = self._settings.qo_heartbeat_seconds
        while True:
            await self._world.sleep(interval_s)
            now = self._world.monotonic()
            for (key, fence), started_at in list(self._running.items()):
                if now - started_at >= interval_s and not await self._is_owned(key, fence):
                    worker.abandon(key, fence)

    async def _is_owned(self, key: str, fence: int) -> bool:
        try:
            record = await self._tasks.get(key)
        except (Failure, NotReadable):
            return True  # Unknown; the end of the lease decides.
        return record is not None and record.status == RUNNING and record.attempt == fence

    async def _perform(
        self,
        record: TaskRecord,
        claim: LeaseProof,
        worker: LeaseWorker[TaskRecord],
        execute: Executor,
        call: Call,
        stopping: asyncio.Event,
    ) -> Outcome:
        """Run the function of a task. Any exception that it raises is a failed run, and no more than that."""
        function = self._functions.get(record.task_type)
        if function is None:
            return _fail(record, call, f"{UNKNOWN_TASK_TYPE}: {record.task_type}", is_final=True)
        progress = ProgressWriter(
            self._tasks, record.id, claim, call, worker.abandon, self._settings.qo_heartbeat_seconds
        )
        job = Job(
            record.id,
            record.task_type,
            self._world,
            payload=json.loads(record.input or "null"),
            attempt=claim.fence,
            token=record.id,
            report=progress.report,
            is_stopping=stopping.is_set,
        )
        run_key = record.id, claim.fence
        self._running[run_key] = self._world.monotonic()
        try:
            result = await run(function, job, function.timeout_s or _UNLIMITED_S, _REASONS, execute)
        finally:
            self._running.pop(run_key, None)
            await progress.stop()
        if result.error is not None:
            return _fail(record, call, result.error, is_final=result.is_final)
        return Outcome(TASK_COMPLETE, {"output": result.result})


def _fail_overrun(call: Call, record: TaskRecord) -> Outcome:
    """Build the outcome of a run that was stopped because its lease expired."""
    return _fail(record, call, f"{TIMED_OUT}: it took longer than {record.timeout_seconds} s")


def _fail(record: TaskRecord, call: Call, error: str, *, is_final: bool = False) -> Outcome:
    """Log a failed run and build its outcome."""
    text = to_storable_text(error, ERROR_TEXT)
    call.tell(TASK_FAILED, text, task_id=record.id, attempt=record.attempt, task_type=record.task_type)
    return Outcome(TASK_FAIL if is_final else TASK_RETRY, {"error": text})


def _parse_shards(text: str | None) -> tuple[str, ...]:
    """Parse a list of shards; all shards where it is empty."""
    named = [each.strip().lower() for each in (text or "").split(",")] if text else list(SHARDS)
    if unknown := [each for each in named if each not in SHARDS]:
        raise SettingsError([f"QO_SHARDS: {unknown[0]!r} is not one of the digits 0 to f"])
    return tuple(dict.fromkeys(named))


async def _set_after(event: asyncio.Event, ending: asyncio.Event) -> None:
    await event.wait()
    ending.set()
