"""An entity as SQLite sees it: columns, constraints, indexes, and what each edge writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from codegen.emit.artefact import quote_sql as quoted
from codegen.emit.sql.names import GIVEN, RECORD, aside
from codegen.emit.sql.stored_entity import Column, StoredEntity
from codegen.language.lifecycle import Due, GiveUp, Take, Transition
from codegen.language.types import MessageField

TYPES = {"string": "TEXT", "json": "TEXT", "bytes": "BLOB", "double": "REAL", "float": "REAL"}
"""What each type of a record's field is in SQLite; whatever is not here is INTEGER."""
EMPTY = {"TEXT": "''", "BLOB": "x''", "REAL": "0.0", "INTEGER": "0"}
"""What stands in a column that needs a value and was given none."""
MICROSECONDS, MILLISECONDS = 1_000_000, 1_000
"""How fine the times are: those of type timestamp, and those that are plain numbers."""


class SqliteEntity(StoredEntity):
    """One entity, its names and everything that templates have to know of it."""

    @property
    def table(self) -> str:
        return self.row.in_sqlite.table if self.row.in_sqlite else ""

    @property
    def history(self) -> str | None:
        return self.row.in_sqlite.history if self.row.in_sqlite else None

    @property
    def unique(self) -> tuple[str, ...]:
        """Fields that no two entities share."""
        return tuple(sorted(self.row.in_sqlite.unique)) if self.row.in_sqlite else ()

    @property
    def number(self) -> str:
        """The column of the table that numbers its rows."""
        return aside("number", *self.fields)

    @property
    def entities(self) -> str:
        """The column that counts the entities in each state."""
        return aside("entities", self.row.status)

    @property
    def order(self) -> str:
        """The column that orders listings first."""
        return self.listed_by or self.number

    def word(self, state: str) -> str:
        """A state as the file has it, quoted."""
        return quoted(self.spec.enums[self.fields[self.row.status].type].word(state))

    @cached_property
    def targets(self) -> dict[str, list[str]]:
        """Where edges lead, by the state that they leave."""
        found: dict[str, list[str]] = {}
        for edge in self.transitions.values():
            if edge.to not in found.setdefault(edge.from_, []):
                found[edge.from_].append(edge.to)
        return found

    @cached_property
    def columns(self) -> list[Column]:
        return [self._column(name, row) for name, row in self.fields.items()]

    @cached_property
    def given(self) -> list[str]:
        """The fields that whoever creates an entity says; the store writes the others."""
        # What grows has to begin somewhere.
        grown = {name for edge in self.transitions.values() for name in edge.grows}
        told = grown - self.row.create.copies.keys()
        return [name for name in self.fields if name not in self.guarded or name in told]

    @property
    def creation(self) -> list[tuple[str, str]]:
        """(column, expression) for all that a new entity is written with."""
        create = self.row.create
        return [
            *((self.column(name), f":{RECORD}{name}") for name in self.given),
            *((self.column(name), self.moment(name)) for name in create.stamps),
            *((self.column(name), f":{RECORD}{source}") for name, source in create.copies.items()),
        ]

    @cached_property
    def changeable(self) -> list[str]:
        """Fields that may be changed apart from a transition."""
        return [name for name in self.given if name not in (self.row.key, *self.unique, *self.guarded)]

    @cached_property
    def guarded(self) -> set[str]:
        """Fields that only creation and transitions write."""
        found = {self.row.status, *self.row.create.stamps, *self.row.create.copies, *self.counters}
        for edge in self.transitions.values():
            found |= {*edge.stamps, *edge.sets, *edge.takes, *edge.clears, *edge.copies, *edge.grows}
            if edge.waits:
                found.add(edge.waits.until)
        if lease := self.row.lease:
            found |= {each for each in (lease.owner, lease.expires, lease.renewed) if each}
        return found

    @cached_property
    def acquiring(self) -> tuple[str, Transition] | None:
        """The edge by which a lease is taken."""
        lease = self.row.lease
        found = [(name, edge) for name, edge in self.transitions.items() if lease and edge.to == lease.state]
        return found[0] if found else None

    @cached_property
    def filters(self) -> list[Column]:
        """Columns that a listing may ask to be equal to something."""
        ruled_out = {self.row.key, self.row.status}
        return [
            each for each in self.columns if each.type in ("TEXT", "INTEGER") and each.field not in ruled_out
        ]

    @cached_property
    def indexes(self) -> dict[str, tuple[str, str]]:
        """What each index is for and what it is over, by name."""
        found: dict[str, tuple[str, str]] = {}
        if self.lease and self.acquiring:
            free = self.word(self.acquiring[1].from_)
            over = f"({self.lease.oldest_by}, {self.number}) WHERE {self.status} = {free}"
            found[f"{self.table}_acquirable"] = ("The next one to be taken.", over)
        for name, edge in self.transitions.items():
            if edge.due and edge.due.at:
                over = f"({self.column(edge.due.at)}) WHERE {self.status} = {self.word(edge.from_)}"
                found[f"{self.table}_{name}"] = (f"Those that are due to {name}.", over)
        if self.listed_by:
            found[f"{self.table}_listed"] = ("The listing.", f"({self.listed_by}, {self.number})")
            over = f"({self.status}, {self.listed_by}, {self.number})"
            found[f"{self.table}_listed_by_state"] = ("The listing of some states.", over)
        return found

    @cached_property
    def checks(self) -> list[str]:
        """What must hold for every row."""
        found = [each.check for each in self.columns if each.check]
        if (lease := self.lease) is not None:
            found.append(f"{self.status} <> {self.word(lease.state)} OR {lease.owner} IS NOT NULL")
        return found

    @cached_property
    def stamped_always(self) -> str | None:
        """A time that every edge sets, which says since when an entity has been as it is."""
        every = [set(edge.stamps) for edge in self.transitions.values()]
        common = set.intersection(*every) if every else set()
        return next((name for name in self.fields if name in common), None)

    def limits(self, name: str) -> list[str]:
        """What tells an edge from the one that is taken in its place when an entity has failed too often."""
        found = []
        for other, edge in self.transitions.items():
            if not edge.gives_up or self.transitions[edge.gives_up.with_].from_ != edge.from_:
                continue
            over = self.is_over(edge.gives_up, counted=False)
            if other == name:
                found.append(f"NOT (:final OR {over})")
            elif edge.gives_up.with_ == name:
                found.append(f"(:final IS NULL OR :final OR {over})")
        return found

    def moment(self, field: str) -> str:
        """This moment in the unit of a record's time."""
        return ":now" if self.unit(field) == MICROSECONDS else ":now / 1000"

    def unit(self, field: str) -> int:
        """How many units of a record's time a second has."""
        return MICROSECONDS if self.fields[field].type == "timestamp" else MILLISECONDS

    def is_due(self, due: Due) -> str:
        """Whether the time of an edge has come; the exact moment is not late yet."""
        at = due.at or ""
        wait = f" - CAST({self.variable(due.after)} * {self.unit(at)} AS INTEGER)" if due.after else ""
        return f"{self.column(at)} < {self.moment(at)}{wait}"

    def is_over(self, end: GiveUp, *, counted: bool) -> str:
        """Whether an entity has failed too often; `counted` says that the last failure is in the count."""
        limit = self.variable(end.limit) if end.limit.isupper() else self.column(end.limit)
        count = self.column(end.count)
        counted_by = f"{count} - {self.column(end.less)}" if end.less else count
        return f"{counted_by} {'>' if counted else '>='} {limit}"

    def writes(self, edge: Transition) -> Iterator[tuple[str, str]]:
        """(column, expression) for all that an edge writes. A later one takes the place of an earlier."""
        found: dict[str, str] = {self.row.status: self.word(edge.to)}
        found.update(self._lease_writes(edge))
        if edge.counts:
            found[edge.counts] = f"{self.column(edge.counts)} + 1"
        for other in self.transitions.values():
            if other.waits and found.get(other.waits.until, "NULL") == "NULL":
                # An edge without a wait of its own into a state of waiting lets it end at once.
                until = other.waits.until
                found[until] = "NULL" if other.to != edge.to else self.moment(until)
        if edge.waits:
            found[edge.waits.until] = self._wait(edge)
        found.update((stamp, self.moment(stamp)) for stamp in edge.stamps)
        found.update((field, _literal(value)) for field, value in edge.sets.items())
        found.update((field, self.column(source)) for field, source in edge.copies.items())
        found.update((field, self._taken(field, take)) for field, take in edge.takes.items())
        for field, growth in edge.grows.items():
            grown = f"{self.column(field)} * {growth.times}"
            rounded = f"CAST({grown} AS INTEGER) + ({grown} > CAST({grown} AS INTEGER))"
            found[field] = f"min({self.variable(growth.most)}, {rounded})"
        found.update((field, "NULL") for field in edge.clears)
        yield from ((self.column(field), value) for field, value in found.items())

    def renewal(self) -> tuple[str, str]:
        """The column that a holder moves on, and what it becomes."""
        lease = self.row.lease
        if lease is None:
            raise ValueError(f"{self.name} has no lease")
        if lease.renewed:
            return self.column(lease.renewed), self.moment(lease.renewed)
        return self.column(lease.expires), self._lease_end()

    def _lease_end(self) -> str:
        lease = self.row.lease
        expires, seconds = (lease.expires, lease.seconds) if lease else ("", "")
        length = self.variable(seconds) if seconds.isupper() else self.column(seconds)
        return f"{self.moment(expires)} + CAST({length} * {self.unit(expires)} AS INTEGER)"

    def _lease_writes(self, edge: Transition) -> Iterator[tuple[str, str]]:
        lease = self.row.lease
        if lease and edge.to == lease.state:
            yield lease.owner, ":owner"
            yield lease.fence, f"{self.column(lease.fence)} + 1"
            if lease.expires:
                yield lease.expires, self._lease_end()
            if lease.renewed:
                yield lease.renewed, self.moment(lease.renewed)
        elif lease and edge.from_ == lease.state:
            if lease.expires:
                yield lease.expires, "NULL"
            if not (lease.keeps_owner and edge.to in self.row.terminal):
                yield lease.owner, "NULL"

    def _wait(self, edge: Transition) -> str:
        waits = edge.waits
        if waits is None:
            return "NULL"
        count = self.column(waits.count)
        failures = count if edge.counts == waits.count else f"max({count} - 1, 0)"
        most, base = self.variable(waits.max), self.variable(waits.base)
        # Beyond 2^40 every wait is the longest one, and a greater power might not fit.
        seconds = f"min({most}, {base} * (1 << min({failures}, 40)))"
        unit = self.unit(waits.until)
        return f"{self.moment(waits.until)} + CAST({seconds} * {unit} AS INTEGER)"

    def variable(self, name: str) -> str:
        """The value of a variable, or what stands in for it in some entities."""
        overrides = self.row.overrides
        special = (
            {text: row[name] for text, row in overrides.for_.items() if name in row} if overrides else {}
        )
        if not special or overrides is None:
            return f":{name}"
        cases = " ".join(f"WHEN {quoted(text)} THEN {value}" for text, value in special.items())
        return f"CASE {self.column(overrides.by)} {cases} ELSE :{name} END"

    def _taken(self, field: str, take: Take) -> str:
        given = f":{GIVEN}{take.from_}"
        if take.default:
            given = f"coalesce(nullif({given}, ''), {quoted(take.default)})"
        if not self.fields[field].optional:
            given = f"coalesce({given}, {EMPTY[self.type_of(field)]})"
        return f"coalesce({self.column(field)}, {given})" if take.keep_first else given

    def type_of(self, field: str) -> str:
        """What a field of the record is in SQLite."""
        row = self.fields[field]
        return "TEXT" if field == self.row.status else TYPES.get(row.type, "INTEGER")

    def _column(self, name: str, row: MessageField) -> Column:
        column, default = self.column(name), None
        check = f"{column} >= 0" if row.type.startswith("uint") else None
        if name == self.row.status:
            default, check = (
                self.word(self.row.initial),
                f"{column} IN ({', '.join(map(self.word, self.states))})",
            )
        elif not row.optional and name in self.guarded:
            default = EMPTY[self.type_of(name)]
        return Column(column, name, self.type_of(name), row.optional, default, check)


def _literal(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return str(value) if isinstance(value, int) else quoted(value)
