"""New entities: one call of the script for many, which are found under what no two of them share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from runtime.call.context import Call
from runtime.stores.batch import Batch
from runtime.stores.contract import CREATION, NOTHING, Compare, CreateResult, Record
from runtime.stores.redis.calls import ScriptCalls
from runtime.stores.redis.codec import decode_json
from runtime.stores.redis.connection.client import RedisUnavailable, ScriptCall, refusal
from runtime.stores.redis.connection.pipelined_connection import ReplyError
from runtime.stores.redis.scripts import CREATE_AND_TAKE
from runtime.stores.semantics.creation import created
from runtime.stores.store import GuardBreach, Unstorable

_ATTEMPTS = 3
"""An entity that was found and then gone before it could be read is created after all."""
_WAIT_MS = 1000
"""How long replicas have to say that they have what was created."""


class Creation(ScriptCalls[Record]):
    """Creates the entities of one kind."""

    _waiting: dict[str, Batch[Record, CreateResult[Record]]]

    async def create(self, record: Record, call: Call, *, then: Sequence[str] = ()) -> CreateResult[Record]:
        self._require_creator(call)
        self._admit_first(then, call)
        self._require_key(record)
        has_trace = call.trace and not self._rules.trace
        if then or has_trace or self._server.waits_on_the_spot:
            (result,) = await self._create([record], call.caller, call, then)
        else:
            # Those who ask at the same moment share a call.
            result = await self._answer(self._batch_of(call.caller)(record))
            if result.is_new:
                self._audit_new(record, result.record, call)
        if result.is_refused:
            raise self._condition("store_full")
        return result

    async def create_many(
        self,
        records: Sequence[Record],
        call: Call,
        *,
        compare: Compare[Record] | None = None,
        then: Sequence[str] = (),
    ) -> list[CreateResult[Record]]:
        self._require_creator(call)
        self._admit_first(then, call)
        for record in records:
            self._require_key(record)
        if not records:
            return []
        while True:
            expected = await self._plan(records, call, compare, then) if compare is not None else None
            results = await self._create(records, call.caller, call, then, expected)
            if results or not records:
                return results

    def _batch_of(self, actor: str) -> Batch[Record, CreateResult[Record]]:
        batch = self._waiting.get(actor)
        if batch is None:
            batch = self._waiting[actor] = Batch(
                partial(self._create_apart, actor), max_items=200, concurrency=2, eager=True
            )
        return batch

    async def _create_apart(
        self, actor: str, records: Sequence[Record]
    ) -> Sequence[CreateResult[Record] | Exception]:
        """Create those that share a call; a fault of one is its own."""
        try:
            return await self._create(records, actor, None, ())
        except (GuardBreach, Unstorable) as error:
            if len(records) == 1:
                return [error]
            return [(await self._create_apart(actor, [each]))[0] for each in records]

    async def _plan(
        self, records: Sequence[Record], call: Call, compare: Compare[Record], then: Sequence[str]
    ) -> list[str]:
        """Compare each with what would be found in its place; return the keys of those, in their order."""
        answers, known_records, _ = await self._send(records, call.caller, call, then, is_plan=True)
        found = iter(known_records)
        planned = {self._rules.key(record): record for record in records}
        expected = []
        for record, answer in zip(records, answers, strict=True):
            expected.append(answer[1] if answer[0] == "found" else "")
            if answer[0] == "found":
                # One that is ahead of it in the same call is not there yet.
                known = next(found) or planned.get(answer[1])
                if known is not None:
                    compare(record, known)
        return expected

    async def _create(
        self,
        records: Sequence[Record],
        actor: str,
        call: Call | None,
        then: Sequence[str],
        expected: Sequence[str] | None = None,
    ) -> list[CreateResult[Record]]:
        """Create or find; nothing where the plan does not hold any more."""
        made: dict[int, CreateResult[Record]] = {}
        left = [*range(len(records))]
        for _ in range(_ATTEMPTS):
            asked = [records[place] for place in left]
            answers, known, begun = await self._send(asked, actor, call, then, expected=expected)
            if answers[0][0] == "replan":
                return []
            found, gone = iter(known), list[int]()
            for place, answer, made_first in zip(left, answers, begun, strict=True):
                # Of one that is full there is no record, and of a new one only where an edge has changed it.
                has_record = answer[0] in ("found", "own") or (answer[0] == "done" and then)
                record = next(found) if has_record else None
                result = await self._to_result(records[place], made_first, answer, record, call)
                if result is None:
                    gone.append(place)
                else:
                    made[place] = result
            left = gone
            if not left:
                break
        if left:
            raise self._condition("store_unavailable")
        return [made[place] for place in range(len(records))]

    async def _send(
        self,
        records: Sequence[Record],
        actor: str,
        call: Call | None,
        then: Sequence[str],
        *,
        expected: Sequence[str] | None = None,
        is_plan: bool = False,
    ) -> tuple[list[list[Any]], list[Record | None], list[Record]]:
        """Send records; return what became of each, the records of those known, and each as it was sent."""
        arguments = self._arguments(call)
        arguments["actor"] = actor
        tokens = self._add_tokens(arguments, len(then) * len(records))
        self._add_chance(arguments, then)
        if then:
            arguments["edges"] = then
        if expected is not None:
            arguments["expected"] = expected
        if is_plan:
            arguments["is_plan"] = True
        handed: list[Any] = []
        keys = [self._rules.key(record) for record in records]
        begun: list[Record] = [created(self._rules, record, 0) for record in records]
        try:
            for key, record in zip(keys, begun, strict=True):
                handed += (key, *self._new.encode(record))
        except UnicodeEncodeError as error:
            raise self._to_condition(error) from None

        def ask(again: bool) -> ScriptCall:
            operation = CREATE_AND_TAKE if then else "create"
            return self._call_script(operation, {**arguments, "again": again}, keys, *handed)

        found = await self._answer(self._evaluate(ask))
        answers, done, used = decode_json(found[0])
        self._tokens.extendleft(reversed(tokens[used:]))
        if done:
            self._audit_all(done, call, NOTHING)
        if answers[0][0] == "exists":
            raise GuardBreach(f"{self._entity} {answers[0][1]} exists already")
        if answers[0][0] == "refused":
            raise GuardBreach(f"{answers[0][1]} of a new {self._entity} does not apply")
        return answers, self._codec.decode_all(found[1:]), begun

    async def _evaluate(self, ask: Callable[[bool], ScriptCall]) -> list[Any]:
        """Run the script, again if its answer was lost: then it knows its own entities."""
        server, replicas = self._server, self._replicas
        if not replicas:
            found: list[Any] = await server.evaluate_one(ask)
            return found
        wait = ("WAIT", replicas, _WAIT_MS)
        # With the wait in one exchange it is not known whether an earlier answer was lost.
        found, reached = await server.evaluate([ask(True)], wait, repeatable=True, line="patient")
        if isinstance(reached, ReplyError):
            raise refusal(reached)
        if reached < replicas:
            # It is stored here; whether it outlives this server is not known. A repeat finds it.
            raise RedisUnavailable(f"{reached} of {replicas} replicas have it", unknown=True)
        return found

    async def _to_result(
        self, record: Record, begun: Record, answer: list[Any], known: Record | None, call: Call | None
    ) -> CreateResult[Record] | None:
        """Convert what the script says of a record; None where what it found is gone."""
        code = answer[0]
        if code == "full":
            return CreateResult(record, False, True)
        if code == "found":
            known = known or await self._find_archived(answer[1])
            if known is not None:
                return CreateResult(known, False)
            await self._forget_unique(record, *answer[1:])
            return None
        if code == "own":
            assert known is not None
            return CreateResult(known, True)
        made = known or self._first_record(begun, int(answer[1]))
        if call is not None:
            self._audit_new(begun, made, call)
        place = answer[2]
        return CreateResult(made, True, position=place if isinstance(place, int) else None)

    def _first_record(self, begun: Record, moment: int) -> Record:
        """Return a record as it was stored, by the moment that the script gives."""
        rules = self._rules
        written = {name: rules.time_value(name, moment) for name in self._lifecycle.creation_stamps}
        if (not_before := rules.not_before) in written:
            at = max(moment, rules.moment_at(begun, not_before) or 0)
            written[not_before] = rules.time_value(not_before, at)
        back = rules.held_back_by
        if back in rules.waits and (rules.moment_at(begun, back) or moment + 1) <= moment:
            written[back] = rules.unset(back)
        if self._sequence:
            written[self._sequence] = 1
        return replace(begun, **written)

    @property
    def _sequence(self) -> str:
        return self._layout.kept.sequence if self._layout.kept else ""

    def _audit_new(self, wanted: Record, record: Record, call: Call) -> None:
        trace = self._rules.trace
        noted = {trace: getattr(record, trace)} if trace else {}
        self._audit(CREATION, self._rules.key(record), call, {**self._first_note(wanted), **noted})

    async def _find_archived(self, key: str) -> Record | None:
        return None if self._archive is None else await self._ask_archive(self._archive.get(key))

    async def _forget_unique(self, record: Record, key: str, name: str) -> None:
        """Free a unique value whose entity is gone."""
        head, tail = self._layout.unique_pattern(name)
        kept_as = f"{head}{getattr(record, name)}{tail}"
        (found,) = await self._answer(self._server.ask(("GET", kept_as)))
        if found == key:
            await self._answer(self._server.ask(("DEL", kept_as)))

    def _require_key(self, record: Record) -> None:
        key = self._rules.key(record)
        if not self._lifecycle.is_key(key):
            raise GuardBreach(f"{key!r} is no key of a {self._entity}")
