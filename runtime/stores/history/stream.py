"""The stream of changes, shared by all copies of the writer through one consumer group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from runtime.stores.history.entries import apart

GROUP = "history"
AT_ONCE = (10, 500)
"""The fewest and the most entries that are taken in one go."""
AT_ONCE_BYTES = 8 * 1024 * 1024
"""Fewer are taken while the records in them are larger than this together, or changes more than the most."""
BLOCK_MS = 1000
"""How long a copy waits for the next entry."""
ABANDONED_MS = 5_000
"""After how long what a copy has taken is taken from it."""
DEAD_MS = 3_600_000
"""After how long a copy that has taken nothing and not been heard of is forgotten."""
SET_ASIDE = 10_000
"""How many entries that cannot be written are kept for a person to look at."""


class Raw(NamedTuple):
    """One change as it is in the stream, where its entry may have several."""

    id: str
    fields: Mapping[bytes, bytes]
    place: int = 0
    """Which of those in its entry it is."""

    @property
    def name(self) -> str:
        """What tells it from every other change of the stream."""
        return f"{self.id}/{self.place}"


class OutboxStream:
    """What one copy does with the stream. An entry is there until it is done."""

    def __init__(self, client: Redis, key: str, name: str) -> None:
        self._client = client
        for command in ("XREADGROUP", "XAUTOCLAIM"):
            client.set_response_callback(command, _as_it_is)
        self._key = key
        self._name = name
        self._next = "0-0"
        self._most = AT_ONCE[0]

    async def take(self, *, unfinished: bool) -> list[Raw]:
        """Waits a moment for changes that nobody has taken; or gives again, at once, what was not done."""
        command: list[Any] = ["XREADGROUP", "GROUP", GROUP, self._name, "COUNT", self._most]
        if not unfinished:
            command += ["BLOCK", BLOCK_MS]
        try:
            answer = await self._send(*command, "STREAMS", self._key, "0" if unfinished else ">")
        except ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            await self._make_group()
            return []
        return self._weighed(_entries(_of_one_stream(answer)))

    async def take_over(self) -> list[Raw]:
        """What other copies took long ago and have not done."""
        whose = (self._key, GROUP, self._name)
        answer = await self._send("XAUTOCLAIM", *whose, ABANDONED_MS, self._next, "COUNT", self._most)
        self._next = _text(answer[0])
        return self._weighed(_entries(answer[1]))

    async def done(self, ids: Sequence[str], refused: Sequence[tuple[Raw, str]]) -> None:
        """Takes entries out of the stream; changes that cannot be written are set aside in the same step."""
        pipeline = self._client.pipeline(transaction=True)
        for raw, why in refused:
            fields: dict[Any, Any] = {**raw.fields, "refused": why, "id": raw.id}
            pipeline.xadd(f"{self._key}:refused", fields, maxlen=SET_ASIDE, approximate=True)
        pipeline.xack(self._key, GROUP, *ids)
        pipeline.xdel(self._key, *ids)
        await pipeline.execute()

    async def heal(self) -> None:
        """Sees to it that every entry will be taken, and forgets copies that died."""
        await self._forget_dead()
        first = _entries(await self._client.xrange(self._key, count=1) or ())
        if not first:
            return
        number = first[0].id
        groups = await self._client.xinfo_groups(self._key)
        ours = [_text(each["last-delivered-id"]) for each in groups if _text(each["name"]) == GROUP]
        if not ours or _order(number) > _order(ours[0]):
            return
        pending = await self._client.xpending_range(self._key, GROUP, number, number, 1)
        if not pending and await self._client.xrange(self._key, number, number):
            # Taken once, done never, and with nobody: whoever had it was forgotten, or a failover lost that.
            await self._client.xgroup_setid(self._key, GROUP, "0")

    async def leave(self) -> None:
        """Forgets this copy, which has done all that it has taken."""
        if not await self._client.xpending_range(self._key, GROUP, "-", "+", 1, consumername=self._name):
            await self._client.xgroup_delconsumer(self._key, GROUP, self._name)

    def _weighed(self, taken: list[Raw]) -> list[Raw]:
        """The same changes; how many entries are taken the next time depends on how much they were."""
        size = sum(len(raw.fields.get(b"record", b"")) for raw in taken)
        is_much = size > AT_ONCE_BYTES or len(taken) > AT_ONCE[1]
        self._most = max(self._most // 2, AT_ONCE[0]) if is_much else min(2 * self._most, AT_ONCE[1])
        return taken

    async def _send(self, *command: Any) -> Any:
        return await self._client.execute_command(*command)  # type: ignore[no-untyped-call]

    async def _forget_dead(self) -> None:
        for each in await self._client.xinfo_consumers(self._key, GROUP):
            if not each["pending"] and each["idle"] > DEAD_MS:
                await self._client.xgroup_delconsumer(self._key, GROUP, each["name"])

    async def _make_group(self) -> None:
        try:
            await self._client.xgroup_create(self._key, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):  # another copy was faster
                raise


def _as_it_is(response: Any, **kwargs: Any) -> Any:  # noqa: ARG001
    """The library would take every entry apart; it is done here at a quarter of the cost."""
    return response


def _of_one_stream(answer: Any) -> Sequence[Any]:
    """The entries of an answer about one stream, in either version of the protocol."""
    if not answer:
        return ()
    found: Sequence[Any] = next(iter(answer.values())) if isinstance(answer, dict) else answer[0][1]
    return found


def _entries(rows: Sequence[Any]) -> list[Raw]:
    """The changes of some entries. One that somebody deleted has no fields, or is nothing at all."""
    return [
        Raw(_text(row[0]), fields, place)
        for row in rows
        if row is not None and row[0] is not None
        for place, fields in enumerate(apart(_fields(row[1])))
    ]


def _fields(found: Any) -> Mapping[bytes, bytes]:
    if isinstance(found, Mapping):
        return found
    return dict(zip(found[::2], found[1::2], strict=True)) if found else {}


def _order(number: str) -> tuple[int, int]:
    first, _, second = number.partition("-")
    return int(first), int(second)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
