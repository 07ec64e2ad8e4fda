"""The claims of one worker: of the task types that it runs, and from its shards only."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from generated.objectqueue.records import TaskRecord
from handlers.objectqueue.views import SHARDS
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.stores.contract import EntityStore, ExchangeResult, LeaseProof, LeaseSettlement


class ShardClaims:
    """The lease store of a worker, which claims from its shards one after the other."""

    def __init__(
        self, tasks: EntityStore[TaskRecord], shards: Collection[str], task_types: Collection[str] | None
    ) -> None:
        self._tasks = tasks
        self._types = None if task_types is None else frozenset(task_types)
        self._shards = None if len(shards) == len(SHARDS) else deque(shards)

    async def exchange(
        self, owner: str, settlements: Sequence[LeaseSettlement], free: int, call: Call
    ) -> ExchangeResult[TaskRecord]:
        settlements = [_by_fence(each) for each in settlements]
        if self._shards is None:
            return await self._tasks.exchange(owner, settlements, free, call, capabilities=self._types)
        outcomes = await self._tasks.settle_many(settlements, call)
        wanted = free + sum(not isinstance(each, Exception) for each in outcomes)
        claimed: list[TaskRecord] = []
        for shard in [*self._shards]:
            if len(claimed) >= wanted:
                break
            try:
                claimed += await self._tasks.claim(
                    owner, wanted - len(claimed), call, where={"shard": shard}, capabilities=self._types
                )
            except Failure:
                # What was settled or claimed has to be returned; the next exchange meets the failure again.
                if not settlements and not claimed:
                    raise
                break
        # The next one begins at another shard, so that none of them waits behind a long one.
        self._shards.rotate(-1)
        return ExchangeResult(claimed, outcomes)

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        return await self._tasks.settle_many([_by_fence(each) for each in settlements], call)

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        return await self._tasks.settle(_by_fence(settlement), call)

    async def renew(self, held: Sequence[tuple[str, LeaseProof]]) -> Sequence[object]:
        return await self._tasks.renew([(key, prove_by_fence(lease)) for key, lease in held])

    async def wait(self, timeout_s: float) -> bool:
        return await self._tasks.wait(timeout_s)


def prove_by_fence(lease: LeaseProof) -> LeaseProof:
    """Return the proof by the number of the claim alone.

    Without the owner the end of the lease is not compared: a run that is stopped when its time is up is still
    settled by its worker, as long as the monitor, which waits a little, has not ended the lease.
    """
    return LeaseProof("", lease.fence)


def _by_fence(settlement: LeaseSettlement) -> LeaseSettlement:
    return settlement._replace(lease=prove_by_fence(settlement.lease))
