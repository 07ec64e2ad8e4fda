"""Leases: how a worker takes them, keeps them, and leaves them with what came of its work."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Generic

from runtime.call.context import Call
from runtime.model.lifecycles import Transition
from runtime.stores.s3.claims.holding import Holding
from runtime.stores.s3.claims.polling import Candidate, Polling
from runtime.stores.s3.client.errors import ObjectError
from runtime.stores.s3.entities import Entities, together
from runtime.stores.s3.guarded import Changed
from runtime.stores.s3.rows import Snapshot, Unreadable
from runtime.stores.store import Exchanged, Held, Record, Settling

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_LOOKS = 64
"""Listings and tries of one exchange, after which what ended has to be told."""
_UNREADABLE_FOR = timedelta(seconds=60)
_ABANDONED_FOR = timedelta(seconds=60)
"""How often something is looked at again whose lease is over while nothing becomes of it."""
_FRESH = timedelta(seconds=2)
"""For so long whoever has taken an entity is left to remove its entry; others would only do it again."""


class Taking(Generic[Record]):
    """What one worker takes leases with: of some parts and kinds only, or of all."""

    def __init__(
        self,
        entities: Entities[Record],
        holding: Holding[Record],
        parts: Collection[str] | None,
        kinds: Collection[str] | None,
    ) -> None:
        self._entities = entities
        self._changes = entities.changes
        self._holding = holding
        self._kinds = None if kinds is None else frozenset(kinds)
        self._polling = Polling(entities, parts)
        self._pause = _FIRST_PAUSE_S
        self._may_find = True

    # Both at once.

    async def exchange(
        self, owner: str, settling: Sequence[Settling], free: int, call: Call
    ) -> Exchanged[Record]:
        """Settles, and takes at the same time: neither has to wait for the other."""
        if not settling:
            return Exchanged(await self._take(owner, free, call), ())
        outcomes, taken = await asyncio.gather(
            self.settle_all(settling, call),
            self._take(owner, free + len(settling), call),
            return_exceptions=True,
        )
        if isinstance(outcomes, BaseException):
            raise outcomes
        if isinstance(taken, BaseException):
            if not isinstance(taken, Exception):
                raise taken
            taken = []  # What was settled has to be told; the next exchange meets the failure again.
        return Exchanged(taken, outcomes)

    # Taking.

    async def _take(self, owner: str, most: int, call: Call) -> list[Record]:
        edge = self._changes.entering
        self._entities.edge(edge.source, edge.target, call)
        taken: list[Record] = []
        tried: set[str] = set()
        self._may_find = False
        with self._entities.outages():
            if most and not await self._entities.is_clock_off(call):
                for _ in range(_LOOKS):
                    some = self._polling.take(most - len(taken), tried)
                    if some:
                        found, failure = _sorted(
                            await asyncio.gather(
                                *[self._try(each, owner, call) for each in some], return_exceptions=True
                            )
                        )
                        taken += found
                        if failure is not None and not taken:
                            raise failure
                        # What was taken has to be run; the next exchange meets the failure again.
                        if failure is not None or len(taken) >= most:
                            break
                    elif taken or not await self._polling.look(tried):
                        break
                else:
                    self._may_find = True
        if taken:
            self._pause, self._may_find = _FIRST_PAUSE_S, True
        elif self._polling.is_behind:
            self._pause = _FIRST_PAUSE_S
        return taken

    async def _try(self, candidate: Candidate, owner: str, call: Call) -> Record | None:
        was_taken = False
        try:
            found = await self._entities.objects.get(self._entities.keys.of(candidate.key))
            if found is None:
                self._drop(candidate)
                return None
            snapshot = self._entities.guarded.snapshot(candidate.key, found)
            is_free = self._changes.state(snapshot.record) == self._changes.entering.source
            was_taken = candidate.is_hint and not is_free
            if not self._is_worth_it(candidate, snapshot):
                return None
            return await self._claim(candidate, snapshot, owner, call)
        except Unreadable as error:
            self._polling.passed.add(candidate.line, self._changes.now() + _UNREADABLE_FOR)
            self._entities.unreadable(call, self._entities.keys.of(candidate.key), error)
            return None
        finally:
            self._polling.done(candidate, was_taken_by_others=was_taken)

    def _is_worth_it(self, candidate: Candidate, snapshot: Snapshot[Record]) -> bool:
        """Whether an entity is free for this worker; if not, the line is put in order or remembered."""
        changes, record, now = self._changes, snapshot.record, self._changes.now()
        state = changes.state(record)
        if state != changes.entering.source:
            self._pass_other(candidate, snapshot, now)
            return False
        only = changes.lease.only
        if self._kinds is not None and only and getattr(record, only) not in self._kinds:
            self._polling.passed.add(candidate.line)
            self._pass_object(snapshot, candidate)
            return False
        if not changes.is_free(record, now):
            polls = self._entities.kept.polls
            assert polls is not None
            entry = self._entities.keys.entry(polls.index, candidate.key, record)
            if candidate.is_hint and entry is not None and entry != candidate.line.key:
                # It was put back to a later time.
                self._entities.indexes.replace(candidate.key, record, candidate.line.key, candidate.line.etag)
            else:
                self._polling.passed.add(candidate.line, changes.free_at(record))
            self._pass_object(snapshot, candidate, changes.free_at(record))
            return False
        return True

    def _pass_other(self, candidate: Candidate, snapshot: Snapshot[Record], now: datetime) -> None:
        """Passes by what is not free. What it was found by is replaced by the entries that it should have.

        Where its lease was taken just now that is left to whoever has it. If that one has died since, the
        entry by which it was free is still there, and this is how the lease gets one of its own.
        """
        changes, indexes, record = self._changes, self._entities.indexes, snapshot.record
        key, line, passed = candidate.key, candidate.line, self._polling.passed
        abandoned_at = changes.abandoned_at(record)
        if not candidate.is_hint and abandoned_at is not None and abandoned_at <= now:
            # Whoever drives the clock looks at the index only, and should have found it by now.
            for entry in indexes.entries(record).values():
                indexes.write(key, entry, record)
            abandoned_at = now + _ABANDONED_FOR
        passed.note(self._entities.keys.of(key), snapshot.etag, abandoned_at, wakes=False)
        written_at = changes.written_at(record)
        if not candidate.is_hint:
            return
        if candidate.listed_at - written_at > _FRESH or line.changed > written_at:
            indexes.replace(key, record, line.key, line.etag)
        else:
            passed.note(line.key, line.etag, written_at + _FRESH, wakes=False)

    def _pass_object(
        self, snapshot: Snapshot[Record], candidate: Candidate, until: datetime | None = None
    ) -> None:
        """An object that was read through the index need not be read when it is listed itself."""
        self._polling.passed.note(self._entities.keys.of(candidate.key), snapshot.etag, until)

    async def _claim(
        self, candidate: Candidate, snapshot: Snapshot[Record], owner: str, call: Call
    ) -> Record | None:
        entities, changes, key = self._entities, self._changes, candidate.key
        whole = await entities.guarded.apart.whole(snapshot.record)
        if not candidate.is_hint and self._polling.uses_index:
            await self._add_hint(key, snapshot.record)

        def build(record: Record) -> Record | None:
            # What is found after a lost race is for the next look.
            if record is not snapshot.record:
                return None
            return changes.moved(record, changes.entering, {}, owner=owner)[0]

        def is_mine(wanted: Record, found: Record) -> bool:
            return changes.token(wanted) is not None and changes.token(wanted) == changes.token(found)

        result = await entities.guarded.change(key, build, snapshot, is_mine=is_mine, once=True)
        if not isinstance(result, Changed):
            return None
        record = result.after.record
        self._holding.keep(key, result.after)
        passed = self._polling.passed
        passed.note(entities.keys.of(key), result.after.etag, changes.abandoned_at(record), wakes=False)
        if candidate.is_hint:
            passed.add(candidate.line)
            entities.indexes.remove_with_lease(key, candidate.line.key, candidate.line.etag)
        else:
            self._polling.lacked_hint(candidate)
        edge, lease = changes.entering, changes.lease
        entities.telling.record_applied(
            call,
            edge.name,
            key,
            edge.source,
            edge.target,
            known={lease.owner: owner, lease.fence: getattr(record, lease.fence)},
        )
        return record if whole is snapshot.record else await entities.guarded.apart.whole(record)

    async def _add_hint(self, key: str, record: Record) -> None:
        """Writes the entry of something free that has none: whoever dies after taking it leaves it behind."""
        entities, polls = self._entities, self._entities.kept.polls
        assert polls is not None
        if (entry := entities.keys.entry(polls.index, key, record)) is not None:
            entities.indexes.write(key, entry, record)
            await entities.indexes.hinted(key)

    def _drop(self, candidate: Candidate) -> None:
        if candidate.is_hint:
            self._entities.indexes.remove(candidate.key, candidate.line.key, candidate.line.etag)

    # Settling.

    async def settle_all(self, settling: Sequence[Settling], call: Call) -> Sequence[int | Exception]:
        async def one(each: Settling) -> int | Exception:
            try:
                return await self._settle(each, call)
            except Exception as error:
                return error

        return await together(settling, one, at_once=32)

    async def settle(
        self,
        key: str,
        target: int,
        held: Held,
        call: Call,
        final: bool = False,
        edge: str = "",
        /,
        **given: str | None,
    ) -> int:
        return await self._settle(Settling(key, held, target, given, final, edge), call)

    async def _settle(self, asked: Settling, call: Call) -> int:
        changes, key = self._changes, asked.key
        edge = self._entities.edge(changes.lease.state, asked.target, call, asked.edge)
        taken: list[Transition] = []

        def build(record: Record) -> Record | None:
            made, last = changes.moved(record, edge, asked.given, final=asked.final)
            taken[:] = [last]
            return made

        with self._entities.outages():
            try:
                result = await self._holding.change(key, asked.held, build)
            except Unreadable as error:
                # Somebody has overwritten it, and the lease with it; all others are as they were.
                self._holding.forget(key)
                self._entities.unreadable(call, self._entities.keys.of(key), error)
                raise self._entities.lost(key, asked.held.owner) from None
        self._holding.forget(key)
        if not isinstance(result, Changed):
            raise self._entities.lost(key, asked.held.owner)
        last = taken[0]
        lease = changes.lease
        if last.target != changes.entering.source:
            self._polling.passed.note(self._entities.keys.of(key), result.after.etag)
        self._entities.telling.record_applied(
            call,
            last.name,
            key,
            last.source,
            last.target,
            known={lease.owner: asked.held.owner, lease.fence: asked.held.fence},
        )
        return last.target

    # Keeping.

    async def renew_all(self, held: Sequence[tuple[str, Held]]) -> Sequence[bool | Exception]:
        async def one(each: tuple[str, Held]) -> bool | Exception:
            try:
                return isinstance(await self._holding.change(*each, self._changes.renewed), Changed)
            except Unreadable:
                return False
            except ObjectError as error:
                return self._entities.meaning(error)

        return await together(held, one, at_once=32)

    # Waiting.

    async def awaited(self, timeout_s: float) -> bool:
        """Waits, longer each time nothing was found, but not beyond a time at which something is due."""
        if self._may_find:
            self._may_find = False
            return True
        pause, self._pause = min(self._pause, timeout_s), min(2 * self._pause, _LONGEST_PAUSE_S)
        now = self._changes.now()
        if (due := self._polling.next_after(now)) is not None:
            pause = max(_FIRST_PAUSE_S / 2, min(pause, (due - now).total_seconds()))
        await self._entities.world.sleep(pause)
        return True


def _sorted(found: Sequence[Record | BaseException | None]) -> tuple[list[Record], BaseException | None]:
    """What some tries have taken, and the first failure among them."""
    failure = next((each for each in found if isinstance(each, BaseException)), None)
    return [each for each in found if each is not None and not isinstance(each, BaseException)], failure
