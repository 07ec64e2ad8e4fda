"""The worker: registers, claims tasks, runs their functions, and reports the outcome of each run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from generated.priority.errors import RESULT_NOT_JSON, RESULT_TOO_LARGE, TIMED_OUT, UNKNOWN_TASK_TYPE
from generated.priority.events import LEASE_LOST, WORKER_LEFT, WORKER_STARTED
from generated.priority.lifecycle import TASK, TASK_COMPLETE, TASK_FAIL, TASK_GIVE_BACK, TASK_RETRY
from generated.priority.messages import AssignedTask, RegisterWorkerRequest
from generated.priority.policy import ERROR_TEXT, RESULT_BYTES
from generated.priority.services import WorkersService
from generated.priority.settings import WorkerSettings
from handlers.jobs import Job
from handlers.jobs.executor import Executor, FailureReasons, run, to_storable_text
from handlers.jobs.loader import load_setting
from handlers.priority.manager_lease_store import ManagerLeaseStore
from handlers.priority.registration import Registration
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.model.json_text import decode_valid_json, json_problem
from runtime.observe import log as events
from runtime.stores.contract import LeaseProof
from runtime.worker.config import Outcome, WorkerConfig, WorkerEvents
from runtime.worker.lease_worker import LeaseWorker
from runtime.world import World

_REASONS = FailureReasons(TIMED_OUT, RESULT_NOT_JSON)
_MISSED_HEARTBEATS = 3
"""After so many missed heartbeats the manager declares a worker dead, and the worker drops its leases."""
_RETRY_S = 1.0
_TWO_LANES_FROM = 40
"""From so many slots on there are two lanes: one exchanges with the manager while the other runs tasks, so
that neither the worker nor the store waits for the other."""


class Worker:
    """A lease worker for tasks. It calls the manager, and no store."""

    def __init__(self, manager: WorkersService, settings: WorkerSettings, world: World) -> None:
        self._manager = manager
        self._settings = settings
        self._world = world
        self._functions = load_setting("JOB_HANDLERS", settings.job_handlers)

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Claim and run tasks until shutdown; then drain the tasks in flight, and deregister."""
        settings = self._settings
        capabilities = [each.strip() for each in (settings.worker_capabilities or "").split(",")]
        request = RegisterWorkerRequest(
            capabilities=filter(None, capabilities),
            capacity=settings.worker_capacity,
            version=settings.worker_version,
        )
        registration = Registration(self._manager, request, call)
        if not await self._register(registration, call, stopping):
            return
        call.note(worker_id=registration.worker_id)
        async with Executor(settings.job_handlers, call, stopping) as execute:
            await self._work(registration, execute, call, stopping)

    async def _work(
        self, registration: Registration, execute: Executor, call: Call, stopping: asyncio.Event
    ) -> None:
        settings = self._settings
        lane_count = 1 if settings.worker_capacity < _TWO_LANES_FROM else 2
        lane_slots = [(settings.worker_capacity + number) // lane_count for number in range(lane_count)]
        lanes = [self._build_lane(registration, slots, execute, call, stopping) for slots in lane_slots]
        background = [
            asyncio.create_task(self._send_heartbeats(registration)),
            asyncio.create_task(self._drain(registration, stopping)),
        ]
        try:
            async with asyncio.TaskGroup() as group:
                for _, lane in lanes:
                    group.create_task(lane.work(call, stopping))
        finally:
            for each in background:
                each.cancel()
        await self._shut_down(registration, [lease_store for lease_store, _ in lanes], call)

    def _build_lane(
        self, registration: Registration, slots: int, execute: Executor, call: Call, stopping: asyncio.Event
    ) -> tuple[ManagerLeaseStore, LeaseWorker[AssignedTask]]:
        """Build a lane: some of the slots, with exchanges of their own."""
        settings = self._settings
        lease_store = ManagerLeaseStore(self._manager, registration, call, settings.poll_wait_ms / 1000)
        assert TASK.lease is not None
        lane = LeaseWorker(
            lease_store,
            TASK.lease,
            TASK.key,
            registration.worker_id,
            WorkerConfig(
                slots=slots,
                poll_s=settings.poll_wait_ms / 1000 + _RETRY_S,
                lease_s=_MISSED_HEARTBEATS * registration.heartbeat_s,
                renew_s=registration.heartbeat_s,
                grace_s=settings.shutdown_grace_seconds,
            ),
            partial(self._perform, lease_store, execute, stopping),
            Outcome(TASK_GIVE_BACK),
            _fail(RESULT_NOT_JSON, is_final=True),
            WorkerEvents(WORKER_STARTED, LEASE_LOST),
            overrun=lambda _: _fail("the worker was not heard of any more"),
            observer=registration,
        )
        lease_store.poll.push = lane.push
        return lease_store, lane

    async def _register(self, registration: Registration, call: Call, stopping: asyncio.Event) -> bool:
        """Register as soon as the manager can be reached; False if the worker is stopped before."""
        is_logged = False
        while not stopping.is_set():
            try:
                await registration.register()
            except Failure as failure:
                if not is_logged:
                    call.tell(events.ACQUIRE_FAILED, failure.message, grpc_code=failure.grpc)
                is_logged = True
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._world.uniform(_RETRY_S / 2, _RETRY_S)):
                        await stopping.wait()
            else:
                return True
        return False

    async def _send_heartbeats(self, registration: Registration) -> None:
        """Send heartbeats that no renewal sends: while the worker has no leases, or is uncertain of them."""
        while True:
            await self._world.sleep(registration.min_interval_s)
            if registration.next_heartbeat_at <= self._world.monotonic():
                with suppress(Failure):  # An outage; the next heartbeat is the retry.
                    await registration.send_heartbeat()

    async def _drain(self, registration: Registration, stopping: asyncio.Event) -> None:
        """Notify the manager at once when the worker starts to drain."""
        await stopping.wait()
        registration.is_draining = True
        with suppress(Failure):
            await registration.send_heartbeat()

    async def _shut_down(
        self, registration: Registration, lanes: Sequence[ManagerLeaseStore], call: Call
    ) -> None:
        """Release the tasks that were assigned and never started, and deregister."""
        try:
            for lease_store in lanes:
                await lease_store.release_undelivered(call)
            await registration.deregister()
        except Failure as failure:
            call.tell(WORKER_LEFT, f"without a goodbye: {failure.message}")
        else:
            call.tell(WORKER_LEFT, "it holds nothing any more")

    async def _perform(
        self,
        lease_store: ManagerLeaseStore,
        execute: Executor,
        stopping: asyncio.Event,
        task: AssignedTask,
        lease: LeaseProof,
    ) -> Outcome:
        """Run the function of a task. Any exception that it raises is a failed run, and no more than that."""
        function = self._functions.get(task.task_type)
        if function is None:
            return _fail(f"{UNKNOWN_TASK_TYPE}: {task.task_type}")
        seconds = function.timeout_s or task.timeout_seconds
        job = Job(
            task.task_id,
            task.task_type,
            self._world,
            payload=decode_valid_json(task.parameters),
            attempt=lease.fence,
            token=task.task_id,
            report=partial(_report, lease_store, task),
            is_stopping=stopping.is_set,
        )
        if seconds > task.timeout_seconds:
            try:
                await lease_store.extend(task, seconds)
            except Failure as failure:
                return _fail(failure.message)
        result = await run(function, job, seconds, _REASONS, execute)
        if result.error is not None:
            return _fail(result.error, is_final=result.is_final)
        return _complete(result.result)


def _complete(result: str) -> Outcome:
    """Build the outcome of a run: completed with its result, or failed where that cannot be stored."""
    if len(result) > RESULT_BYTES:
        return _fail(f"{RESULT_TOO_LARGE}: {len(result)} bytes", is_final=True)
    if "\\u" in result and json_problem(result, must_be_object=False, storable=True):
        return _fail(RESULT_NOT_JSON, is_final=True)
    return Outcome(TASK_COMPLETE, {"result": result})


def _fail(error: str, *, is_final: bool = False) -> Outcome:
    """Build the outcome of a failed run, with its error as text that a store takes."""
    return Outcome(TASK_FAIL if is_final else TASK_RETRY, {"error": to_storable_text(error, ERROR_TEXT)})


async def _report(lease_store: ManagerLeaseStore, task: AssignedTask, progress: Mapping[str, Any]) -> None:
    await lease_store.report(task, json.dumps(progress, allow_nan=False))
