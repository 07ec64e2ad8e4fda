"""Settlements: write what came of leased entities, and find out why something was not written."""

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
"""How many results wait for another transaction at a time: the connections are for the others too."""
_REMEMBERED = 10_000
_Outcome = int | Exception
_Outcomes = list[_Outcome]
_Groups = dict[str, list[int]]
"""The places of those that are settled, by the name of the edge that each takes."""


class Lost(Exception):
    """Nothing was written, because the lease had ended or is another's; the text says which."""


class SettlementResult(NamedTuple):
    """What came of each, in their order, and the rows that were claimed in the same step, if it was made."""

    outcomes: Sequence[_Outcome]
    claimed: Sequence[Any] | None = None


class PostgresSettlements(PostgresCreation[Record]):
    """The results of one kind of entity. Those of one edge are written together."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._unsure: BoundedMap[bool] = BoundedMap(_REMEMBERED)
        self._patience = asyncio.Semaphore(_PATIENT)
        is_compiled = "claim" in self._statements and "holder" not in self._statements
        self._is_plain = is_compiled and self._is_timeless
        """Whether a claim is one statement: neither a holder nor a clock has to be looked at first.

        Where it is a transaction, that has rows for a moment which it does not claim: those are waited for.
        """

    # Settling.

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        """Settle one; where another transaction has the row, it is waited for."""
        edge = self._admit_settlement(settlement, call)
        (answer,) = await self._settle_at_once([settlement], call)
        if isinstance(answer, Busy):
            async with self._patience:
                outcomes = await self._settle_group(edge, call, [settlement], is_patient=True)
            (answer,) = self._answers([settlement], [*outcomes], call)
        if isinstance(answer, Busy):
            raise self._unavailable()
        if isinstance(answer, Exception):
            raise answer
        return answer

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
        """Settle what another transaction had: a claim that came too late for it has it until its end."""
        if not isinstance(outcome, Busy):
            return outcome
        try:
            return await self.settle(settlement, call)
        except (Failure, GuardBreach, Unstorable) as error:
            return error

    async def _settle_at_once(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        outcomes, along, places = await self._settle_most(settlements, call)
        if along is not None:
            await self._settle_places(along, settlements, places, outcomes, call)
        return self._answers(settlements, outcomes, call)

    async def _settle_most(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> tuple[_Outcomes, Transition | None, list[int]]:
        """Settle all but the largest group of one compiled edge, which is left for the step of a claim."""
        outcomes: _Outcomes = [Lost()] * len(settlements)
        edges: dict[str, Transition] = {}
        rounds: list[_Groups] = [{}]
        keys: set[str] = set()
        for place, each in enumerate(settlements):
            try:
                edges[each.edge] = self._admit_settlement(each, call)
            except (Failure, GuardBreach) as error:
                outcomes[place] = error
                continue
            key = self._codec.as_key(each.key)
            if not self._codec.is_key(key):
                outcomes[place] = Lost("lost")
                continue
            try:
                await self._access(key, call)
            except (Failure, GuardBreach, Unstorable) as error:
                outcomes[place] = error
                continue
            if key in keys:  # A second settlement of one entity comes after the first.
                rounds.append({})
                keys.clear()
            keys.add(key)
            rounds[-1].setdefault(each.edge, []).append(place)
        last = rounds[-1]
        plain = [name for name in last if f"exchange_{name}" in self._statements]
        along = max(plain, key=lambda name: len(last[name]), default=None)
        for groups in rounds:
            for name, places in groups.items():
                if groups is not last or name != along:
                    await self._settle_places(edges[name], settlements, places, outcomes, call)
        return (outcomes, edges[along], last[along]) if along is not None else (outcomes, None, [])

    async def _settle_places(
        self,
        edge: Transition,
        settlements: Sequence[LeaseSettlement],
        places: Sequence[int],
        outcomes: _Outcomes,
        call: Call,
    ) -> None:
        written = await self._settle_group(edge, call, [settlements[place] for place in places])
        for place, outcome in zip(places, written, strict=True):
            outcomes[place] = outcome

    def _answers(
        self, settlements: Sequence[LeaseSettlement], outcomes: _Outcomes, call: Call
    ) -> Sequence[int | Exception]:
        """Return the outcomes as callers get them, and audit those that were written."""
        applied: dict[str, tuple[Transition, list[tuple[str, str, int]]]] = {}
        for place, each in enumerate(settlements):
            outcome = outcomes[place] = self._to_answer(each, outcomes[place])
            if not isinstance(outcome, Exception):
                for edge in self._path(self._rules.edges[each.edge], outcome):
                    applied.setdefault(edge.name, (edge, []))[1].append((each.key, *each.lease))
        for edge, held in applied.values():
            self._audit_leases(edge, held, call)
        return outcomes

    def _path(self, edge: Transition, end: int) -> tuple[Transition, ...]:
        """Return the edges that led out of the lease: one, or two where it was the last try."""
        lease = self._rules.lease
        edge = self._rules.taken_from(edge, lease.state if lease else edge.source)
        if end == edge.target or edge.dead_letter is None:
            return (edge,)
        last = self._rules.edges[edge.dead_letter.transition]
        if edge.source in last.sources:
            return (self._rules.taken_from(last, edge.source),)
        return (edge, self._rules.taken_from(last, edge.target))

    # The results of one edge.

    def _admit_settlement(self, asked: LeaseSettlement, call: Call) -> Transition:
        """Return the edge of a settlement; raises where it is none that the caller may take."""
        edge = self._admit(asked.edge, call, has_proof=True)
        lease = self._rules.lease
        if not isinstance(edge, Transition) or lease is None or lease.state not in edge.sources:
            raise GuardBreach(f"{asked.edge} does not leave the lease of a {self._entity}")
        if asked.is_final:
            self._require_ending(edge)
        return edge

    async def _settle_group(
        self, edge: Transition, call: Call, asked: Sequence[LeaseSettlement], *, is_patient: bool = False
    ) -> Sequence[_Outcome]:
        """Write the results of one edge; one that another transaction has is left, or waited for."""
        if is_patient or f"settle_{edge.name}" not in self._statements:
            return (await self._write_group(edge, call, asked, is_patient=is_patient)).outcomes
        return (await self._write_group(edge, call, asked, f"settle_{edge.name}")).outcomes

    async def _exchange_group(
        self, edge: Transition, call: Call, asked: Sequence[LeaseSettlement], **claiming: Any
    ) -> SettlementResult:
        """Write results and claim others in the same statement."""
        return await self._write_group(edge, call, asked, f"exchange_{edge.name}", **claiming)

    async def _write_group(
        self,
        edge: Transition,
        call: Call,
        asked: Sequence[LeaseSettlement],
        statement: str = "",
        *,
        is_patient: bool = False,
        **claiming: Any,
    ) -> SettlementResult:
        try:
            if statement:
                outcomes, claimed = await self._send(statement, edge, call, asked, **claiming)
            else:
                outcomes, claimed = await self._step(edge, call, asked, is_patient=is_patient), None
        except Locked:
            if not statement.startswith("exchange_"):
                return SettlementResult([Busy("another transaction has it")] * len(asked))
            # Another transaction has one of them; the others do not wait for that.
            return SettlementResult(await self._settle_group(edge, call, asked))
        except PostgresUnavailable as error:
            if error.unknown:
                self._doubt(asked)
            return SettlementResult([error] * len(asked))
        except (Unstorable, GuardBreach) as error:
            if len(asked) == 1:
                return SettlementResult([error])
            # It is about one of them; the others are not to suffer for it.
            return SettlementResult([(await self._settle_group(edge, call, [each]))[0] for each in asked])
        if len(self._unsure):
            for each, outcome in zip(asked, outcomes, strict=True):
                if not isinstance(outcome, PostgresUnavailable | Busy):
                    self._unsure.remove(self._mark(each))
        return SettlementResult(outcomes, claimed)

    # One statement.

    async def _send(
        self, statement: str, edge: Transition, call: Call, asked: Sequence[LeaseSettlement], **claiming: Any
    ) -> tuple[Sequence[_Outcome], Sequence[Any] | None]:
        given = self._lease_columns((each.key, each.lease) for each in asked)
        for name, take in edge.from_request.items():
            values = [given_value(self._rules, name, take, each.given) for each in asked]
            given[f"given_{name}"] = [self._codec.argument(name, value) for value in values]
        rows = await self._run(statement, actor=call.caller, **given, **claiming)
        # What was claimed has a rank; what was settled comes first.
        count = sum(row["_rank"] == 0 for row in rows) if claiming else len(rows)
        written, claimed = rows[:count], rows[count:] if claiming else None
        if len(written) == len(asked):
            return [edge.target] * len(asked), claimed
        keys = {str(row[self._key_field]) for row in written}
        left = [each for each in asked if self._codec.as_key(each.key) not in keys]
        told = await self._explain(edge, left)
        outcomes = [
            edge.target if self._codec.as_key(each.key) in keys else told[self._mark(each)] for each in asked
        ]
        return outcomes, claimed

    def _lease_columns(self, held: Iterable[tuple[str, LeaseProof]]) -> dict[str, list[Any]]:
        """Return keys and proofs as a statement takes them."""
        keys, owners, fences = list[str](), list[str](), list[int]()
        for key, (owner, fence) in held:
            keys.append(self._codec.as_key(key))
            owners.append(owner)
            fences.append(fence)
        return {"keys": keys, "owners": owners, "fences": fences}

    # A step of the semantics.

    async def _step(
        self, edge: Transition, call: Call, asked: Sequence[LeaseSettlement], *, is_patient: bool
    ) -> Sequence[_Outcome]:
        rules, codec = self._rules, self._codec
        told: dict[str, _Outcome] = {}
        taken: dict[str, StepOutcome] = {}
        async with self._database.transaction() as connection:
            name = "lock" if is_patient else "lock_free"
            keys = [codec.as_key(each.key) for each in asked]
            rows = {str(row[self._key_field]): row for row in await self._run_in(connection, name, keys=keys)}
            for each in asked:
                row = rows.get(codec.as_key(each.key))
                if row is None:
                    continue
                record, now = codec.decode(row), moment_of(row)
                problem = self._find_problem(edge, record, each.lease, now)
                if problem is not None:
                    told[self._mark(each)] = self._recall(edge, each, record) or Lost(problem)
                    continue
                given = {
                    name: storable(value) if isinstance(value, str) else value
                    for name, value in each.given.items()
                }
                begun = StepOutcome(record, (), given)
                taken[self._mark(each)] = self._take(begun, edge, now, "", is_final=each.is_final)
            is_written = await self._write(connection, call.caller, [*taken.values()], call)
            if not is_written:
                # A lease ended while its row was waited for: none of this was in time.
                raise PostgresUnavailable("a lease ended meanwhile")
        told |= {mark: rules.state(each.record) for mark, each in taken.items()}
        for ended in taken.values():
            for change, _ in ended.changes:
                if change.name not in ended.asked:
                    self._measures.given_up()
        if left := [each for each in asked if self._mark(each) not in told]:
            told |= await self._explain(edge, left)
        return [told[self._mark(each)] for each in asked]

    def _find_problem(self, edge: Transition, record: Any, lease: LeaseProof, now: int) -> str | None:
        problem = lease_problem(self._rules, record, *lease, now)
        return problem if problem is not None or applies(self._rules, edge, record) else LOST

    # Doubts.

    async def _explain(self, edge: Transition, left: Sequence[LeaseSettlement]) -> dict[str, _Outcome]:
        """Look again at those that nothing was written for: locked by another, written before, or lost."""
        codec = self._codec
        rows = {
            str(row[self._key_field]): row
            for row in await self._run("holds", keys=[codec.as_key(each.key) for each in left])
        }
        told: dict[str, _Outcome] = {}
        for each in left:
            row = rows.get(codec.as_key(each.key))
            record = codec.decode(row) if row is not None else None
            problem = LOST if row is None else self._find_problem(edge, record, each.lease, moment_of(row))
            if problem is None:
                told[self._mark(each)] = Busy("another transaction has it")
            else:
                told[self._mark(each)] = self._recall(edge, each, record) or Lost(problem)
        return told

    def _recall(self, edge: Transition, asked: LeaseSettlement, record: Any | None) -> int | None:
        """Return the state that an earlier attempt has led to, whose answer was lost; None if none did."""
        lease = self._rules.lease
        if record is None or lease is None or not self._unsure.get(self._mark(asked)):
            return None
        possible = {edge.target}
        if edge.dead_letter is not None:
            possible.add(self._rules.edges[edge.dead_letter.transition].target)
        state: int = self._rules.state(record)
        return state if state in possible and getattr(record, lease.fence) == asked.lease.fence else None

    def _doubt(self, asked: Sequence[LeaseSettlement]) -> None:
        """Remember that these may have been written; that is found out when they are written again."""
        for each in asked:
            if self._unsure.get(self._mark(each)) is None:
                self._unsure.add(self._mark(each), True)

    def _mark(self, asked: LeaseSettlement) -> str:
        return f"{self._codec.as_key(asked.key)} {asked.lease.fence}"

    def _to_answer(self, asked: LeaseSettlement, outcome: _Outcome) -> _Outcome:
        """Return an outcome as the caller gets it."""
        if isinstance(outcome, Lost):
            self._measures.lease_lost()
            return self._lease_lost(asked.key, asked.lease.owner, str(outcome))
        if isinstance(outcome, PostgresUnavailable):
            return self._unavailable()
        return outcome


def count_settled(outcomes: Iterable[_Outcome]) -> int:
    """Count those that were written."""
    return sum(not isinstance(each, Exception) for each in outcomes)
