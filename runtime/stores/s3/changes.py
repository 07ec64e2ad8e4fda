"""What a change makes of a record. Nothing here is read or written: that is the affair of whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Generic

from msgspec.structs import replace

from runtime.model.kept_in_s3 import KeptInS3
from runtime.model.lifecycles import Due, Lease, Lifecycle, Shift, Take, Transition
from runtime.stores.s3.facts import always_stamped, defaults, entering, fits
from runtime.stores.s3.keys import Keys, derived_uuid
from runtime.stores.store import Held, Record
from runtime.world import World

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = datetime(1, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST_WAIT_S = 10 * 365 * 86400.0


class Changes(Generic[Record]):
    """The edges, shifts and leases of one kind of entity, applied to records."""

    def __init__(
        self, lifecycle: Lifecycle, kept: KeptInS3, keys: Keys, values: Mapping[str, Any], world: World
    ) -> None:
        self._lifecycle = lifecycle
        self._kept = kept
        self._keys = keys
        self._values = values
        self._world = world
        self._types = kept.shape.types
        self._unset = defaults(lifecycle, kept)
        self._always = always_stamped(lifecycle)
        self.entering = entering(lifecycle)

    @property
    def lease(self) -> Lease:
        assert self._lifecycle.lease is not None, f"{self._lifecycle.entity} has no lease"
        return self._lifecycle.lease

    def now(self) -> datetime:
        """The time by the clock of this process."""
        return _EPOCH + timedelta(milliseconds=self._world.now_ms())

    def state(self, record: Record) -> int:
        return getattr(record, self._lifecycle.status)  # type: ignore[no-any-return]

    def key(self, record: Record) -> str:
        return getattr(record, self._lifecycle.key)  # type: ignore[no-any-return]

    def written_at(self, record: Record) -> datetime:
        """When a record was last written, as far as it says so."""
        stamps = self._always or self._lifecycle.creation_stamps
        return max((getattr(record, name) or _NEVER for name in stamps), default=_NEVER)

    # Changes of every kind.

    def created(self, record: Record) -> Record:
        """A new entity in its initial state, with its key and everything that the store alone writes."""
        lifecycle, kept, now = self._lifecycle, self._kept, self.now()
        made: dict[str, Any] = {lifecycle.status: lifecycle.initial, kept.revision: 1}
        named = getattr(record, kept.keyed_by) if kept.keyed_by else None
        key = derived_uuid(named) if named else self.key(record) or self._world.new_id()
        made[lifecycle.key] = key
        if kept.shard:
            made[kept.shard.field] = self._keys.shard_of(key)
        if kept.schema:
            made[kept.schema.field] = kept.schema.value
        for name in lifecycle.creation_stamps:
            made[name] = now
        for name, other in lifecycle.copies.items():
            if getattr(record, name) in (None, self._unset[name]):
                made[name] = made.get(other, getattr(record, other))
        if lifecycle.lease is not None:
            waits = lifecycle.lease.oldest_by
            given = getattr(record, waits)
            made[waits] = max(now, given or now)
        return _changed(record, made)

    def moved(
        self,
        record: Record,
        edge: Transition,
        given: Mapping[str, Any],
        *,
        owner: str | None = None,
        final: bool = False,
    ) -> tuple[Record, Transition]:
        """A record after an edge; and the edge, which is another one where it has failed too often."""
        before = record
        if edge.gives_up is not None and (final or self._is_exhausted(record, edge)):
            edge = self._lifecycle.transition(edge.gives_up.transition)
        now = self._now_after(before)
        made: dict[str, Any] = {self._lifecycle.status: edge.target}
        made.update(dict.fromkeys(edge.stamps, now))
        made.update(dict.fromkeys(self._always, now))
        made.update(edge.sets)
        for name, other in edge.copies.items():
            made[name] = getattr(before, other)
        for name in edge.clears:
            made[name] = self._unset[name]
        self._take(before, edge.takes, given, made)
        if edge.counts is not None:
            made[edge.counts] = getattr(before, edge.counts) + 1
        if edge.waits is not None:
            made[edge.waits.until] = now + timedelta(seconds=self._wait_s(before, edge))
        self._lease_out(before, edge, owner, now, made)
        return self._revised(before, made), edge

    def shifted(self, record: Record, shift: Shift, given: Mapping[str, Any]) -> Record:
        """A record after a change that leaves its state."""
        now = self._now_after(record)
        made: dict[str, Any] = dict.fromkeys((*shift.stamps, *self._always), now)
        made.update(shift.sets)
        for name in shift.clears:
            made[name] = self._unset[name]
        self._take(record, shift.takes, given, made)
        return self._revised(record, made)

    def renewed(self, record: Record) -> Record:
        """A record whose lease begins anew."""
        now = self._now_after(record)
        made: dict[str, Any] = dict.fromkeys(self._always, now)
        made[self.lease.expires] = now + timedelta(seconds=self._lease_s(record))
        return self._revised(record, made)

    # What a record allows.

    def is_free(self, record: Record, now: datetime) -> bool:
        """Whether a lease of it can be taken."""
        edge = self.entering
        # The clock counts milliseconds, and it is always a part of one later than it says.
        is_time = self.free_at(record) < now + timedelta(milliseconds=1)
        return self.state(record) == edge.source and is_time and fits(record, edge)

    def free_at(self, record: Record) -> datetime:
        """From when on a lease of it can be taken."""
        return getattr(record, self.lease.oldest_by) or _NEVER

    def abandoned_at(self, record: Record) -> datetime | None:
        """From when on its lease is over by every clock; None where it is not leased."""
        ends: datetime | None = getattr(record, self.lease.expires)
        is_leased = self.state(record) == self.lease.state and ends is not None
        return ends + timedelta(seconds=self.skew_s) if is_leased and ends else None

    def holds(self, record: Record, held: Held, token: str | None = None) -> bool:
        """Whether a lease of it is this one."""
        lease = self.lease
        return (
            self.state(record) == lease.state
            and getattr(record, lease.owner) == held.owner
            and getattr(record, lease.fence) == held.fence
            and (token is None or lease.token is None or getattr(record, lease.token) == token)
        )

    def token(self, record: Record) -> str | None:
        """What tells this lease from all others."""
        return getattr(record, self.lease.token) if self.lease.token else None

    def due_at(self, record: Record, due: Due) -> datetime | None:
        """When a change is due that the clock drives; None where it is not going to be."""
        assert due.at is not None
        at: datetime | None = getattr(record, due.at)
        return None if at is None else at + timedelta(seconds=self.allowance_s(due))

    def allowance_s(self, due: Due) -> float:
        """How long after its time a change is due, with what the clocks of others may differ by."""
        return (float(self._values[due.after]) if due.after else 0.0) + self.skew_s

    @property
    def skew_s(self) -> float:
        """How far clocks may be apart."""
        return float(self._values[self._kept.skew]) / 1000 if self._kept.skew else 0.0

    def gives(self, record: Record, due: Due) -> dict[str, str]:
        """What a change that the clock drives takes along; texts may name fields of the record."""
        named = _Named(record)
        return {name: text.format_map(named) for name, text in due.gives.items()}

    # Parts.

    def _now_after(self, record: Record) -> datetime:
        """Now, but after the last write: a clock that steps back must not make time go backwards here."""
        written = [getattr(record, name) for name in self._always]
        earlier: list[datetime] = [value + _MICROSECOND for value in written if value]
        return max([self.now(), *earlier])

    def _revised(self, record: Record, made: dict[str, Any]) -> Record:
        made[self._kept.revision] = getattr(record, self._kept.revision) + 1
        return _changed(record, made)

    def _take(
        self, record: Record, takes: Mapping[str, Take], given: Mapping[str, Any], made: dict[str, Any]
    ) -> None:
        refs = self._kept.large.refs if self._kept.large else {}
        for name, take in takes.items():
            if take.keep_first and getattr(record, name) not in (None, self._unset[name]):
                continue
            value = given.get(take.source)
            made[name] = self._typed(name, take.default or self._unset[name] if value is None else value)
            if name in refs:
                made[refs[name]] = None

    def _typed(self, name: str, value: Any) -> Any:
        """A text as the field has it, where the field is no text."""
        if type(value) is not str or (kind := self._types[name]) in ("string", "json"):
            return value
        if kind == "bool":
            return value == "true"
        return float(value) if kind in ("double", "float") else int(value)

    def _is_exhausted(self, record: Record, edge: Transition) -> bool:
        assert edge.gives_up is not None
        end = edge.gives_up
        failures: int = getattr(record, end.count) - (getattr(record, end.less) if end.less else 0)
        return failures >= self._number(record, end.limit)

    def _wait_s(self, record: Record, edge: Transition) -> float:
        """How long it waits after this failure: more each time, within bounds, and not with all others."""
        waits = edge.waits
        assert waits is not None
        base, most = self._seconds(record, waits.base), self._seconds(record, waits.most)
        times = self._number(record, waits.times) if waits.times else 2.0
        try:
            wait = base * times ** int(getattr(record, waits.count))
        except OverflowError:
            wait = most
        wait = min(wait, most)
        if waits.jitter and (jitter := self._number(record, waits.jitter)):
            wait = min(wait * self._world.uniform(1 - jitter, 1 + jitter), most)
        return min(max(0.0, wait), _LONGEST_WAIT_S)

    def _seconds(self, record: Record, path: str) -> float:
        number = self._number(record, path)
        return number / 1000 if path.islower() else number

    def _number(self, record: Record, path: str) -> float:
        """A number of the record by its path, or of a variable, which is in upper case."""
        if not path.islower():
            return float(self._values[path])
        value: Any = record
        for name in path.split("."):
            value = getattr(value, name)
        return float(value)

    def _lease_out(
        self, record: Record, edge: Transition, owner: str | None, now: datetime, made: dict[str, Any]
    ) -> None:
        """Takes a lease, or gives it back."""
        lease = self._lifecycle.lease
        if lease is None:
            return
        if edge.target == lease.state and edge.source != lease.state:
            made[lease.owner] = owner
            made[lease.fence] = getattr(record, lease.fence) + 1
            made[lease.expires] = now + timedelta(seconds=self._lease_s(record))
            if lease.token:
                made[lease.token] = self._world.new_id()
        elif edge.source == lease.state:
            made[lease.expires] = None
            if lease.token:
                made[lease.token] = None
            if not lease.keeps_owner or edge.target == self.entering.source:
                made[lease.owner] = None

    def _lease_s(self, record: Record) -> float:
        return min(self._number(record, self.lease.seconds), _LONGEST_WAIT_S)


class _Named(dict[str, Any]):
    def __init__(self, record: object) -> None:
        super().__init__()
        self._record = record

    def __missing__(self, name: str) -> Any:
        return getattr(self._record, name)


def _changed(record: Record, made: Mapping[str, Any]) -> Record:
    return replace(record, **made)
