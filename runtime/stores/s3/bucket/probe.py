"""Probes of a store: conditional writes, also concurrent ones, versions, and the order of listings."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple

from runtime.stores.s3.bucket.bucket_settings import TRIALS, is_versioned
from runtime.stores.s3.client.errors import NotMatched, ObjectError
from runtime.stores.s3.client.objects import Objects, WrittenObject

RACERS = 8
FEW_RACERS = 2
"""Racers at a start, twice. Some stores delay each loser of a race by a second, one after the other."""
_CLOCK_S = 2.0


class ProbeResult(NamedTuple):
    """The name of a probe, whether it succeeded, and what was seen."""

    name: str
    ok: bool
    reason: str


class _Trial:
    """The objects of one run of probes, under a prefix of their own."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.folder = f"{TRIALS}{uuid.uuid4()}/"
        self.used: list[str] = []

    def key(self, name: str) -> str:
        self.used.append(self.folder + name)
        return self.used[-1]

    async def tidy(self) -> None:
        for key in self.used:
            await self.objects.delete(key)


async def examine(
    objects: Objects, *, most_skew_s: float = _CLOCK_S, racers: int = RACERS
) -> list[ProbeResult]:
    """Run all probes of a store; an unreachable store ends them."""
    trial = _Trial(objects)
    try:
        await objects.page(trial.folder, most=1)
    except ObjectError as error:
        return [ProbeResult("store", False, str(error))]
    steps: Sequence[tuple[str, Callable[[_Trial], Awaitable[str]]]] = (
        ("conditional create", _creates_once),
        ("conditional update", _replaces_once),
        ("race", partial(_has_one_winner, racers=racers)),
        ("versions", _keeps_versions),
        ("listing", _lists_in_order),
        ("conditional delete", _deletes_under_condition),
    )
    found = [ProbeResult("store", True, f"the bucket {objects.location.bucket} answers")]
    for name, step in steps:
        try:
            found.append(ProbeResult(name, True, await step(trial)))
        except _ProbeFailure as problem:
            found.append(ProbeResult(name, False, str(problem)))
        except ObjectError as error:
            found.append(ProbeResult(name, False, str(error) or type(error).__name__))
    await trial.tidy()
    return [*found, _clock(objects, most_skew_s)]


async def find_write_problem(objects: Objects) -> str | None:
    """Return why conditional writes of the store cannot be relied on, in a sentence; None where they can.

    Raises ObjectError where the store is unavailable.
    """
    trial = _Trial(objects)
    try:
        await _creates_once(trial)
        await _replaces_once(trial)
        # Concurrently, because some stores delay the loser of a race by a second.
        races = [race(trial, FEW_RACERS) for race in (_one_creates, _one_replaces) for _ in range(2)]
        for ended in await asyncio.gather(*races, return_exceptions=True):
            if ended is not None:
                raise ended
    except _ProbeFailure as problem:
        return f"The store ignores the conditions of writes, so work would be done twice: {problem}."
    finally:
        await trial.tidy()
    return None


class _ProbeFailure(Exception):
    """A probe failed."""


async def _creates_once(trial: _Trial) -> str:
    key = trial.key("create")
    await trial.objects.create(key, b"1")
    try:
        await trial.objects.create(key, b"2")
    except NotMatched:
        return "If-None-Match: an object that is there stays"
    raise _ProbeFailure("If-None-Match is ignored: an object that was there was overwritten")


async def _replaces_once(trial: _Trial) -> str:
    key = trial.key("replace")
    first = await trial.objects.create(key, b"1")
    second = await trial.objects.replace(key, b"2", first.etag)
    if second.etag == first.etag:
        raise _ProbeFailure("an object that has changed has the ETag that it had before")
    try:
        await trial.objects.replace(key, b"3", first.etag)
    except NotMatched:
        return "If-Match: an object that has changed stays"
    raise _ProbeFailure("If-Match is ignored: an object that had changed was overwritten")


async def _has_one_winner(trial: _Trial, racers: int) -> str:
    await _one_creates(trial, racers)
    await _one_replaces(trial, racers)
    return f"of {racers} at once exactly one succeeds"


async def _one_creates(trial: _Trial, racers: int) -> None:
    key = trial.key(f"race/{len(trial.used)}")
    made = await _winners([trial.objects.create(key, b"%d" % number) for number in range(racers)])
    if made != 1:
        raise _ProbeFailure(f"of {racers} that created an object at once {made} succeeded")
    if await trial.objects.get(key) is None:
        raise _ProbeFailure("an object cannot be read that was just created")


async def _one_replaces(trial: _Trial, racers: int) -> None:
    key = trial.key(f"race/{len(trial.used)}")
    there = await trial.objects.create(key, b"first")
    writers = [trial.objects.replace(key, b"next %d" % number, there.etag) for number in range(racers)]
    if (changed := await _winners(writers)) != 1:
        raise _ProbeFailure(f"of {racers} that replaced an object at once {changed} succeeded")


async def _winners(writers: Sequence[Awaitable[WrittenObject]]) -> int:
    done = await asyncio.gather(*writers, return_exceptions=True)
    for each in done:
        if isinstance(each, BaseException) and not isinstance(each, NotMatched):
            raise each
    return sum(isinstance(each, WrittenObject) for each in done)


async def _keeps_versions(trial: _Trial) -> str:
    if not await is_versioned(trial.objects):
        raise _ProbeFailure("the bucket keeps no versions, so there is no history; switch its versioning on")
    key = trial.key("versions")
    written = [await trial.objects.put(key, b"1"), await trial.objects.put(key, b"2")]
    seen = [each.version async for each in trial.objects.versions(key)]
    if seen != [each.version for each in reversed(written)]:
        raise _ProbeFailure("not every version of an object is listed, newest first")
    return "overwritten objects are kept"


async def _lists_in_order(trial: _Trial) -> str:
    names = [trial.key(f"list/{number:03}") for number in range(5)]
    for name in reversed(names):
        await trial.objects.put(name, b"")
    seen: list[str] = []
    token: str | None = None
    while True:
        page = await trial.objects.page(f"{trial.folder}list/", token=token, most=2)
        seen += [each.key for each in page.entries]
        if (token := page.token) is None:
            break
    after = await trial.objects.page(f"{trial.folder}list/", after=names[2], most=5)
    if seen != names or [each.key for each in after.entries] != names[3:]:
        raise _ProbeFailure("a listing is not in the order of its keys, or lacks some")
    return "in the order of the keys, page by page"


async def _deletes_under_condition(trial: _Trial) -> str:
    key = trial.key("delete")
    etag = (await trial.objects.create(key, b"1")).etag
    if await trial.objects.delete(key, f'"{uuid.uuid4().hex}"'):
        return "not offered; deletions are plain, and an index may wait for its repair"
    if not await trial.objects.delete(key, etag):
        raise _ProbeFailure("an object is not deleted although its ETag is the given one")
    return "If-Match: an object that has changed stays"


def _clock(objects: Objects, most_s: float) -> ProbeResult:
    offset = objects.clock_offset_s
    if offset is None:
        return ProbeResult("clock", False, "the store does not say what time it is")
    ahead = "behind" if offset > 0 else "ahead of"
    seen = f"this machine is {abs(offset):.1f} s {ahead} the store, and {most_s:g} s are allowed"
    return ProbeResult("clock", abs(offset) <= most_s, seen)
