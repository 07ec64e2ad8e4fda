"""The worker: runs job functions, and says of each run how it ended."""

from __future__ import annotations

import asyncio
import json
from functools import partial

from generated.orchestrator.errors import RESULT_NOT_JSON, TIMED_OUT, UNKNOWN_JOB_TYPE
from generated.orchestrator.events import LEASE_LOST, WORKER_STARTED
from generated.orchestrator.lifecycle import JOB, JOB_COMPLETE, JOB_FAIL, JOB_RELEASE
from generated.orchestrator.policy import ERROR_TEXT
from generated.orchestrator.records import JobRecord
from generated.orchestrator.settings import WorkerSettings
from handlers.jobs import Job
from handlers.jobs.executor import Executor
from handlers.jobs.loader import load_setting
from handlers.jobs.runner import Reasons, run, storable
from runtime.call import Call
from runtime.stores.store import Held, KeptStore
from runtime.worker.config import Outcome, Pace, Told
from runtime.worker.lease_worker import LeaseWorker
from runtime.world import World

_REASONS = Reasons(TIMED_OUT, RESULT_NOT_JSON)
_AT_A_TIME = 2
"""Exchanges with the database: it works on one while it syncs another, or while the worker reads another."""
_parsed = json.JSONDecoder().raw_decode
"""The database has written it, so there is nothing around it to look for."""


class Worker:
    """Knows job functions and the store, and no other component."""

    def __init__(self, jobs: KeptStore[JobRecord], settings: WorkerSettings, world: World) -> None:
        self._jobs = jobs
        self._settings = settings
        self._world = world
        self._functions = load_setting("JOB_HANDLERS", settings.job_handlers)

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Takes jobs and runs them until it is told to stop."""
        async with Executor(self._settings.job_handlers, call, stopping) as execute:
            await self._leasing(execute, stopping).work(call, stopping)

    def _leasing(self, execute: Executor, stopping: asyncio.Event) -> LeaseWorker[JobRecord]:
        settings = self._settings
        assert JOB.lease is not None
        return LeaseWorker(
            self._jobs,
            JOB.lease,
            JOB.key,
            settings.worker_id,
            Pace(
                slots=settings.worker_concurrency,
                poll_s=settings.poll_interval_ms / 1000,
                lease_s=settings.lease_seconds,
                renew_s=settings.lease_renew_seconds,
                grace_s=settings.shutdown_grace_seconds,
                exchanges=_AT_A_TIME,
            ),
            partial(self._perform, execute, stopping),
            Outcome(JOB_RELEASE),
            _failed(RESULT_NOT_JSON, final=True),
            Told(WORKER_STARTED, LEASE_LOST),
            # It counts as if the reaper had found it, which it mostly has by then.
            overrun=lambda _: Outcome(JOB_FAIL),
        )

    async def _perform(
        self, execute: Executor, stopping: asyncio.Event, record: JobRecord, held: Held
    ) -> Outcome:
        """Runs the function of a job. Whatever it raises is a failed run, and no more than that."""
        function = self._functions.get(record.job_type)
        if function is None:
            return _failed(f"{UNKNOWN_JOB_TYPE}: {record.job_type}")
        seconds = function.timeout_s or self._settings.job_timeout_seconds
        given = Job(
            record.job_id,
            record.job_type,
            self._world,
            payload=_parsed(record.payload)[0],
            attempt=held.fence,
            token=record.job_id,
            is_stopping=stopping.is_set,
        )
        ran = await run(function, given, seconds, _REASONS, execute)
        if ran.error is not None:
            return _failed(ran.error, final=ran.is_final)
        return _completed(ran.result)


def _completed(result: str) -> Outcome:
    return Outcome(JOB_COMPLETE, {"result": result})


def _failed(error: str, *, final: bool = False) -> Outcome:
    """A failed run with its error, as text that a database takes."""
    return Outcome(JOB_FAIL, {"error": storable(error, ERROR_TEXT)}, final=final)
