"""New entities: many in one script, each by itself; or found under what no two of them share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic

from runtime.call.context import Call
from runtime.observe import log as events
from runtime.stores.batch import Batch
from runtime.stores.redis.connection.line import ReplyError
from runtime.stores.redis.connection.server import Full, Unavailable, refusal
from runtime.stores.redis.entities import Entities
from runtime.stores.redis.filling import Filled, Filling
from runtime.stores.redis.plain import Plain
from runtime.stores.redis.rows import moment_of
from runtime.stores.store import Created, GuardBreach, Record

AT_ONCE = 500
"""How many one script creates: enough to be fast, few enough that nobody else waits long for the server."""
_ATTEMPTS = 3
"""An entity that was found and then gone before it could be read is created after all."""
_WAIT_MS = 1000
"""How long replicas have to say that they have what was created."""

Past = Callable[[str], Any]
"""Looks an entity up in the history, where there is one."""


class Creation(Generic[Record]):
    """Creates the entities of one kind."""

    def __init__(self, entities: Entities[Record]) -> None:
        self._entities = entities
        lifecycle, kept, names = entities.lifecycle, entities.kept, entities.rows.names
        self._filling = Filling(entities)
        self._alone = Plain(entities, "create_one")
        self._for_holder = Plain(entities, "create_for") if "create_for" in entities.scripts else self._alone
        self._stamps = [names.index(name) for name in lifecycle.creation_stamps]
        self._status, self._sequence = names.index(lifecycle.status), names.index(kept.sequence)
        index = lifecycle.lease.index if lifecycle.lease else None
        held_back = kept.indexes[index].only_unless if index else None
        self._held_back = names.index(held_back) if held_back else None
        self._waiting: dict[str, Batch[Record, Created[Record]]] = {}
        self._count = entities.metrics.count_transition
        self.past: Past | None = None
        self._idle = ""
        """Somebody who waited for an entity when last heard of, and may wait again."""

    async def all(self, records: Sequence[Record], call: Call) -> list[Created[Record]]:
        """Creates some, each by itself; those who ask for one at the same moment share a script."""
        self._require_creator(call)
        entities = self._entities
        for record in records:
            if not entities.lifecycle.is_key(self._key(record)):
                raise GuardBreach(f"{self._key(record)!r} is no key of a {entities.lifecycle.entity}")
        made: list[Created[Record]] = []
        try:
            if len(records) == 1:
                if entities.server.waits_on_the_spot:
                    # Nobody else asks in the same moment.
                    made = await self._create(records, call.caller)
                else:
                    made.append(await self._batch_of(call.caller)(records[0]))
            else:
                for start in range(0, len(records), AT_ONCE):
                    made += await self._create(records[start : start + AT_ONCE], call.caller)
        except (Unavailable, Full, UnicodeEncodeError) as error:
            raise entities.told(error) from None
        self._tell(call, made)
        return made

    def _batch_of(self, actor: str) -> Batch[Record, Created[Record]]:
        batch = self._waiting.get(actor)
        if batch is None:

            def create(records: Sequence[Record]) -> Awaitable[Sequence[Created[Record]]]:
                return self._create(records, actor)

            run = partial(self._entities.apart, create)
            batch = self._waiting[actor] = Batch(run, max_items=200, concurrency=2, eager=True)
        return batch

    async def _create(self, records: Sequence[Record], actor: str) -> list[Created[Record]]:
        plain = self._for_holder if self._idle else self._alone
        if len(records) == 1 and (command := plain.command(records[0], actor, self._idle)) is not None:
            (answer,) = await self._entities.server.evaluate_one(command, plain.text)
            if answer[0] == _DONE:
                if len(answer) > _HINT:
                    self._idle = answer[_HINT]
                elif answer[2] != 1:
                    self._idle = ""  # Others are there already, so that nobody waits.
                return [self._made(records[0], None, answer)]
        filled = [self._filling.filled(each) for each in records]
        answers = await self._send(filled, actor)
        if all(answer[0] == _DONE for answer in answers):
            return [
                self._made(record, values, answer)
                for record, (values, _), answer in zip(records, filled, answers, strict=True)
            ]
        return await self._looked_up(records, filled, answers, actor)

    async def _looked_up(
        self,
        records: Sequence[Record],
        filled: Sequence[Filled],
        answers: Sequence[Sequence[Any]],
        actor: str,
    ) -> list[Created[Record]]:
        """What came of those of which some were there already, or not let in."""
        made: dict[int, Created[Record]] = {}
        left = list(range(len(records)))
        for attempt in range(_ATTEMPTS):
            if attempt:
                answers = await self._send([filled[place] for place in left], actor)
            found: dict[int, Sequence[Any]] = {}
            for place, answer in zip(left, answers, strict=True):
                if answer[0] == "found":
                    found[place] = answer
                else:
                    made[place] = self._made(records[place], filled[place][0], answer)
            left = await self._find(found, records, made) if found else []
            if not left:
                break
        if left := [place for place in range(len(records)) if place not in made]:
            raise Unavailable(f"{len(left)} were neither created nor found")
        owned = [place for place, each in made.items() if each.position == _OWN]
        if owned:
            # Our own, from an attempt whose answer was lost.
            keys = [self._key(records[place]) for place in owned]
            for place, record in zip(owned, await self._entities.read_all(keys), strict=True):
                made[place] = self._known(record or records[place], is_new=True)
        return [made[place] for place in range(len(records))]

    async def _send(self, filled: Sequence[Filled], actor: str) -> Sequence[Sequence[Any]]:
        entities, replicas = self._entities, self._replicas()
        call = entities.calling("create", {"actor": actor}, [handed for _, handed in filled])
        answers: list[Sequence[Any]]
        if not replicas:
            (answers,) = await entities.server.evaluate([call], repeatable=True)
            return answers
        wait = ("WAIT", replicas, _WAIT_MS)
        answers, reached = await entities.server.evaluate([call], wait, repeatable=True, line="patient")
        if isinstance(reached, ReplyError):
            raise refusal(reached)
        if reached < replicas:
            # It is stored here; whether it outlives this server is not known. A repeat finds it.
            raise Unavailable(f"{reached} of {replicas} replicas have it", unknown=True)
        return answers

    async def _find(
        self, found: Mapping[int, Sequence[Any]], records: Sequence[Record], made: dict[int, Created[Record]]
    ) -> list[int]:
        """Reads those that were there already; the places of those that are gone meanwhile."""
        entities, gone = self._entities, list[int]()
        for (place, answer), record in zip(
            found.items(), await entities.read_all([each[1] for each in found.values()]), strict=True
        ):
            known = record
            if known is None and self.past is not None:
                known = await self.past(answer[1])
            if known is not None:
                made[place] = self._known(known, is_new=False)
                continue
            gone.append(place)
            unique, value = entities.kept.unique[answer[2]].key, str(getattr(records[place], answer[2]))
            once = {"unique": unique.replace(f"{{{answer[2]}}}", value)}
            await entities.server.evaluate([entities.calling("forget_unique", once, [{"key": answer[1]}])])
        return gone

    def _made(self, record: Any, values: list[Any] | None, answer: Sequence[Any]) -> Created[Record]:
        """What came of one; its values are None if they are not known yet."""
        code = answer[0]
        if code == "full":
            return self._known(record, is_new=False, full=True)
        if code == "own":
            return self._known(record, is_new=True, position=_OWN)
        make = partial(self._new_record, record, values, answer)
        return Created(make, True, self._entities.lifecycle.initial, answer[2])

    def _known(
        self, record: Record, *, is_new: bool, position: int | None = None, full: bool = False
    ) -> Created[Record]:
        state: int = getattr(record, self._entities.lifecycle.status)
        return Created(lambda: record, is_new, state, position, full=full)

    def _new_record(self, record: Any, values: list[Any] | None, answer: Sequence[Any]) -> Record:
        """A record as it was stored."""
        values = self._filling.values(record) if values is None else values
        moment = moment_of(answer[3])
        for at in self._stamps:
            values[at] = moment
        values[self._status] = self._entities.lifecycle.initial
        values[self._sequence] = 1
        if answer[2] is not None and self._held_back is not None:
            # It has a place, so whatever was to hold it back was over already.
            values[self._held_back] = None
        return self._entities.rows.made(values)

    def _replicas(self) -> int:
        """How many replicas must have what was created before anybody is told so."""
        return int(self._entities.variables.get(self._entities.kept.replicas or "") or 0)

    def _key(self, record: Any) -> str:
        key: str = getattr(record, self._entities.lifecycle.key)
        return key

    def _require_creator(self, call: Call) -> None:
        lifecycle = self._entities.lifecycle
        if call.caller not in lifecycle.creators:
            allowed = ", ".join(sorted(lifecycle.creators))
            raise self._entities.denied(call, f"only {allowed} may create a {lifecycle.entity}")

    def _tell(self, call: Call, made: Sequence[Created[Record]]) -> None:
        entities, trace = self._entities, self._entities.kept.trace
        count = sum([each.is_new for each in made])
        self._count(entities.lifecycle.entity, "create", call.caller, count)
        if not call.log.wants(events.TRANSITION):
            return
        new = [each.record for each in made if each.is_new]

        def known(place: int) -> dict[str, object]:
            found = getattr(new[place], trace) if trace else None
            return {trace: found} if trace and found else {}

        keys = [self._key(record) for record in new]
        entities.tell(call, "create", None, entities.lifecycle.initial, keys, known)


_DONE = "done"
_HINT = 4
"""Where an answer says who waits for the next one."""
_OWN = -1
"""Stands for the place of an entity that an earlier attempt has created."""
