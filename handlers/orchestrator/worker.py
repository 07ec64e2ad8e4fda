"""The worker: claims jobs, runs their functions, and settles each run with its outcome."""

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
from handlers.jobs.executor import Executor, FailureReasons, run, to_storable_text
from handlers.jobs.loader import load_setting
from runtime.call import Call
from runtime.stores.contract import EntityStore, LeaseProof
from runtime.worker.config import Outcome, WorkerConfig, WorkerEvents
from runtime.worker.lease_worker import LeaseWorker
from runtime.world import World

_REASONS = FailureReasons(TIMED_OUT, RESULT_NOT_JSON)
_PARALLEL_EXCHANGES = 2
"""Exchanges in flight: the database works on one while it syncs another or the worker decodes another."""
_parse_json = json.JSONDecoder().raw_decode
"""Parse JSON without looking for surrounding whitespace: the database has written it."""


class Worker:
    """A lease worker for jobs. It calls the store and no other component."""

    def __init__(self, jobs: EntityStore[JobRecord], settings: WorkerSettings, world: World) -> None:
        self._jobs = jobs
        self._settings = settings
        self._world = world
        self._functions = load_setting("JOB_HANDLERS", settings.job_handlers)

    async def run(self, call: Call, stopping: asyncio.Event) -> None:
        """Claim and run jobs until shutdown."""
        async with Executor(self._settings.job_handlers, call, stopping) as execute:
            await self._build_lease_worker(execute, stopping).work(call, stopping)

    def _build_lease_worker(self, execute: Executor, stopping: asyncio.Event) -> LeaseWorker[JobRecord]:
        settings = self._settings
        assert JOB.lease is not None
        return LeaseWorker(
            self._jobs,
            JOB.lease,
            JOB.key,
            settings.worker_id,
            WorkerConfig(
                slots=settings.worker_concurrency,
                poll_s=settings.poll_interval_ms / 1000,
                lease_s=settings.lease_seconds,
                renew_s=settings.lease_renew_seconds,
                grace_s=settings.shutdown_grace_seconds,
                exchanges=_PARALLEL_EXCHANGES,
            ),
            partial(self._perform, execute, stopping),
            Outcome(JOB_RELEASE),
            _fail(RESULT_NOT_JSON, is_final=True),
            WorkerEvents(WORKER_STARTED, LEASE_LOST),
            # An overrun counts like an expired lease, which the reaper has mostly found by then.
            overrun=lambda _: Outcome(JOB_FAIL),
        )

    async def _perform(
        self, execute: Executor, stopping: asyncio.Event, record: JobRecord, lease: LeaseProof
    ) -> Outcome:
        """Run the function of a job. Any exception that it raises is a failed run, and no more than that."""
        function = self._functions.get(record.job_type)
        if function is None:
            return _fail(f"{UNKNOWN_JOB_TYPE}: {record.job_type}")
        seconds = function.timeout_s or self._settings.job_timeout_seconds
        job = Job(
            record.job_id,
            record.job_type,
            self._world,
            payload=_parse_json(record.payload)[0],
            attempt=lease.fence,
            token=record.job_id,
            is_stopping=stopping.is_set,
        )
        result = await run(function, job, seconds, _REASONS, execute)
        if result.error is not None:
            return _fail(result.error, is_final=result.is_final)
        return _complete(result.result)


def _complete(result: str) -> Outcome:
    return Outcome(JOB_COMPLETE, {"result": result})


def _fail(error: str, *, is_final: bool = False) -> Outcome:
    """Build the outcome of a failed run, with its error as text that a database takes."""
    return Outcome(JOB_FAIL, {"error": to_storable_text(error, ERROR_TEXT)}, is_final=is_final)
