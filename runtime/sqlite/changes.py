"""What is done to entities inside a transaction. All of it runs in the writing thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from typing import Any, Generic

from runtime.sqlite.rows import Rows, stored
from runtime.sqlite.statements import statements
from runtime.store import GuardBreach, Held, Moved, NoSuchEntity, Record
from runtime.tables import Due, Lease, Lifecycle, Transition
from runtime.world import World

_ANYBODY = Held("", 0)
Swept = list[tuple[Transition, str]]
"""Edges that were taken because they were due, and the key of each entity."""
Read = Callable[..., list[Any]]
"""Runs a statement by its name outside of any transaction."""


class Refused(Exception):
    """A step that does not apply, in the middle of several that are to be made together."""

    def __init__(self, moved: Moved) -> None:
        super().__init__(moved)
        self.moved = moved


class WrongHolder(Exception):
    """What somebody claims of a lease is not so: it is another's, or from an earlier time."""

    def __init__(self, key: str, holder: str, *, stale: bool) -> None:
        super().__init__(key)
        self.key = key
        self.holder = holder
        self.stale = stale


class Changes(Generic[Record]):
    """The changes of one kind of entity, each a guarded statement or two."""

    def __init__(
        self, system: str, lifecycle: Lifecycle, record: type[Record], values: Mapping[str, Any], world: World
    ) -> None:
        self.statements = statements(system, lifecycle.entity)
        self.rows = Rows(lifecycle, record)
        self.values = {name: value for name, value in values.items() if isinstance(value, (int, float))}
        self._lifecycle = lifecycle
        self._world = world
        lease = lifecycle.lease
        edges = [*lifecycle.edges.values()]
        self._entering = [edge for edge in edges if lease and edge.target == lease.state]
        self._on_access = [edge for edge in edges if edge.due and edge.due.on_access]
        self._key = self.rows.names.index(lifecycle.key)
        self._fence = self.rows.names.index(lease.fence) if lease else None
        self._opened = 0

    def open(self) -> None:
        """Begins the time in which nothing is due yet."""
        self._opened = self.now()

    def now(self) -> int:
        """This moment, in microseconds since the epoch."""
        return self._world.now_ms() * 1000

    @property
    def lease(self) -> Lease:
        """The lease of the entity; asking for one that it does not have is a fault in the handler."""
        if self._lifecycle.lease is None:
            raise GuardBreach(f"a {self._lifecycle.entity} has no lease")
        return self._lifecycle.lease

    @property
    def entering(self) -> Transition:
        """The edge by which the lease is taken."""
        return next(edge for edge in self._entering if edge.target == self.lease.state)

    def is_acquirable(self, state: int) -> bool:
        """Whether entities in a state are there to be taken."""
        return any(edge.source == state for edge in self._entering)

    def driver(self, edge: Transition) -> str:
        """Who takes an edge by the clock, or the one that ends what was tried too often."""
        for each in self._lifecycle.edges.values():
            if each.due and (each is edge or (each.gives_up and each.gives_up.transition == edge.name)):
                return each.due.by
        return ""

    def lease_of(self, record: Record) -> dict[str, object]:
        """A lease for the log, by the names that the record has for it."""
        return {name: getattr(record, name) for name in (self.lease.owner, self.lease.fence)}

    def age_s(self, since: int | None) -> float:
        """Seconds since a time of the listing."""
        listed = self._lifecycle.listed_by
        if since is None or listed is None:
            return 0.0
        now = self.now()
        return max(0.0, (now - since) / 1e6 if self.rows.is_instant(listed) else (now / 1e3 - since) / 1e3)

    def create(
        self, connection: sqlite3.Connection, given: Mapping[str, Any], now: int, actor: str
    ) -> tuple[Record, bool]:
        row = self._one(connection, "create", now, **given)
        if row is not None:
            self._remember(connection, row, None, self._lifecycle.initial, actor, now)
            return self.rows.read(row), True
        row = self._one(connection, "find_unique", now, **given) if "find_unique" in self.statements else None
        if row is None:
            raise GuardBreach(f"{self._lifecycle.entity} {given[self._lifecycle.key]} exists already")
        return self.rows.read(row), False

    def get(self, connection: sqlite3.Connection, key: str) -> Record | None:
        row = connection.execute(self.statements["get"], {"key": key}).fetchone()
        return None if row is None else self.rows.read(row)

    def state(self, connection: sqlite3.Connection, key: str) -> int:
        record = self.get(connection, key)
        if record is None:
            raise NoSuchEntity(key)
        state: int = getattr(record, self._lifecycle.status)
        return state

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
                connection, f"give_up_{edge.name}", now, key=key, final=final, **_texts(end, given)
            )
            if ended is not None:
                self._remember(connection, ended, end.source, end.target, actor, now)
                return [edge, end]
        return [edge]

    def acquire(self, connection: sqlite3.Connection, owner: str, actor: str) -> Record | None:
        now = self.now()
        row = self._one(connection, "acquire", now, owner=stored(owner))
        if row is None:
            return None
        self._remember(connection, row, self.entering.source, self.entering.target, actor, now)
        return self.rows.read(row)

    def renew(self, connection: sqlite3.Connection, key: str, held: Held | None) -> Record | None:
        row = self._one(connection, "renew", self.now(), key=key, **_claimed(held))
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

    # Statements.

    def _take(
        self,
        connection: sqlite3.Connection,
        edge: Transition,
        key: str,
        actor: str,
        held: Held | None,
        given: Mapping[str, str | None],
        *,
        final: bool | None,
    ) -> Any:
        now = self.now()
        row = self._one(
            connection,
            f"move_{edge.name}",
            now,
            key=key,
            final=final,
            **self._claimed(edge, held, given),
            **_texts(edge, given),
        )
        if row is not None:
            self._remember(connection, row, edge.source, edge.target, actor, now)
        return row

    def _why(self, connection: sqlite3.Connection, edge: Transition, key: str, held: Held | None) -> int:
        """The state in which an entity is that could not be moved; raises where the lease is the reason."""
        state = self.state(connection, key)
        if state == edge.source:
            self._check_holder(connection, key, held)
        return state

    def _check_holder(self, connection: sqlite3.Connection, key: str, held: Held | None) -> None:
        record: Any = self.get(connection, key)
        if record is None:
            raise NoSuchEntity(key)
        if held is None or getattr(record, self._lifecycle.status) != self.lease.state:
            return
        if held.owner and getattr(record, self.lease.owner) != held.owner:
            raise WrongHolder(key, held.owner, stale=False)
        if held.fence and getattr(record, self.lease.fence) != held.fence:
            raise WrongHolder(key, held.owner, stale=True)

    def _claimed(
        self, edge: Transition, held: Held | None, given: Mapping[str, str | None]
    ) -> dict[str, Any]:
        """Who is to have the lease where an edge takes it; else what is claimed of it."""
        if edge in self._entering:
            return {"owner": stored(given.get("owner")), "fence": None}
        return _claimed(held)

    def _one(self, connection: sqlite3.Connection, name: str, now: int, **given: Any) -> Any:
        return connection.execute(self.statements[name], {**self.values, "now": now, **given}).fetchone()

    def _remember(
        self,
        connection: sqlite3.Connection,
        row: Any,
        source: int | None,
        target: int,
        actor: str,
        now: int,
    ) -> None:
        if "remember" in self.statements:
            states = self._lifecycle.states
            connection.execute(
                self.statements["remember"],
                {
                    "key": row[self._key],
                    "source": None if source is None else states[source],
                    "target": states[target],
                    "actor": actor,
                    "fence": 0 if self._fence is None else row[self._fence],
                    "now": now,
                },
            )


def _claimed(held: Held | None) -> dict[str, Any]:
    """What is claimed of a lease; what is not given is not compared."""
    given = held or _ANYBODY
    return {"owner": given.owner or None, "fence": given.fence or None}


def _texts(edge: Transition, given: Mapping[str, str | None]) -> dict[str, Any]:
    return {take.source: stored(given.get(take.source)) for take in edge.takes.values()}
