"""What all parts of the store need: the statements of an entity, its settings, how it tells and fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import asyncpg

from runtime.call.conditions import Condition
from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import System
from runtime.observe import log as events
from runtime.observe.metrics import Metrics
from runtime.stores.postgres.database import LONG_S, STATEMENT_S, Database, Unavailable, run
from runtime.stores.postgres.measures import Measures
from runtime.stores.postgres.rows import Rows, refused, storable
from runtime.stores.postgres.statements import Statement, statements
from runtime.stores.store import GuardBreach, Record

Answer = TypeVar("Answer")

_OF_GUARDS = ("CH001", "CH002", "CH003")
"""What the triggers of the schema raise."""
_OF_VALUES = ("22", "23", "54")
"""Classes of SQLSTATE that say that a value cannot be kept: it is wrong, unwanted, or too large."""
_LONG = ("census", "purge")
"""Statements that may take a while."""


class Table(Generic[Record]):
    """The table of one kind of entity."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        database: Database,
        metrics: Metrics,
        values: Mapping[str, Any],
    ) -> None:
        if lifecycle.kept is None:
            raise ValueError(f"{lifecycle.entity} is not kept in a database")
        self.roles = system.roles
        self.lifecycle = lifecycle
        self.kept = lifecycle.kept
        self.database = database
        self.rows = Rows(lifecycle, record)
        self.metrics = metrics
        self.measures = Measures(metrics, lifecycle.entity)
        self.variables = values
        self.statements = statements(system.name, lifecycle.entity)

    async def run(self, name: str, **given: Any) -> Sequence[Any]:
        """Runs a statement in a transaction of its own."""
        statement = self.statements[name]
        try:
            arguments = self._arguments(statement, given)
            timeout = LONG_S if name in _LONG else STATEMENT_S
            return await self.database.fetch(statement.text, *arguments, timeout=timeout)
        except asyncpg.PostgresError as error:
            raise self.refusal(error) from None

    async def run_in(self, connection: asyncpg.Connection[Any], name: str, **given: Any) -> Sequence[Any]:
        """Runs a statement in a transaction that has more of them."""
        statement = self.statements[name]
        try:
            return await run(connection, statement.text, *self._arguments(statement, given))
        except asyncpg.PostgresError as error:
            raise self.refusal(error) from None

    async def answer(self, work: Awaitable[Answer]) -> Answer:
        """What came of something; that the database cannot be reached is all that a caller learns of it."""
        try:
            return await work
        except Unavailable:
            raise self.unavailable() from None

    def unavailable(self) -> Condition:
        """What a caller is told when the database cannot be reached."""
        make: Callable[..., Condition] = self.roles["store_unavailable"]
        return make()

    def taken(
        self, statement: str, edge: Transition, given: Sequence[Mapping[str, str | None]]
    ) -> dict[str, list[str | None]]:
        """What an edge takes of what its callers were given, in columns, cut as the spec says."""
        known = self.statements[statement]
        found: dict[str, list[str | None]] = {}
        for take in edge.takes.values():
            texts = [each.get(take.source) for each in given]
            name = f"given_{take.source}"
            if known.takes[name] == "text[]":
                texts = [storable(text, known.cuts.get(name)) for text in texts]
            found[name] = texts
        return found

    def refusal(self, error: asyncpg.PostgresError) -> Exception:
        """What the database refused, as the caller is told it."""
        if error.sqlstate in _OF_GUARDS:
            return GuardBreach(f"the database refused a change of a {self.lifecycle.entity}: {error}")
        if (error.sqlstate or "")[:2] in _OF_VALUES:
            return refused(getattr(error, "column_name", None) or self.lifecycle.entity)
        return error

    def denied(self, call: Call, problem: str) -> Condition:
        """What an actor is told that the lifecycle does not let."""
        make: Callable[..., Condition] = self.roles["permission_denied"]
        return make(caller=call.caller, method=call.method, problem=problem)

    def applied(self, call: Call, edge: Transition, key: str, /, **known: object) -> None:
        """Counts and tells a transition that the database has made."""
        self.metrics.count_transition(self.lifecycle.entity, edge.name, call.caller)
        self.tell(call, edge.name, key, edge.source, edge.target, **known)

    def applied_all(self, call: Call, edge: Transition, known: Sequence[Mapping[str, object]]) -> None:
        """The same for many at once; with what is known of each, its key among it."""
        lifecycle = self.lifecycle
        self.metrics.count_transition(lifecycle.entity, edge.name, call.caller, len(known))
        shared = {
            "entity": lifecycle.entity,
            "transition": edge.name,
            "from_status": lifecycle.states[edge.source],
            "to_status": lifecycle.states[edge.target],
        }
        call.tell_all(events.TRANSITION, f"{lifecycle.entity} {edge.name}", shared, known)

    def tell(
        self, call: Call, name: str, key: str, source: int | None, target: int | None, /, **known: object
    ) -> None:
        """Writes a transition to the log. What an entity carries, or failed with, is not for the log."""
        if call.log.wants(events.TRANSITION):
            lifecycle = self.lifecycle
            told: dict[str, object] = {
                "entity": lifecycle.entity,
                "transition": name,
                lifecycle.key: key,
                "from_status": None if source is None else lifecycle.states[source],
                "to_status": None if target is None else lifecycle.states[target],
                **known,
            }
            call.tell(events.TRANSITION, f"{lifecycle.entity} {name}", **told)

    def _arguments(self, statement: Statement, given: Mapping[str, Any]) -> list[Any]:
        return statement.arguments(self.variables, given)
