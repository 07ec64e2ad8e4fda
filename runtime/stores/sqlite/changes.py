"""What is done to entities inside a transaction. All of it runs in the writing thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

from runtime.model.lifecycles import Due, Transition
from runtime.stores.sqlite.rows import stored
from runtime.stores.sqlite.steps import Steps, claimed, texts
from runtime.stores.store import GuardBreach, Held, Moved, Record

Swept = list[tuple[Transition, str]]
"""Edges that were taken because they were due, and the key of each entity."""
Read = Callable[..., list[Any]]
"""Runs a statement by its name outside of any transaction."""


class Refused(Exception):
    """A step that does not apply, in the middle of several that are to be made together."""

    def __init__(self, moved: Moved) -> None:
        super().__init__(moved)
        self.moved = moved


class Changes(Steps[Record]):
    """The changes of one kind of entity, each a guarded statement or two."""

    def create(
        self, connection: sqlite3.Connection, given: Mapping[str, Any], now: int, actor: str
    ) -> tuple[Record, bool]:
        row = self._one(connection, "create", now, **given)
        if row is not None:
            self._remember(connection, row, None, actor, now)
            return self.rows.read(row), True
        row = self._one(connection, "find_unique", now, **given) if "find_unique" in self.statements else None
        if row is None:
            key = given[f"record_{self._lifecycle.key}"]
            raise GuardBreach(f"{self._lifecycle.entity} {key} exists already")
        return self.rows.read(row), False

    def move(
        self,
        connection: sqlite3.Connection,
        edge: Transition,
        key: str,
        actor: str,
        held: Held | None,
        given: Mapping[str, str | None],
    ) -> Moved:
        """Takes an edge by name, whatever a limit says; what of the lease is given must be so."""
        row = self._take(connection, edge, key, actor, held, given, final=None)
        if row is not None:
            return Moved(True, edge.target)
        return Moved(False, self._why(connection, edge, key, held))

    def try_move(self, connection: sqlite3.Connection, edge: Transition, key: str, actor: str) -> bool:
        """Whether an edge was taken by an entity, if there is one."""
        return self._take(connection, edge, key, actor, None, {}, final=None) is not None

    def delete(self, connection: sqlite3.Connection, key: str, expected: int) -> Moved:
        if expected in self._lifecycle.deletable:
            given = {"key": key, "expected": self.rows.word[expected]}
            if connection.execute(self.statements["delete"], given).fetchone():
                return Moved(True, expected)
        return Moved(False, self.state(connection, key))

    def purge(self, connection: sqlite3.Connection, older_than_s: float, most: int) -> list[str]:
        given = {"now": self.now(), "older_than_s": older_than_s, "most": most}
        return [row[0] for row in connection.execute(self.statements["purge"], given).fetchall()]

    def settle(
        self,
        connection: sqlite3.Connection,
        edge: Transition,
        key: str,
        actor: str,
        held: Held | None,
        given: Mapping[str, str | None],
        *,
        final: bool = False,
    ) -> list[Transition]:
        """Takes an edge, or the one that ends an entity which has failed too often; those that were taken."""
        end = self._lifecycle.transition(edge.gives_up.transition) if edge.gives_up else None
        if final and end is None:
            raise GuardBreach(f"{edge.name} is never the last try of a {self._lifecycle.entity}")
        row = self._take(connection, edge, key, actor, held, given, final=final)
        if row is None:
            if end is not None and end.source == edge.source:
                row = self._take(connection, end, key, actor, held, given, final=final)
                if row is not None:
                    return [end]
            self._why(connection, edge, key, held)
            return []
        if end is not None and end.source == edge.target:
            now = self.now()
            ended = self._one(
                connection, f"give_up_{edge.name}", now, key=key, final=final, **texts(end, given)
            )
            if ended is not None:
                self._remember(connection, ended, end, actor, now)
                return [edge, end]
        return [edge]

    def acquire(self, connection: sqlite3.Connection, owner: str, actor: str) -> Record | None:
        now = self.now()
        row = self._one(connection, "acquire", now, owner=stored(owner))
        if row is None:
            return None
        self._remember(connection, row, self.entering, actor, now)
        return self.rows.read(row)

    def renew(self, connection: sqlite3.Connection, key: str, held: Held | None) -> Record | None:
        row = self._one(connection, "renew", self.now(), key=key, **claimed(held))
        if row is not None:
            return self.rows.read(row)
        self._check_holder(connection, key, held)
        return None

    # What is due.

    def overdue(self, read: Read, key: str) -> bool:
        """Whether something is due for an entity whenever it is touched, as far as a reader sees."""
        due = self._in_force(self._on_access)
        return any(read(f"is_due_{edge.name}", key=key, now=self.now()) for edge in due)

    def is_any_due(self, read: Read, edge: Transition) -> bool:
        """Whether an edge is due for any entity, as far as a reader sees."""
        return bool(self._in_force([edge]) and read(f"due_{edge.name}", now=self.now(), most=1))

    def sweep(self, connection: sqlite3.Connection, edge: Transition, most: int) -> Swept:
        """Takes an edge for some of the entities for which it is due."""
        given = {**self.values, "now": self.now(), "most": most}
        keys = [row[0] for row in connection.execute(self.statements[f"due_{edge.name}"], given).fetchall()]
        return [taken for key in keys for taken in self._drive(connection, edge, key)]

    def sweep_on_access(self, connection: sqlite3.Connection, most: int = 100) -> Swept:
        """The same for all edges that whoever looks takes first."""
        due = self._in_force(self._on_access)
        return [taken for edge in due for taken in self.sweep(connection, edge, most)]

    def sweep_one(self, connection: sqlite3.Connection, key: str) -> Swept:
        """The same for one entity."""
        given = {**self.values, "key": key, "now": self.now()}
        due = [
            edge
            for edge in self._in_force(self._on_access)
            if connection.execute(self.statements[f"is_due_{edge.name}"], given).fetchone()
        ]
        return [taken for edge in due for taken in self._drive(connection, edge, key)]

    def _drive(self, connection: sqlite3.Connection, edge: Transition, key: str) -> Swept:
        due: Due | None = edge.due
        if due is None:
            return []
        taken = self.settle(connection, edge, key, due.by, None, due.gives)
        return [(each, key) for each in taken]

    def _in_force(self, edges: list[Transition]) -> list[Transition]:
        """Those whose grace after the start is over."""
        since = (self.now() - self._opened) / 1e6
        return [
            edge
            for edge in edges
            if edge.due and (edge.due.grace is None or since >= self.values[edge.due.grace])
        ]
