"""The worker: registers, takes tasks, runs their functions, and says of each run how it ended."""

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
from handlers.jobs.executor import Executor
from handlers.jobs.loader import load_setting
from handlers.jobs.runner import Reasons, run, storable
from handlers.priority.manager_lease_store import Borrowed
from handlers.priority.registration import Registration
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.model.json_text import json_problem, value_of
from runtime.observe import log as events
from runtime.stores.store import Held
from runtime.worker.config import Outcome, Pace, Told
from runtime.worker.lease_worker import LeaseWorker
from runtime.world import World

_REASONS = Reasons(TIMED_OUT, RESULT_NOT_JSON)
_MISSED_BEATS = 3
"""After so many the manager gives a worker up, and so does the worker itself what it holds."""
_PAUSE_S = 1.0
_MANY = 40
"""With so many slots a half of them is exchanged while the other half of the worker is at work: neither the
worker nor the store waits for the other."""


class Worker:
    """Knows the functions of tasks and the manager, and no store."""

    def __init__(self, manager: WorkersService, settings: WorkerSettings, world: World) -> None:
        self._manager = manager
        self._settings = settings
        self._world = world
        self._functions = load_setting("JOB_HANDLERS", settings.job_handlers)

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Takes tasks and runs them until it is told to stop; then it ends what it has, and leaves."""
        settings = self._settings
        capabilities = [each.strip() for each in (settings.worker_capabilities or "").split(",")]
        request = RegisterWorkerRequest(
            capabilities=filter(None, capabilities),
            capacity=settings.worker_capacity,
            version=settings.worker_version,
        )
        registration = Registration(self._manager, request, call)
        if not await self._registered(registration, call, stopping):
            return
        call.note(worker_id=registration.worker_id)
        async with Executor(settings.job_handlers, call, stopping) as execute:
            await self._work(registration, execute, call, stopping)

    async def _work(
        self, registration: Registration, execute: Executor, call: Call, stopping: asyncio.Event
    ) -> None:
        settings = self._settings
        lanes = 1 if settings.worker_capacity < _MANY else 2
        shares = [(settings.worker_capacity + number) // lanes for number in range(lanes)]
        workers = [self._lane(registration, slots, execute, call, stopping) for slots in shares]
        beating = [
            asyncio.create_task(self._beat(registration)),
            asyncio.create_task(self._drain(registration, stopping)),
        ]
        try:
            async with asyncio.TaskGroup() as working:
                for _, lane in workers:
                    working.create_task(lane.work(call, stopping))
        finally:
            for each in beating:
                each.cancel()
        await self._leave(registration, [borrowed for borrowed, _ in workers], call)

    def _lane(
        self, registration: Registration, slots: int, execute: Executor, call: Call, stopping: asyncio.Event
    ) -> tuple[Borrowed, LeaseWorker[AssignedTask]]:
        """Some of the slots, with exchanges of their own."""
        settings = self._settings
        borrowed = Borrowed(self._manager, registration, call, settings.poll_wait_ms / 1000)
        assert TASK.lease is not None
        lane = LeaseWorker(
            borrowed,
            TASK.lease,
            TASK.key,
            registration.worker_id,
            Pace(
                slots=slots,
                poll_s=settings.poll_wait_ms / 1000 + _PAUSE_S,
                lease_s=_MISSED_BEATS * registration.heartbeat_s,
                renew_s=registration.heartbeat_s,
                grace_s=settings.shutdown_grace_seconds,
            ),
            partial(self._perform, borrowed, execute, stopping),
            Outcome(TASK_GIVE_BACK),
            _failed(RESULT_NOT_JSON, final=True),
            Told(WORKER_STARTED, LEASE_LOST),
            overrun=lambda _: _failed("the worker was not heard of any more"),
            watcher=registration,
        )
        borrowed.hand = lane.hand
        return borrowed, lane

    async def _registered(self, registration: Registration, call: Call, stopping: asyncio.Event) -> bool:
        """Registers as soon as the manager can be reached; False if the worker is stopped before."""
        is_told = False
        while not stopping.is_set():
            try:
                await registration.register()
            except Failure as failure:
                if not is_told:
                    call.tell(events.ACQUIRE_FAILED, failure.message, grpc_code=failure.grpc)
                is_told = True
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._world.uniform(_PAUSE_S / 2, _PAUSE_S)):
                        await stopping.wait()
            else:
                return True
        return False

    async def _beat(self, registration: Registration) -> None:
        """Lets the worker be heard of while it holds nothing, and so has nothing to keep, or is in doubt."""
        while True:
            await self._world.sleep(registration.least_s)
            if registration.quiet_until <= self._world.monotonic():
                with suppress(Failure):  # An outage; the next beat is not far.
                    await registration.beat()

    async def _drain(self, registration: Registration, stopping: asyncio.Event) -> None:
        """Tells the manager at once when the worker wants no more tasks."""
        await stopping.wait()
        registration.is_draining = True
        with suppress(Failure):
            await registration.beat()

    async def _leave(self, registration: Registration, lanes: Sequence[Borrowed], call: Call) -> None:
        """Gives back what was handed out and never begun, and says goodbye."""
        try:
            for borrowed in lanes:
                await borrowed.give_back(call)
            await registration.leave()
        except Failure as failure:
            call.tell(WORKER_LEFT, f"without a goodbye: {failure.message}")
        else:
            call.tell(WORKER_LEFT, "it holds nothing any more")

    async def _perform(
        self,
        borrowed: Borrowed,
        execute: Executor,
        stopping: asyncio.Event,
        task: AssignedTask,
        held: Held,
    ) -> Outcome:
        """Runs the function of a task. Whatever it raises is a failed run, and no more than that."""
        function = self._functions.get(task.task_type)
        if function is None:
            return _failed(f"{UNKNOWN_TASK_TYPE}: {task.task_type}")
        seconds = function.timeout_s or task.timeout_seconds
        given = Job(
            task.task_id,
            task.task_type,
            self._world,
            payload=value_of(task.parameters),
            attempt=held.fence,
            token=task.task_id,
            report=partial(_report, borrowed, task),
            is_stopping=stopping.is_set,
        )
        if seconds > task.timeout_seconds:
            try:
                await borrowed.extend(task, seconds)
            except Failure as failure:
                return _failed(failure.message)
        ran = await run(function, given, seconds, _REASONS, execute)
        if ran.error is not None:
            return _failed(ran.error, final=ran.is_final)
        return _completed(ran.result)


def _completed(result: str) -> Outcome:
    """A run with its result, unless that cannot be kept."""
    if len(result) > RESULT_BYTES:
        return _failed(f"{RESULT_TOO_LARGE}: {len(result)} bytes", final=True)
    if "\\u" in result and json_problem(result, must_be_object=False, storable=True):
        return _failed(RESULT_NOT_JSON, final=True)
    return Outcome(TASK_COMPLETE, {"result": result})


def _failed(error: str, *, final: bool = False) -> Outcome:
    """A failed run with its error, as text that a store takes."""
    return Outcome(TASK_FAIL if final else TASK_RETRY, {"error": storable(error, ERROR_TEXT)})


async def _report(borrowed: Borrowed, task: AssignedTask, progress: Mapping[str, Any]) -> None:
    await borrowed.report(task, json.dumps(progress, allow_nan=False))
