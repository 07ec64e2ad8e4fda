"""The outbox stream of changes, read by all copies of the writer through one consumer group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from redis.asyncio import Redis
from redis.exceptions import ResponseError

from runtime.stores.history.entries import split_changes

GROUP = "history"
AT_ONCE = (10, 500)
"""Least and most entries of one read."""
AT_ONCE_BYTES = 8 * 1024 * 1024
"""Reads get smaller while their records together exceed this, or their changes the most."""
BLOCK_MS = 1000
"""Longest wait of one read for the next entry."""
ABANDONED_MS = 5_000
"""Idle time after which pending entries of a copy are claimed by another one."""
DEAD_MS = 3_600_000
"""Idle time after which a consumer without pending entries is removed."""
SET_ASIDE = 10_000
"""Most rejected entries that are kept for inspection."""


class Raw(NamedTuple):
    """One change of an entry of the stream, which may have several."""

    id: str
    fields: Mapping[bytes, bytes]
    position: int = 0
    """Its position in the entry."""

    @property
    def name(self) -> str:
        """A name that is unique in the stream."""
        return f"{self.id}/{self.position}"


class OutboxStream:
    """The consumer of one copy. An entry stays in the stream until it is acknowledged."""

    def __init__(self, client: Redis, key: str, name: str) -> None:
        self._client = client
        for command in ("XREADGROUP", "XAUTOCLAIM"):
            client.set_response_callback(command, _keep_response)
        self._key = key
        self._name = name
        self._next = "0-0"
        self._most = AT_ONCE[0]

    async def read(self, *, unfinished: bool) -> list[Raw]:
        """Read new changes with a short wait; or, without a wait, the own pending ones again."""
        command: list[Any] = ["XREADGROUP", "GROUP", GROUP, self._name, "COUNT", self._most]
        if not unfinished:
            command += ["BLOCK", BLOCK_MS]
        try:
            response = await self._send(*command, "STREAMS", self._key, "0" if unfinished else ">")
        except ResponseError as error:
            if not str(error).startswith("NOGROUP"):
                raise
            await self._make_group()
            return []
        return self._adapt_size(_parse_entries(_parse_stream(response)))

    async def claim_abandoned(self) -> list[Raw]:
        """Claim the pending changes of other copies that have been idle for long."""
        consumer = (self._key, GROUP, self._name)
        response = await self._send("XAUTOCLAIM", *consumer, ABANDONED_MS, self._next, "COUNT", self._most)
        self._next = _decode_text(response[0])
        return self._adapt_size(_parse_entries(response[1]))

    async def acknowledge(self, ids: Sequence[str], refused: Sequence[tuple[Raw, str]]) -> None:
        """Acknowledge and delete entries; rejected changes move to a stream of their own, atomically."""
        pipeline = self._client.pipeline(transaction=True)
        for raw, why in refused:
            fields: dict[Any, Any] = {**raw.fields, "refused": why, "id": raw.id}
            pipeline.xadd(f"{self._key}:refused", fields, maxlen=SET_ASIDE, approximate=True)
        pipeline.xack(self._key, GROUP, *ids)
        pipeline.xdel(self._key, *ids)
        await pipeline.execute()

    async def repair(self) -> None:
        """Make every entry readable again, and remove the consumers of dead copies."""
        await self._remove_dead()
        first = _parse_entries(await self._client.xrange(self._key, count=1) or ())
        if not first:
            return
        number = first[0].id
        groups = await self._client.xinfo_groups(self._key)
        ours = [
            _decode_text(each["last-delivered-id"]) for each in groups if _decode_text(each["name"]) == GROUP
        ]
        if not ours or _parse_id(number) > _parse_id(ours[0]):
            return
        pending = await self._client.xpending_range(self._key, GROUP, number, number, 1)
        if not pending and await self._client.xrange(self._key, number, number):
            # Delivered, not acknowledged, and not pending: its consumer was removed, or a failover lost that.
            await self._client.xgroup_setid(self._key, GROUP, "0")

    async def leave(self) -> None:
        """Remove the consumer of this copy, if it has no pending entries."""
        if not await self._client.xpending_range(self._key, GROUP, "-", "+", 1, consumername=self._name):
            await self._client.xgroup_delconsumer(self._key, GROUP, self._name)

    def _adapt_size(self, changes: list[Raw]) -> list[Raw]:
        """Adapt the number of entries of the next read to the size of these changes, and return them."""
        size = sum(len(raw.fields.get(b"record", b"")) for raw in changes)
        is_much = size > AT_ONCE_BYTES or len(changes) > AT_ONCE[1]
        self._most = max(self._most // 2, AT_ONCE[0]) if is_much else min(2 * self._most, AT_ONCE[1])
        return changes

    async def _send(self, *command: Any) -> Any:
        return await self._client.execute_command(*command)  # type: ignore[no-untyped-call]

    async def _remove_dead(self) -> None:
        for each in await self._client.xinfo_consumers(self._key, GROUP):
            if not each["pending"] and each["idle"] > DEAD_MS:
                await self._client.xgroup_delconsumer(self._key, GROUP, each["name"])

    async def _make_group(self) -> None:
        try:
            await self._client.xgroup_create(self._key, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):  # another copy was first
                raise


def _keep_response(response: Any, **kwargs: Any) -> Any:  # noqa: ARG001
    """Skip the parser of the library, which costs four times as much as the one here."""
    return response


def _parse_stream(response: Any) -> Sequence[Any]:
    """Return the entries of a response about one stream, in RESP2 or RESP3."""
    if not response:
        return ()
    found: Sequence[Any] = next(iter(response.values())) if isinstance(response, dict) else response[0][1]
    return found


def _parse_entries(rows: Sequence[Any]) -> list[Raw]:
    """Parse the changes of some entries. A deleted one has no fields, or is missing."""
    return [
        Raw(_decode_text(row[0]), fields, position)
        for row in rows
        if row is not None and row[0] is not None
        for position, fields in enumerate(split_changes(_parse_fields(row[1])))
    ]


def _parse_fields(found: Any) -> Mapping[bytes, bytes]:
    if isinstance(found, Mapping):
        return found
    return dict(zip(found[::2], found[1::2], strict=True)) if found else {}


def _parse_id(number: str) -> tuple[int, int]:
    first, _, second = number.partition("-")
    return int(first), int(second)


def _decode_text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
