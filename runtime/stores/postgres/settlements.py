"""Settlements: apply the results of leased entities, and explain those that were not applied."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Transition
from runtime.stores.bounded import BoundedMap
from runtime.stores.contract import LeaseProof, LeaseSettlement, Record
from runtime.stores.postgres.codec import storable
from runtime.stores.postgres.context import moment_of
from runtime.stores.postgres.creation import PostgresCreation
from runtime.stores.postgres.database import Locked, PostgresUnavailable
from runtime.stores.postgres.steps import StepOutcome
from runtime.stores.semantics.edges import applies, given_value
from runtime.stores.semantics.leases import LOST, lease_problem
from runtime.stores.store import Busy, GuardBreach, Unstorable

_PATIENT = 3
"""Most settlements that wait for locks at a time, so that connections stay free for others."""
_REMEMBERED = 10_000
_Outcome = int | Exception
_Outcomes = list[_Outcome]
_Groups = dict[str, list[int]]
"""The positions of settlements, by the name of their edge."""


class Lost(Exception):
    """The lease has expired or has another owner, so nothing was written; the text says which."""


class SettlementResult(NamedTuple):
    """The outcomes of settlements in order, and the rows that were claimed by the same statement, if any."""

    outcomes: Sequence[_Outcome]
    claimed: Sequence[Any] | None = None


class PostgresSettlements(PostgresCreation[Record]):
    """The settlements of one kind of entity. Those of one edge are batched."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unsure: BoundedMap[bool] = BoundedMap(_REMEMBERED)
        self._patience = asyncio.Semaphore(_PATIENT)
        is_compiled = "claim" in self._statements and "holder" not in self._statements
        self._is_plain = is_compiled and self._is_timeless
        """Whether a claim is one statement: it reads neither a holder nor a clock first.

        Where it is a transaction, it briefly locks rows that it does not claim: settlements wait for those.
        """

    # Settling.

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        """Settle one; wait for the lock of its row if necessary."""
        edge = self._admit_settlement(settlement, call)
        (result,) = await self._settle_at_once([settlement], call)
        if isinstance(result, Busy):
            async with self._patience:
                outcomes = await self._settle_group(edge, call, [settlement], is_patient=True)
            (result,) = self._to_results([settlement], [*outcomes], call)
        if isinstance(result, Busy):
            raise self._unavailable()
        if isinstance(result, Exception):
            raise result
        return result

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        outcomes = await self._settle_at_once(settlements, call)
        if self._is_plain:
            return outcomes
        pairs = zip(settlements, outcomes, strict=True)
        return [await self._wait_out(each, outcome, call) for each, outcome in pairs]

    async def _wait_out(
        self, settlement: LeaseSettlement, outcome: int | Exception, call: Call
    ) -> int | Exception:
        """Settle after waiting for the lock of a concurrent claim, which had it until its commit."""
        if not isinstance(outcome, Busy):
            return outcome
        try:
            return await self.settle(settlement, call)
        except (Failure, GuardBreach, Unstorable) as error:
            return error

    async def _settle_at_once(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        outcomes, combined, positions = await self._settle_most(settlements, call)
        if combined is not None:
            await self._settle_positions(combined, settlements, positions, outcomes, call)
        return self._to_results(settlements, outcomes, call)

    async def _settle_most(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> tuple[_Outcomes, Transition | None, list[int]]:
        """Settle all but the largest group of one compiled edge, which is combined with a claim."""
        outcomes: _Outcomes = [Lost()] * len(settlements)
        edges: dict[str, Transition] = {}
        rounds: list[_Groups] = [{}]
        keys: set[str] = set()
        for position, each in enumerate(settlements):
            try:
                edges[each.edge] = self._admit_settlement(each, call)
            except (Failure, GuardBreach) as error:
                outcomes[position] = error
                continue
            key = self._codec.as_key(each.key)
            if not self._codec.is_key(key):
                outcomes[position] = Lost("lost")
                continue
            try:
                await self._access(key, call)
            except (Failure, GuardBreach, Unstorable) as error:
                outcomes[position] = error
                continue
            if key in keys:  # A second settlement of one entity comes after the first.
                rounds.append({})
                keys.clear()
            keys.add(key)
            rounds[-1].setdefault(each.edge, []).append(position)
        last = rounds[-1]
        plain = [name for name in last if f"exchange_{name}" in self._statements]
        combined = max(plain, key=lambda name: len(last[name]), default=None)
        for groups in rounds:
            for name, positions in groups.items():
                if groups is not last or name != combined:
                    await self._settle_positions(edges[name], settlements, positions, outcomes, call)
        return (outcomes, edges[combined], last[combined]) if combined is not None else (outcomes, None, [])

    async def _settle_positions(
        self,
        edge: Transition,
        settlements: Sequence[LeaseSettlement],
        positions: Sequence[int],
        outcomes: _Outcomes,
        call: Call,
    ) -> None:
        written = await self._settle_group(edge, call, [settlements[position] for position in positions])
        for position, outcome in zip(positions, written, strict=True):
            outcomes[position] = outcome

    def _to_results(
        self, settlements: Sequence[LeaseSettlement], outcomes: _Outcomes, call: Call
    ) -> Sequence[int | Exception]:
        """Convert outcomes to the results of the caller, and audit the applied ones."""
        applied: dict[str, tuple[Transition, list[tuple[str, str, int]]]] = {}
        for position, each in enumerate(settlements):
            outcome = outcomes[position] = self._to_result(each, outcomes[position])
            if not isinstance(outcome, Exception):
                for edge in self._path(self._rules.edges[each.edge], outcome):
                    applied.setdefault(edge.name, (edge, []))[1].append((each.key, *each.lease))
        for edge, held in applied.values():
            self._audit_leases(edge, held, call)
        return outcomes

    def _path(self, edge: Transition, end: int) -> tuple[Transition, ...]:
        """Return the edges that led out of the lease: one, or two with a dead letter."""
        lease = self._rules.lease
        edge = self._rules.taken_from(edge, lease.state if lease else edge.source)
        if end == edge.target or edge.dead_letter is None:
            return (edge,)
        last = self._rules.edges[edge.dead_letter.transition]
        if edge.source in last.sources:
            return (self._rules.taken_from(last, edge.source),)
        return (edge, self._rules.taken_from(last, edge.target))

    # The settlements of one edge.

    def _admit_settlement(self, settlement: LeaseSettlement, call: Call) -> Transition:
        """Return the edge of a settlement; raises where the caller may not drive it."""
        edge = self._admit(settlement.edge, call, has_proof=True)
        lease = self._rules.lease
        if not isinstance(edge, Transition) or lease is None or lease.state not in edge.sources:
            raise GuardBreach(f"{settlement.edge} does not leave the lease of a {self._entity}")
        if settlement.is_final:
            self._require_ending(edge)
        return edge

    async def _settle_group(
        self,
        edge: Transition,
        call: Call,
        settlements: Sequence[LeaseSettlement],
        *,
        is_patient: bool = False,
    ) -> Sequence[_Outcome]:
        """Write the settlements of one edge; skip those whose rows are locked, or wait for the locks."""
        if is_patient or f"settle_{edge.name}" not in self._statements:
            return (await self._write_group(edge, call, settlements, is_patient=is_patient)).outcomes
        return (await self._write_group(edge, call, settlements, f"settle_{edge.name}")).outcomes

    async def _exchange_group(
        self, edge: Transition, call: Call, settlements: Sequence[LeaseSettlement], **claiming: Any
    ) -> SettlementResult:
        """Write settlements and claim other entities in the same statement."""
        return await self._write_group(edge, call, settlements, f"exchange_{edge.name}", **claiming)

    async def _write_group(
        self,
        edge: Transition,
        call: Call,
        settlements: Sequence[LeaseSettlement],
        statement: str = "",
        *,
        is_patient: bool = False,
        **claiming: Any,
    ) -> SettlementResult:
        try:
            if statement:
                outcomes, claimed = await self._send(statement, edge, call, settlements, **claiming)
            else:
                outcomes, claimed = await self._step(edge, call, settlements, is_patient=is_patient), None
        except Locked:
            if not statement.startswith("exchange_"):
                return SettlementResult([Busy("another transaction has it")] * len(settlements))
            # One row is locked; the others do not wait for it.
            return SettlementResult(await self._settle_group(edge, call, settlements))
        except PostgresUnavailable as error:
            if error.unknown:
                self._doubt(settlements)
            return SettlementResult([error] * len(settlements))
        except (Unstorable, GuardBreach) as error:
            if len(settlements) == 1:
                return SettlementResult([error])
            # One of them is the cause; settle the others without it.
            return SettlementResult(
                [(await self._settle_group(edge, call, [each]))[0] for each in settlements]
            )
        if len(self._unsure):
            for each, outcome in zip(settlements, outcomes, strict=True):
                if not isinstance(outcome, PostgresUnavailable | Busy):
                    self._unsure.remove(self._lease_id(each))
        return SettlementResult(outcomes, claimed)

    # One statement.

    async def _send(
        self,
        statement: str,
        edge: Transition,
        call: Call,
        settlements: Sequence[LeaseSettlement],
        **claiming: Any,
    ) -> tuple[Sequence[_Outcome], Sequence[Any] | None]:
        arguments = self._lease_columns((each.key, each.lease) for each in settlements)
        for name, take in edge.from_request.items():
            values = [given_value(self._rules, name, take, each.given) for each in settlements]
            arguments[f"given_{name}"] = [self._codec.argument(name, value) for value in values]
        rows = await self._run(statement, actor=call.caller, **arguments, **claiming)
        # Claimed rows have a rank; settled rows come first.
        count = sum(row["_rank"] == 0 for row in rows) if claiming else len(rows)
        written, claimed = rows[:count], rows[count:] if claiming else None
        if len(written) == len(settlements):
            return [edge.target] * len(settlements), claimed
        keys = {str(row[self._key_field]) for row in written}
        remaining = [each for each in settlements if self._codec.as_key(each.key) not in keys]
        explained = await self._explain(edge, remaining)
        outcomes = [
            edge.target if self._codec.as_key(each.key) in keys else explained[self._lease_id(each)]
            for each in settlements
        ]
        return outcomes, claimed

    def _lease_columns(self, held: Iterable[tuple[str, LeaseProof]]) -> dict[str, list[Any]]:
        """Return keys and proofs as column arguments of a statement."""
        keys, owners, fences = list[str](), list[str](), list[int]()
        for key, (owner, fence) in held:
            keys.append(self._codec.as_key(key))
            owners.append(owner)
            fences.append(fence)
        return {"keys": keys, "owners": owners, "fences": fences}

    # In a transaction, by the semantics.

    async def _step(
        self, edge: Transition, call: Call, settlements: Sequence[LeaseSettlement], *, is_patient: bool
    ) -> Sequence[_Outcome]:
        rules, codec = self._rules, self._codec
        outcomes: dict[str, _Outcome] = {}
        steps: dict[str, StepOutcome] = {}
        async with self._database.transaction() as connection:
            name = "lock" if is_patient else "lock_free"
            keys = [codec.as_key(each.key) for each in settlements]
            rows = {str(row[self._key_field]): row for row in await self._run_in(connection, name, keys=keys)}
            for each in settlements:
                row = rows.get(codec.as_key(each.key))
                if row is None:
                    continue
                record, now = codec.decode(row), moment_of(row)
                problem = self._find_problem(edge, record, each.lease, now)
                if problem is not None:
                    outcomes[self._lease_id(each)] = self._recall(edge, each, record) or Lost(problem)
                    continue
                given = {
                    name: storable(value) if isinstance(value, str) else value
                    for name, value in each.given.items()
                }
                begun = StepOutcome(record, (), given)
                steps[self._lease_id(each)] = self._apply(begun, edge, now, "", is_final=each.is_final)
            is_written = await self._write(connection, call.caller, [*steps.values()], call)
            if not is_written:
                # A lease expired during the wait for its row: the transaction is too late.
                raise PostgresUnavailable("a lease has expired during the transaction")
        outcomes |= {lease_id: rules.state(each.record) for lease_id, each in steps.items()}
        for ended in steps.values():
            for change, _ in ended.changes:
                if change.name not in ended.requested:
                    self._measures.given_up()
        if remaining := [each for each in settlements if self._lease_id(each) not in outcomes]:
            outcomes |= await self._explain(edge, remaining)
        return [outcomes[self._lease_id(each)] for each in settlements]

    def _find_problem(self, edge: Transition, record: Any, lease: LeaseProof, now: int) -> str | None:
        problem = lease_problem(self._rules, record, *lease, now)
        return problem if problem is not None or applies(self._rules, edge, record) else LOST

    # Doubts.

    async def _explain(self, edge: Transition, remaining: Sequence[LeaseSettlement]) -> dict[str, _Outcome]:
        """Read unwritten settlements again: locked, applied by an earlier try, or lost."""
        codec = self._codec
        rows = {
            str(row[self._key_field]): row
            for row in await self._run("holds", keys=[codec.as_key(each.key) for each in remaining])
        }
        outcomes: dict[str, _Outcome] = {}
        for each in remaining:
            row = rows.get(codec.as_key(each.key))
            record = codec.decode(row) if row is not None else None
            problem = LOST if row is None else self._find_problem(edge, record, each.lease, moment_of(row))
            if problem is None:
                outcomes[self._lease_id(each)] = Busy("another transaction has it")
            else:
                outcomes[self._lease_id(each)] = self._recall(edge, each, record) or Lost(problem)
        return outcomes

    def _recall(self, edge: Transition, settlement: LeaseSettlement, record: Any | None) -> int | None:
        """Return the state after an earlier try with a lost response; None if there was none."""
        lease = self._rules.lease
        if record is None or lease is None or not self._unsure.get(self._lease_id(settlement)):
            return None
        possible = {edge.target}
        if edge.dead_letter is not None:
            possible.add(self._rules.edges[edge.dead_letter.transition].target)
        state: int = self._rules.state(record)
        return state if state in possible and getattr(record, lease.fence) == settlement.lease.fence else None

    def _doubt(self, settlements: Sequence[LeaseSettlement]) -> None:
        """Remember that these may have been written, for the next try of the caller."""
        for each in settlements:
            if self._unsure.get(self._lease_id(each)) is None:
                self._unsure.add(self._lease_id(each), True)

    def _lease_id(self, settlement: LeaseSettlement) -> str:
        return f"{self._codec.as_key(settlement.key)} {settlement.lease.fence}"

    def _to_result(self, settlement: LeaseSettlement, outcome: _Outcome) -> _Outcome:
        """Convert an outcome to the result of the caller."""
        if isinstance(outcome, Lost):
            self._measures.lease_lost()
            return self._lease_lost(settlement.key, settlement.lease.owner, str(outcome))
        if isinstance(outcome, PostgresUnavailable):
            return self._unavailable()
        return outcome


def count_settled(outcomes: Iterable[_Outcome]) -> int:
    """Count the applied settlements."""
    return sum(not isinstance(each, Exception) for each in outcomes)
