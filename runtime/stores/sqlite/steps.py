"""Single statements about entities, inside a transaction. All of it runs in the writing thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Generic

from runtime.model.lifecycles import Lease, Lifecycle, Transition
from runtime.stores.sqlite.rows import Rows, stored
from runtime.stores.sqlite.statements import statements
from runtime.stores.store import GuardBreach, Held, NoSuchEntity, Record
from runtime.world import World

_ANYBODY = Held("", 0)


class WrongHolder(Exception):
    """What somebody claims of a lease is not so: it is another's, or from an earlier time."""

    def __init__(self, key: str, holder: str, *, stale: bool) -> None:
        super().__init__(key)
        self.key = key
        self.holder = holder
        self.stale = stale


class Steps(Generic[Record]):
    """The steps of which the changes of one kind of entity consist."""

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
        self._key = lifecycle.key
        self._fence = lease.fence if lease else None
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

    def get(self, connection: sqlite3.Connection, key: str) -> Record | None:
        row = connection.execute(self.statements["get"], {"key": key}).fetchone()
        return None if row is None else self.rows.read(row)

    def state(self, connection: sqlite3.Connection, key: str) -> int:
        record = self.get(connection, key)
        if record is None:
            raise NoSuchEntity(key)
        state: int = getattr(record, self._lifecycle.status)
        return state

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
            **texts(edge, given),
        )
        if row is not None:
            self._remember(connection, row, edge, actor, now)
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
        return claimed(held)

    def _one(self, connection: sqlite3.Connection, name: str, now: int, **given: Any) -> Any:
        return connection.execute(self.statements[name], {**self.values, "now": now, **given}).fetchone()

    def _remember(
        self,
        connection: sqlite3.Connection,
        row: Any,
        edge: Transition | None,
        actor: str,
        now: int,
    ) -> None:
        """Adds to the history an edge that was taken, or the creation where there is none."""
        if "remember" in self.statements:
            states = self._lifecycle.states
            connection.execute(
                self.statements["remember"],
                {
                    "key": row[self._key],
                    "source": None if edge is None else states[edge.source],
                    "target": states[self._lifecycle.initial if edge is None else edge.target],
                    "edge": None if edge is None else edge.name,
                    "actor": actor,
                    "fence": 0 if self._fence is None else row[self._fence],
                    "now": now,
                },
            )


def claimed(held: Held | None) -> dict[str, Any]:
    """What is claimed of a lease; what is not given is not compared."""
    given = held or _ANYBODY
    return {"owner": given.owner or None, "fence": given.fence or None}


def texts(edge: Transition, given: Mapping[str, str | None]) -> dict[str, Any]:
    """What an edge takes of what is given."""
    return {f"given_{take.source}": stored(given.get(take.source)) for take in edge.takes.values()}
