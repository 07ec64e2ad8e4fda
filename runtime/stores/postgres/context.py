"""Shared context of the store's parts: the statements of an entity, settings, codec, and errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeAlias, TypeVar

import asyncpg

from runtime.call.context import Call
from runtime.model.lifecycles import Lifecycle, Transition
from runtime.model.system import System
from runtime.observe import log as events
from runtime.observe.metrics import Metrics
from runtime.stores.base import StoreBase
from runtime.stores.contract import Record
from runtime.stores.layouts.postgres import KeptInPostgres
from runtime.stores.postgres.codec import PostgresCodec, make_unstorable
from runtime.stores.postgres.database import LONG_S, STATEMENT_S, Database, PostgresUnavailable, run
from runtime.stores.postgres.measures import PostgresMeasures
from runtime.stores.postgres.retention import Retention
from runtime.stores.postgres.schema.series import name_series
from runtime.stores.postgres.statements import Statement, load_statements
from runtime.stores.semantics.rules import to_moment
from runtime.stores.store import GuardBreach, NoSuchEntity
from runtime.world import World

Result = TypeVar("Result")
Connection: TypeAlias = "asyncpg.Connection[Any]"

_OF_GUARDS = ("CH001", "CH002", "CH003", "42501")
"""SQLSTATEs of the triggers of the schema, and of missing privileges."""
_OF_VALUES = ("22", "23", "54")
"""Classes of SQLSTATE of values that cannot be stored: malformed, a violation, or too large."""
_LONG = ("census", "count_since", "purge", "backlog")
"""Statements with the long timeout."""
_DEFAULTS: Mapping[str, Any] = {"absent": ()}
"""Defaults of the arguments of statements; None for all others."""


class PostgresContext(StoreBase[Record]):
    """The table of one kind of entity."""

    def __init__(
        self,
        system: System,
        lifecycle: Lifecycle,
        record: type[Record],
        database: Database,
        world: World,
        metrics: Metrics,
        values: Mapping[str, Any],
        *,
        max_terminal: int = 0,
        texts: Mapping[str, Statement] | None = None,
    ) -> None:
        super().__init__(system, lifecycle, record, world, metrics, values)
        self._kept = lifecycle.require_storage(KeptInPostgres)
        self._series = name_series(system.name, self._kept)
        self._database = database
        self._statements = load_statements(self._series, lifecycle.entity) if texts is None else texts
        self._codec = PostgresCodec(self._rules, record, self._statements["columns"])
        self._measures = PostgresMeasures(metrics, lifecycle.entity)
        self._opened = world.now_ms() * 1000
        self._retention = Retention(self._rules.retained_s, max_terminal)
        self._is_timeless = not self._retention.is_bounded and not self._rules.on_access
        """Whether no transition or removal is due on access."""

    # Statements.

    async def _run(self, name: str, **arguments: Any) -> Sequence[Any]:
        """Run a statement in a transaction of its own."""
        statement = self._statements[name]
        try:
            timeout = LONG_S if name in _LONG else STATEMENT_S
            return await self._database.fetch(
                statement.text, *self._positional(statement, arguments), timeout=timeout
            )
        except asyncpg.PostgresError as error:
            raise self._refusal(error) from None

    async def _run_in(self, connection: Connection, name: str, **arguments: Any) -> Sequence[Any]:
        """Run a statement in a transaction of several."""
        statement = self._statements[name]
        try:
            return await run(connection, statement.text, *self._positional(statement, arguments))
        except asyncpg.PostgresError as error:
            raise self._refusal(error) from None

    def _positional(self, statement: Statement, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the positional arguments of a statement, with defaults for missing ones."""
        values = self._rules.values
        return [
            values[name] if name.isupper() else arguments.get(name, _DEFAULTS.get(name))
            for name in statement.takes
        ]

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        """Open a transaction; an outage becomes the condition `store_unavailable`."""
        try:
            async with self._database.transaction() as connection:
                yield connection
        except PostgresUnavailable:
            raise self._unavailable() from None

    async def _answer(self, work: Awaitable[Result]) -> Result:
        """Await the result of some work; an outage becomes the condition `store_unavailable`."""
        try:
            return await work
        except PostgresUnavailable:
            raise self._unavailable() from None

    # Errors.

    def _unavailable(self) -> Exception:
        return self._condition("store_unavailable")

    def _refusal(self, error: asyncpg.PostgresError) -> Exception:
        """Convert an error of the server to the exception of the caller."""
        if error.sqlstate in _OF_GUARDS:
            return GuardBreach(f"the database refused a change of a {self._entity}: {error}")
        if getattr(error, "constraint_name", None) == f"{self._kept.table}_pkey":
            return GuardBreach(f"this {self._entity} exists already: {getattr(error, 'detail', '')}")
        if (error.sqlstate or "")[:2] in _OF_VALUES:
            return make_unstorable(getattr(error, "column_name", None) or self._entity)
        return error

    def _require_key(self, key: str) -> str:
        """Normalize a key; raises NoSuchEntity for an invalid one."""
        if not self._codec.is_key(key):
            raise NoSuchEntity(key)
        return self._codec.as_key(key)

    # Audit.

    def _audit_leases(self, edge: Transition, held: Sequence[tuple[str, str, int]], call: Call) -> None:
        """Count and log transitions of many entities, each with its lease by the field names of the record.

        The key correlates the lines of an entity, since they belong to different calls.
        """
        lifecycle, lease = self._lifecycle, self._rules.lease
        assert lease is not None
        self._metrics.count_transition(self._entity, edge.name, call.caller, len(held))
        if not lifecycle.logged:
            return
        shared = {
            "entity": self._entity,
            "transition": edge.name,
            "from_status": lifecycle.states[edge.source],
            "to_status": lifecycle.states[edge.target],
        }
        lines = [
            {"request_id": key, lifecycle.key: key, lease.owner: owner, lease.fence: fence}
            for key, owner, fence in held
        ]
        call.tell_all(events.TRANSITION, f"{self._entity} {edge.name}", shared, lines)


def moment_of(row: Any) -> int:
    """Return the time at which a row was read, by the clock of the server, in microseconds."""
    at: datetime = row["_now"]
    return to_moment(at) or 0
