"""The lease store of a runner: adapts the QueueService to what a lease worker needs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from generated.queuey import errors
from generated.queuey.lifecycle import JOB, JOB_ABANDON, JOB_COMPLETE, JOB_RELEASE
from generated.queuey.messages import (
    COMPLETED,
    FAILED,
    ClaimJobRequest,
    CompleteJobRequest,
    Job,
    ReleaseJobRequest,
    TickleJobRequest,
)
from generated.queuey.services import QueueService
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.contract import ExchangeResult, LeaseProof, LeaseSettlement
from runtime.worker.claim_poll import ClaimPoll

_CLAIM_WAIT_MS = 2000
_LAST_POLL_S = 30.0
"""Grace of a stopped runner for its last poll, which ends before that unless the queue is away."""
_TRANSIENT_CODES = ("UNAVAILABLE", "DEADLINE_EXCEEDED")
_PAUSE_AFTER_TROUBLE_S = 5.0
"""Pause of claims after the release of a job that this machine cannot run."""


class QueueLeaseStore:
    """The jobs of the queue, as a store from which a lease worker claims."""

    def __init__(self, queue: QueueService, runner_id: str, call: Call) -> None:
        self._queue = queue
        self._runner_id = runner_id
        self._call = call
        self._pauses_until = 0.0
        self.poll: ClaimPoll[Job] = ClaimPoll(self._wait_for_job)

    async def exchange(
        self, _owner: str, settlements: Sequence[LeaseSettlement], free: int, call: Call
    ) -> ExchangeResult[Job]:
        """Report the ended runs, then claim one job after the other until there is none."""
        # What the poll in flight may bring needs a slot, too.
        wanted = free - self.poll.is_in_flight
        outcomes = await self.settle_many(settlements, call)
        wanted += sum(not isinstance(each, Exception) for each in outcomes)
        claimed: list[Job] = []
        try:
            while len(claimed) < wanted and (job := await self._claim(0)).job_id:
                claimed.append(job)
        except Failure as failure:
            if not settlements and not claimed:
                raise _to_retryable(failure) from None
        return ExchangeResult(claimed, outcomes)

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        """Report ended runs and claim nothing."""
        return await asyncio.gather(*(self._try_settle(each, call) for each in settlements))

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        """Report one run."""
        key, (owner, fence), edge, given, _ = settlement
        lease: dict[str, Any] = {"job_id": key, "runner_id": owner, "run_attempts": fence}
        is_abandoned = edge == JOB_ABANDON.name
        if is_abandoned or edge == JOB_RELEASE.name:
            await self._queue.release_job(ReleaseJobRequest(abandoned=is_abandoned, **lease), call)
            if is_abandoned:
                self._pauses_until = call.world.monotonic() + _PAUSE_AFTER_TROUBLE_S
        else:
            known = {name: value for name, value in given.items() if value is not None}
            status = COMPLETED if edge == JOB_COMPLETE.name else FAILED
            await self._queue.complete_job(CompleteJobRequest(status=status, **lease, **known), call)
        return JOB.transition(edge).target

    async def renew(self, held: Sequence[tuple[str, LeaseProof]]) -> Sequence[object]:
        """Send a heartbeat for each job; None where it is another's by now."""
        return await asyncio.gather(*(self._send_heartbeat(key, lease) for key, lease in held))

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a job, which is pushed to the worker at once."""
        if (pause_s := self._pauses_until - self._call.world.monotonic()) > 0:
            await self._call.world.sleep(min(pause_s, timeout_s))
            return True
        return await self.poll.wait(timeout_s)

    async def release_undelivered(self, call: Call) -> None:
        """Release a job that was claimed and never started. Nothing may be polled after that."""
        undelivered = await self.poll.drain(_LAST_POLL_S)
        leases = [(each.job_id, LeaseProof(self._runner_id, each.run_attempts)) for each in undelivered]
        await self.settle_many([LeaseSettlement(*each, JOB_RELEASE.name) for each in leases], call)

    async def _try_settle(self, settlement: LeaseSettlement, call: Call) -> int | Exception:
        try:
            return await self.settle(settlement, call)
        except Failure as failure:
            return _to_retryable(failure)

    async def _send_heartbeat(self, key: str, lease: LeaseProof) -> object:
        request = TickleJobRequest(job_id=key, runner_id=lease.owner, run_attempts=lease.fence)
        try:
            return await self._queue.tickle_job(request, self._call)
        except Failure as failure:
            return failure if failure.grpc in _TRANSIENT_CODES else None

    async def _wait_for_job(self) -> Sequence[Job]:
        job = await self._claim(_CLAIM_WAIT_MS)
        return [job] if job.job_id else []

    async def _claim(self, wait_ms: int) -> Job:
        """Claim a job; an empty one where there is none, or while this runner pauses."""
        if self._call.world.monotonic() < self._pauses_until:
            return Job()
        return await self._queue.claim_job(
            ClaimJobRequest(runner_id=self._runner_id, wait_ms=wait_ms), self._call
        )


def _to_retryable(failure: Failure) -> Failure:
    """Return a failure that a worker retries, where the queue may be back soon."""
    return errors.UpstreamUnavailable(service="queue") if failure.grpc in _TRANSIENT_CODES else failure
