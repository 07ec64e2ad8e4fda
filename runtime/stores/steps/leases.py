"""Leases as steps on a table: claiming, renewing, settling and pausing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Transition
from runtime.stores.contract import (
    NOTHING,
    Backlog,
    ExchangeResult,
    LeaseProof,
    LeaseSettlement,
    Record,
)
from runtime.stores.semantics.edges import applies, take_edge
from runtime.stores.semantics.leases import (
    LOST,
    after_renewal,
    equals,
    is_paused,
    lease_problem,
    offers,
    room,
)
from runtime.stores.semantics.rules import Change
from runtime.stores.steps.changes import ChangeSteps
from runtime.stores.steps.table import Claims, Table
from runtime.stores.store import GuardBreach, Unstorable


class LeaseSteps(ChangeSteps[Record]):
    """The leases of one kind of entity."""

    def _renew(self, held: Sequence[tuple[str, LeaseProof]], seconds: float | None) -> list[Record | None]:
        now, lease = self._now(), self._rules.lease
        if lease is None:
            raise GuardBreach(f"a {self._entity} has no lease")
        renewed: list[Record | None] = []
        for key, proof in held:
            record = self._get(key, now)
            if record is None or lease_problem(self._rules, record, *proof, now):
                renewed.append(None)
                continue
            new = after_renewal(self._rules, lease, record, now, seconds)
            renewed.append(self._put(key, record, new, now))
        return renewed

    def _settle_many(self, settlements: Sequence[LeaseSettlement], call: Call) -> list[int | Exception]:
        return [self._try_settle(each, call) for each in settlements]

    def _exchange(
        self,
        owner: str,
        settlements: Sequence[LeaseSettlement],
        free: int,
        call: Call,
        where: Mapping[str, object],
        capabilities: Collection[str] | None,
    ) -> ExchangeResult[Record]:
        self._admit_claim(call)
        self._require_fields(where)
        outcomes = [self._try_settle(each, call) for each in settlements]
        wanted = free + sum(not isinstance(each, Exception) for each in outcomes)
        return ExchangeResult(self._claim(owner, wanted, call, where, capabilities), outcomes)

    def _pause(self, value: int) -> None:
        self._require_pausable()
        self._table.pause(value)

    def _resume(self, value: int) -> None:
        self._require_pausable()
        self._table.resume(value)

    def _backlog(self, table: Table) -> dict[int, Backlog]:
        now, lease = self._now(), self._rules.lease
        sizes = self._claims(table).sizes(now)
        found = {}
        for rank, value in enumerate((lease.claim_order if lease else ()) or (0,)):
            count, oldest = sizes.get(rank, (0, now))
            found[value] = Backlog(count, max(0, now - oldest) / 1e6)
        return found

    # Claiming.

    def _claim(
        self,
        owner: str,
        count: int,
        call: Call,
        where: Mapping[str, object],
        capabilities: Collection[str] | None,
    ) -> list[Record]:
        edge = self._admit_claim(call)
        self._require_fields(where)
        rules, table, now = self._rules, self._table, self._now()
        table.forget(now)
        self._run_on_access(now, call)
        position = table.wakeups.position
        holder, status = self._holder(owner)
        held = len(self._claims(table).held_by(owner)) if holder is not None else 0
        free = room(rules, holder, status, held, count)
        keys = self._choose(free, now, offers(rules, holder, capabilities), where) if free > 0 else []
        if not keys:
            table.wakeups.found_nothing(position)
        return [self._lease_out(key, edge, owner, call, now) for key in keys]

    def _choose(
        self, free: int, now: int, offered: frozenset[str] | None, where: Mapping[str, object]
    ) -> list[str]:
        table, chosen = self._table, list[str]()
        paused = table.paused
        for key in self._claims(table).candidates(now, offered, paused):
            record = table.records[key]
            if not is_paused(self._rules, record, paused) and equals(record, where):
                chosen.append(key)
                if len(chosen) == free:
                    break
        return chosen

    def _lease_out(self, key: str, edge: Transition, owner: str, call: Call, now: int) -> Any:
        record = self._table.records[key]
        new, changes = take_edge(self._rules, edge, record, NOTHING, now, self._world, owner=owner)
        return self._commit(key, record, new, changes, call, now)

    def _claims(self, table: Table) -> Claims:
        claims = table.claims
        if claims is None:
            raise GuardBreach(f"a {self._entity} has no lease")
        return claims

    # Settling.

    def _try_settle(self, asked: LeaseSettlement, call: Call) -> int | Exception:
        try:
            return self._settle(asked, call)
        except (Failure, GuardBreach, Unstorable) as error:
            return error

    def _settle(self, asked: LeaseSettlement, call: Call) -> int:
        rules, now = self._rules, self._now()
        edge = self._admit(asked.edge, call, has_proof=True)
        if not isinstance(edge, Transition) or rules.lease is None or rules.lease.state not in edge.sources:
            raise GuardBreach(f"{asked.edge} does not leave the lease of a {self._entity}")
        if asked.is_final:
            self._require_ending(edge)
        record = self._get(asked.key, now, call)
        problem = LOST if record is None else lease_problem(rules, record, *asked.lease, now)
        if problem is None and not applies(rules, edge, record):
            problem = LOST
        if problem is not None:
            raise self._lease_lost(asked.key, asked.lease.owner, problem)
        new, changes = take_edge(rules, edge, record, asked.given, now, self._world, is_final=asked.is_final)
        self._commit(asked.key, record, new, changes, call, now, asked.given)
        state: int = rules.state(new)
        return state

    def _require_ending(self, edge: Change) -> None:
        if not isinstance(edge, Transition) or edge.dead_letter is None:
            raise GuardBreach(f"{edge.name} is never the last try of a {self._entity}")

    def _require_pausable(self) -> None:
        if self._rules.rank_field is None:
            raise GuardBreach(f"claims of a {self._entity} are in no order that could be paused")
