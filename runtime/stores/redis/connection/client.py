"""The connections of a process to one Redis: tried again for a moment, and scripts load themselves."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from time import monotonic
from typing import Any, NamedTuple

import redis.asyncio
from redis.exceptions import RedisError

from runtime.stores.redis.connection.address import parsed
from runtime.stores.redis.connection.pipelined_connection import (
    Asking,
    Command,
    PipelinedConnection,
    RedisConnectionLost,
    ReplyError,
    connected,
)

PATIENCE_S = 1.0
"""For how long a server that is away, loading or not the master any more is asked again."""
CONNECT_S = 1.0
_PAUSES_S = (0.01, 0.2)
"""The least and the greatest pause between two attempts."""

_AGAIN = (
    "LOADING",
    "READONLY",
    "MASTERDOWN",
    "MOVED",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "NOREPLICAS",
    "BUSY",
    "UNBLOCKED",
)
"""The server cannot do it now and has done nothing; another moment, or another server, can."""
_OTHER_SERVER = ("READONLY", "MASTERDOWN", "MOVED")
_AWAY = ("MISCONF", "NOAUTH", "WRONGPASS", "NOPERM", "ERR max number of clients")
_CODE = re.compile(
    r"(?:^|[\s-])(OOM|" + "|".join((*_AGAIN, "MISCONF", "NOAUTH", "WRONGPASS", "NOPERM")) + r")\s"
)

NOT_CONNECTED = (OSError, TimeoutError, RedisConnectionLost, RedisError, ReplyError)
"""What an attempt to connect can fail with."""


def compute_digest(text: str) -> str:
    """Compute the name that the server has for a script."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class ScriptCall(NamedTuple):
    """One call: the script, how many keys it has, and the keys and arguments."""

    text: str
    digest: str
    keys: int
    handed: Sequence[Any]
    reads: bool = False
    """Whether it changes nothing."""

    def by_digest(self) -> tuple[Any, ...]:
        """Return the command that takes the script from the cache of the server."""
        return ("EVALSHA", self.digest, self.keys, *self.handed)

    def in_full(self) -> tuple[Any, ...]:
        """Return the command that brings the script along."""
        return ("EVAL", self.text, self.keys, *self.handed)


class RedisUnavailable(Exception):
    """The server does not answer. `unknown` says that what was asked may have been carried out."""

    def __init__(self, why: str, *, unknown: bool = False) -> None:
        super().__init__(why)
        self.unknown = unknown


class Full(Exception):
    """The server has no memory left for anything new."""


class RedisClient:
    """One Redis as a process sees it."""

    waits_on_the_spot = False
    """Whether whoever asks has the answer before anybody else can ask."""

    def __init__(self, url: str, *, name: str = "charter") -> None:
        self._url = url
        self._address = parsed(url)
        self._name = name
        self._lines: dict[str, Asking] = {}
        self._connecting: dict[str, asyncio.Task[PipelinedConnection]] = {}
        self._closed_until = 0.0
        self._clients: list[redis.asyncio.Redis] = []

    async def run(
        self,
        commands: Sequence[Command],
        *,
        repeatable: bool = False,
        line: str = "main",
    ) -> list[Any]:
        """Sends commands together and gives their answers; a refusal is among them as a ReplyError.

        What may have been carried out is sent again only where that does no harm.
        """
        now, pause = monotonic(), _PAUSES_S[0]
        until = 0.0 if now < self._closed_until else now + PATIENCE_S
        while True:
            try:
                known = self._lines.get(line)
                if known is None or not known.is_open:
                    known = await self._line(line)
                answers = await known.ask(commands)
            except RedisConnectionLost as lost:
                failed = RedisUnavailable(str(lost), unknown=lost.sent)
                is_worth_it = repeatable or not lost.sent
            except RedisUnavailable as error:
                failed, is_worth_it = error, True
            else:
                waiting = self._not_now(answers, line)
                if waiting is None:
                    self._closed_until = 0.0
                    return answers
                # Only where nothing at all was done may everything be sent again.
                refused = sum(isinstance(each, ReplyError) for each in answers) == len(answers)
                failed, is_worth_it = RedisUnavailable(waiting), repeatable or refused
            if not is_worth_it or monotonic() + pause >= until:
                self._closed_until = monotonic() + _PAUSES_S[1]
                raise failed
            await self._rest(pause)
            pause = min(2 * pause, _PAUSES_S[1])

    async def evaluate(
        self,
        calls: Sequence[ScriptCall],
        *others: Command,
        repeatable: bool = False,
        line: str = "main",
    ) -> list[Any]:
        """Runs scripts, and other commands after them, in one exchange."""
        commands = [*(each.by_digest() for each in calls), *others]
        answers = await self.run(commands, repeatable=repeatable, line=line)
        missing = [place for place, each in enumerate(answers) if _is_missing(each)]
        for place in range(missing[0], len(calls)) if missing else ():
            if place in missing or calls[place].reads:
                # The whole text brings a script back for everybody; whoever has looked meanwhile looks again.
                (answers[place],) = await self.run([calls[place].in_full()], repeatable=repeatable, line=line)
        if missing and others:
            # They are about what the scripts did: a WAIT counts the writes before it.
            answers[len(calls) :] = await self.run(others, repeatable=repeatable, line=line)
        return _given(answers)

    async def evaluate_one(self, ask: Callable[[bool], ScriptCall]) -> Any:
        """Runs a script by itself, and another call of it where the answer was lost: `ask(True)`."""
        try:
            return await self._evaluate_once(ask(False), repeatable=False)
        except RedisUnavailable as lost:
            if not lost.unknown:
                raise
        return await self._evaluate_again(ask(True))

    async def _evaluate_again(self, call: ScriptCall) -> Any:
        # The server is not known to be away, only to have lost an answer.
        self._closed_until = 0.0
        return await self._evaluate_once(call, repeatable=True)

    async def _evaluate_once(self, call: ScriptCall, *, repeatable: bool) -> Any:
        (answer,) = await self.run((call.by_digest(),), repeatable=repeatable)
        if _is_missing(answer):
            (answer,) = await self.run((call.in_full(),), repeatable=repeatable)
        if isinstance(answer, ReplyError):
            raise refusal(answer)
        return answer

    async def ask(self, *commands: Command) -> list[Any]:
        """Answers to commands that change nothing, or do no harm when they are repeated."""
        return _given(await self.run(commands, repeatable=True))

    async def ask_at_once(self, *commands: Command) -> list[Any]:
        """The same, all of one moment: no change of anybody else comes in between."""
        (answers,) = await self.evaluate([_make_reading_call(commands)], repeatable=True)
        return list(answers)

    async def listen(self, told: Callable[[Any], None]) -> PipelinedConnection:
        """A connection of its own that tells whatever the server says of its own accord."""
        return await self._connect(told)

    def client(self) -> redis.asyncio.Redis:
        """A client of the library, for what has no need to be fast. It is closed with the server."""
        address = self._address
        options: dict[str, Any] = {"username": address.user, "password": address.password}
        made: redis.asyncio.Redis
        if address.sentinels:
            made = address.asked(CONNECT_S).master_for(
                address.service, db=address.database, ssl=bool(address.tls), **options
            )
        else:
            made = redis.asyncio.Redis.from_url(self._url)
        self._clients.append(made)
        return made

    async def close(self) -> None:
        """Closes all connections."""
        self._closed_until = float("inf")
        for task in self._connecting.values():
            task.cancel()
        for line in self._lines.values():
            line.close()
        for client in self._clients:
            await client.aclose()
        self._lines.clear()

    async def _rest(self, seconds: float) -> None:
        """Lets some time pass."""
        await asyncio.sleep(seconds)

    async def _line(self, name: str) -> Asking:
        """A new connection under a name."""
        task = self._connecting.get(name)
        if task is None:
            task = self._connecting[name] = asyncio.create_task(self._connect())
            task.add_done_callback(lambda _: self._connecting.pop(name, None))
        # Whoever asked first may go away; the others still want the connection.
        line = await asyncio.shield(task)
        self._lines[name] = line
        return line

    async def _connect(self, told: Callable[[Any], None] | None = None) -> PipelinedConnection:
        try:
            async with asyncio.timeout(CONNECT_S):
                return await connected(self._address, self._name, told)
        except NOT_CONNECTED as error:
            raise RedisUnavailable(f"{type(error).__name__}: {error}") from None

    def _not_now(self, answers: Sequence[Any], name: str) -> str | None:
        """Why the server cannot do it at present, if that is what it says."""
        for answer in answers:
            if isinstance(answer, ReplyError) and (code := code_of(answer)) in _AGAIN:
                if code == "MOVED":
                    self._follow(str(answer))
                if code in _OTHER_SERVER and name in self._lines:
                    self._lines.pop(name).close()
                return str(code)
        return None

    def _follow(self, answer: str) -> None:
        """Goes to the node of a cluster that has our keys; their prefix keeps them together."""
        host, _, port = answer.rpartition(" ")[2].rpartition(":")
        self._address = replace(self._address, host=host or self._address.host, port=int(port))


def _make_reading_call(commands: Sequence[Sequence[Any]]) -> ScriptCall:
    """Make a call that reads what commands read, the key of each of which is its second word."""
    keys = [command[1] for command in commands if len(command) > 1]
    words = [word for command in commands for word in (len(command), *command)]
    return ScriptCall(*_read_reader(), len(keys), [*keys, *words], reads=True)


@cache
def _read_reader() -> tuple[str, str]:
    text = files("runtime.stores.redis").joinpath("lua", "read_at_once.lua").read_text(encoding="utf-8")
    return text, compute_digest(text)


def _given(answers: list[Any]) -> list[Any]:
    """The answers, none of which is a refusal."""
    for answer in answers:
        if isinstance(answer, ReplyError):
            raise refusal(answer)
    return answers


def _is_missing(answer: Any) -> bool:
    return isinstance(answer, ReplyError) and str(answer).startswith("NOSCRIPT")


def code_of(error: ReplyError) -> str | None:
    """The word by which an answer says why; an error inside a script has it in the middle."""
    match = _CODE.search(str(error))
    return match[1] if match else None


def refusal(error: ReplyError) -> Exception:
    """What an answer means to whoever asked."""
    code = code_of(error)
    if code == "OOM":
        return Full("no memory is left")
    if code in _AGAIN or code in _AWAY or str(error).startswith(_AWAY):
        return RedisUnavailable(str(error).partition(" ")[0])
    return error
