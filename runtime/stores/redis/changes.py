"""Changes of entities: transitions, leases and what is due, each one call of the script."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from runtime.call.conditions import Failure
from runtime.call.context import Call
from runtime.model.lifecycles import Transition
from runtime.stores.contract import (
    NOTHING,
    Backlog,
    ExchangeResult,
    Given,
    LeaseProof,
    LeaseSettlement,
    Record,
    Transitioned,
)
from runtime.stores.redis.calls import Reply
from runtime.stores.redis.codec import SIGNATURE, compute_signature, to_microseconds
from runtime.stores.redis.creation import Creation
from runtime.stores.redis.wakeups import RedisWakeups
from runtime.stores.semantics.clocks import batch_size, is_in_force
from runtime.stores.semantics.leases import STALE
from runtime.stores.semantics.rules import Change
from runtime.stores.store import GuardBreach, NoSuchEntity, Unstorable

_LOST = "lost"
_PURGED = 500
"""How many entities one call of a purge looks at."""
_AT_ONCE = 500
"""How many entities one call claims: few enough that no other caller waits long for the server."""
Request = list[Any]


class Changes(Creation[Record]):
    """Changes the entities of one kind."""

    _wakeups: RedisWakeups

    # Transitions.

    async def transition(
        self,
        key: str,
        edge: str | Sequence[str],
        call: Call,
        *,
        lease: LeaseProof | None = None,
        owner: str = "",
        given: Given = NOTHING,
        noted: Mapping[str, str] = NOTHING,
        is_final: bool = False,
    ) -> Transitioned:
        names = [edge] if isinstance(edge, str) else [*edge]
        changes = [self._admit(name, call, has_proof=lease is not None) for name in names]
        if is_final:
            for change in changes:
                self._require_ending(change)
        self._require_possible_key(key)
        request = self._to_request(key, names, lease, given, is_final, owner or call.caller)
        reply = await self._change([request], names, call, noted=noted)
        code, *more = reply.answer[0]
        if code == "none":
            raise NoSuchEntity(key)
        if code in (_LOST, STALE):
            raise self._lost(key, lease.owner if lease else "", code)
        if code == "unstorable":
            raise Unstorable(f"{more[0]} of a {self._entity} is a number")
        state = self._state(more[0])
        if code != "done":
            self._audit_ignored(changes[0], key, call, state)
        return Transitioned(code == "done", state)

    async def _change(
        self,
        requests: Sequence[Request],
        names: Collection[str],
        call: Call,
        *,
        claim: Mapping[str, Any] = NOTHING,
        noted: Mapping[str, str] = NOTHING,
    ) -> Reply:
        arguments = self._arguments(call, requests=requests, **claim)
        entering = [self._rules.entering.name] if claim and self._rules.entering else []
        self._add_chance(arguments, [*names, *entering])
        count = len(names) * len(requests) + int(claim.get("free", 0)) + len(requests) if claim else 2
        tokens = self._add_tokens(arguments, count + (100 if self._rules.on_access else 0))
        keys = [request[0] for request in requests]
        operation = "change"
        if claim:
            operation = "exchange" if requests else "claim"
        return await self._run(operation, arguments, call, keys, tokens=tokens, noted=noted)

    def _to_request(
        self,
        key: str,
        names: Sequence[str],
        lease: LeaseProof | None,
        given: Given,
        is_final: bool,
        owner: str,
        *,
        is_settlement: bool = False,
    ) -> Request:
        """Encode one change: see `change` in `operations.lua`."""
        proof = (lease.owner, lease.fence) if lease is not None else ("", 0)
        texts = {name: _to_text(value) for name, value in given.items()} if given else {}
        return [key, names, *proof, lease is not None, texts, is_final, owner, is_settlement]

    def _lost(self, key: str, owner: str, problem: str) -> Exception:
        self._measures.lease_lost()
        return self._lease_lost(key, owner, problem)

    def _require_ending(self, edge: Change) -> None:
        if not isinstance(edge, Transition) or edge.dead_letter is None:
            raise GuardBreach(f"{edge.name} is never the last try of a {self._entity}")

    def _require_possible_key(self, key: str) -> None:
        """Raise for what can be no key, so that it never becomes the name of something else in Redis."""
        if not self._lifecycle.is_key(key):
            raise NoSuchEntity(key)

    async def update(self, key: str, /, **changes: Any) -> Record:
        self._require_unguarded(changes)
        self._require_possible_key(key)
        fields = {name: self._codec.encode(name, value) for name, value in changes.items()}
        holder = self._rules.lease.holder if self._rules.lease else None
        if holder is not None and holder.needs in changes:
            fields[SIGNATURE] = compute_signature(changes[holder.needs])
        reply = await self._run("update", self._arguments(None, key=key, fields=fields), None, [key])
        (record,) = self._codec.decode_all(reply.values)
        if record is None:
            raise NoSuchEntity(key)
        return record

    async def delete(self, key: str, expected: int, call: Call) -> Transitioned:
        self._require_deleter(call)
        self._require_possible_key(key)
        state = self._codec.word(self._lifecycle.status, expected)
        noted = {"from_status": self._lifecycle.states.get(expected, "")}
        arguments = self._arguments(call, key=key, expected=state)
        code, *more = (await self._run("delete", arguments, call, [key], noted=noted)).answer
        if code == "none":
            raise NoSuchEntity(key)
        if code == "holds":
            raise self._condition("still_held", entity=self._entity, key=key, held=more[0])
        return Transitioned(code == "done", self._state(more[0]))

    async def purge(self, older_than_s: float, call: Call) -> int:
        self._require_deleter(call)
        purged = 0
        for state in sorted(self._lifecycle.deletable):
            word, offset = self._codec.word(self._lifecycle.status, state), 0
            while True:
                arguments = self._arguments(
                    call, state=word, older_than_s=older_than_s, offset=offset, most=_PURGED
                )
                count, offset, seen = (await self._run("purge", arguments, call)).answer
                purged += count
                if seen < _PURGED:
                    break
        return purged

    # Leases.

    async def claim(
        self,
        owner: str,
        count: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> list[Record]:
        claim = self._to_claim(owner, count, call, where, capabilities)
        if not claim:
            return []
        position = self._wakeups.position
        reply = await self._change([], (), call, claim=claim)
        return self._claimed(reply, position, is_narrowed=bool(where))

    async def settle(self, settlement: LeaseSettlement, call: Call) -> int:
        (outcome,) = await self.settle_many([settlement], call)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def settle_many(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> Sequence[int | Exception]:
        outcomes, requests, places = self._admit_settlements(settlements, call)
        if requests:
            reply = await self._change(requests, _names(requests), call)
            self._settled(settlements, places, reply, outcomes)
        return outcomes

    async def exchange(
        self,
        owner: str,
        settlements: Sequence[LeaseSettlement],
        free: int,
        call: Call,
        *,
        where: Mapping[str, object] = NOTHING,
        capabilities: Collection[str] | None = None,
    ) -> ExchangeResult[Record]:
        claim = self._to_claim(owner, free, call, where, capabilities)
        outcomes, requests, places = self._admit_settlements(settlements, call)
        position = self._wakeups.position
        if not claim and not requests:
            return ExchangeResult([], outcomes)
        reply = await self._change(requests, _names(requests), call, claim=claim)
        self._settled(settlements, places, reply, outcomes)
        return ExchangeResult(self._claimed(reply, position, is_narrowed=bool(where)), outcomes)

    def _to_claim(
        self,
        owner: str,
        free: int,
        call: Call,
        where: Mapping[str, object],
        capabilities: Collection[str] | None,
    ) -> dict[str, Any]:
        self._admit_claim(call)
        self._require_fields(where)
        holder = self._layout.holder
        if holder is not None and not holder.is_key(owner):
            return {}  # Nothing that could be the name of something else in Redis has a lease.
        claim: dict[str, Any] = {"owner": owner, "free": max(0, min(free, _AT_ONCE))}
        if where:
            claim["where"] = {name: self._codec.encode(name, value) for name, value in where.items()}
        if capabilities is not None:
            claim["capabilities"] = [*capabilities]
        return claim

    def _claimed(self, reply: Reply, position: int, *, is_narrowed: bool) -> list[Record]:
        if not reply.values:
            self._wakeups.found_nothing(position, is_narrowed=is_narrowed)
        return [each for each in self._codec.decode_all(reply.values) if each is not None]

    def _admit_settlements(
        self, settlements: Sequence[LeaseSettlement], call: Call
    ) -> tuple[list[int | Exception], list[Request], list[int]]:
        """Encode those that the caller may make; of the others there is the exception already."""
        outcomes: list[int | Exception] = [0] * len(settlements)
        requests: list[Request] = []
        places: list[int] = []
        for place, asked in enumerate(settlements):
            try:
                self._admit_settlement(asked, call)
            except (Failure, GuardBreach) as error:
                outcomes[place] = error
                continue
            places.append(place)
            requests.append(
                self._to_request(
                    asked.key,
                    (asked.edge,),
                    asked.lease,
                    asked.given,
                    asked.is_final,
                    "",
                    is_settlement=True,
                )
            )
        return outcomes, requests, places

    def _admit_settlement(self, asked: LeaseSettlement, call: Call) -> None:
        lease = self._rules.lease
        edge = self._admit(asked.edge, call, has_proof=True)
        if not isinstance(edge, Transition) or lease is None or lease.state not in edge.sources:
            raise GuardBreach(f"{asked.edge} does not leave the lease of a {self._entity}")
        if asked.is_final:
            self._require_ending(edge)
        if not self._lifecycle.is_key(asked.key):
            raise self._lost(asked.key, asked.lease.owner, _LOST)

    def _settled(
        self,
        settlements: Sequence[LeaseSettlement],
        places: Sequence[int],
        reply: Reply,
        outcomes: list[int | Exception],
    ) -> None:
        for place, (code, *more) in zip(places, reply.answer, strict=True):
            asked = settlements[place]
            if code == "done":
                outcomes[place] = self._state(more[0])
            elif code == "unstorable":
                outcomes[place] = Unstorable(f"{more[0]} of a {self._entity} is a number")
            else:
                outcomes[place] = self._lost(asked.key, asked.lease.owner, STALE if code == STALE else _LOST)

    async def renew(
        self, held: Sequence[tuple[str, LeaseProof]], *, seconds: float | None = None
    ) -> list[Record | None]:
        if self._rules.lease is None:
            raise GuardBreach(f"a {self._entity} has no lease")
        if not held:
            return []
        asked = {
            place: [key, proof.owner, proof.fence]
            for place, (key, proof) in enumerate(held)
            if self._lifecycle.is_key(key)
        }
        arguments = self._arguments(None, held=[*asked.values()])
        if seconds is not None:
            arguments["seconds"] = seconds
        keys = [held[place][0] for place in asked]
        reply = await self._run("renew", arguments, None, keys, repeatable=True)
        renewed: list[Record | None] = [None] * len(held)
        for place, record in zip(asked, self._codec.decode_all(reply.values), strict=True):
            renewed[place] = record
        for each in renewed:
            if each is None:
                self._measures.lease_lost()
        return renewed

    async def backlog(self) -> dict[int, Backlog]:
        if self._rules.lease is None:
            raise GuardBreach(f"a {self._entity} has no lease")
        reply = await self._run("backlog", self._arguments(None), None, repeatable=True)
        return {
            rank.value: Backlog(count, max(0, age) / 1e6)
            for rank, (count, age) in zip(self._layout.ranks, reply.answer, strict=True)
        }

    # Due changes.

    async def run_due(self, change: str, call: Call) -> int:
        now = self._local_now()
        clocks = [
            clock
            for clock in self._admit_clock(change, call)
            if is_in_force(self._rules, clock.due, now, self._opened)
        ]
        if not clocks:
            return 0
        sizes = [[clock.number + 1, batch_size(self._rules, clock.due)] for clock in clocks]
        arguments = self._arguments(call, clocks=sizes)
        self._add_chance(arguments, [change])
        tokens = self._add_tokens(arguments, self._tokens_for(change, sum(size for _, size in sizes)))
        done: int = (await self._run("due", arguments, call, tokens=tokens)).answer
        return done

    def _tokens_for(self, change: str, most: int) -> int:
        edge, lease = self._rules.edges.get(change), self._rules.lease
        return most if edge is not None and lease is not None and edge.target == lease.state else 0


def _names(requests: Sequence[Request]) -> set[str]:
    return {name for request in requests for name in request[1]}


def _to_text(value: Any) -> str | None:
    """Encode what a change is given; a script converts texts to what the field has."""
    if value is None:
        return None
    if isinstance(value, str):
        # Half a surrogate pair cannot be written.
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return str(to_microseconds(value))
    if isinstance(value, int | float):
        return str(value)
    return msgspec.json.encode(value).decode()
