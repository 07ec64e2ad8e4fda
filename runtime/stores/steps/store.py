"""The changing half of the contract, for engines that run steps on a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from runtime.call.context import Call
from runtime.stores.contract import (
    NOTHING,
    Compare,
    CreateResult,
    ExchangeResult,
    Given,
    LeaseProof,
    LeaseSettlement,
    Record,
    Transitioned,
)
from runtime.stores.steps.entities import EntitySteps

Answer = TypeVar("Answer")


class StepStore(EntitySteps[Record]):
    """The entities of one kind; an engine says how a step is run, and how entities are read."""

    async def _run(self, step: Callable[..., Answer], *arguments: Any) -> Answer:
        """Run a step atomically."""
        raise NotImplementedError

    async def create(self, record: Record, call: Call, *, then: Sequence[str] = ()) -> CreateResult[Record]:
        return await self._run(self._create, record, call, then)

    async def create_many(
        self,
        records: Sequence[Record],
        call: Call,
        *,
        compare: Compare[Record] | None = None,
        then: Sequence[str] = (),
    ) -> list[CreateResult[Record]]:
        return await self._run(self._create_many, records, call, compare, then)

    async def transition(
        self,
        key: str,
        edge: str | Sequence[str],
        call: Call,
        *,
        lease: LeaseProof | None = None,
        owner: str = "",
        given: Given = NOTHING,
        noted: Mapping[str, str] = NOTHING,
        is_final: bool = False,
    ) -> Transitioned:
        return await self._run(self._transition, key, edge, call, lease, owner, given, noted, is_final)

    async def update(self, key: str, /, **changes: Any) -> Record:
        return await self._run(self._update, key, changes)

    async def delete(self, key: str, expected: int, call: Call) -> Transitioned:
        return await self._run(self._delete, key, expected, call)

    async def purge(self, older_than_s: float, call: Call) -> int:
        return await self._run(self._purge, older_than_s, call)

    async def claim(
        self,
        owner: str,
        count: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> list[Record]:
        return await self._run(self._claim, owner, count, call, where, capabilities)

    async def renew(
        self, held: Sequence[tuple[str, LeaseProof]], *, seconds: float | None = None
    ) -> list[Record | None]:
        return await self._run(self._renew, held, seconds)

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        return await self._run(self._settle, settlement, call)

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        return await self._run(self._settle_many, settlements, call)

    async def exchange(
        self,
        owner: str,
        settlements: Sequence[LeaseSettlement],
        free: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> ExchangeResult[Record]:
        return await self._run(self._exchange, owner, settlements, free, call, where, capabilities)

    async def pause(self, value: int) -> None:
        await self._run(self._pause, value)

    async def resume(self, value: int) -> None:
        await self._run(self._resume, value)

    async def run_due(self, change: str, call: Call) -> int:
        return await self._run(self._run_due, change, call)
