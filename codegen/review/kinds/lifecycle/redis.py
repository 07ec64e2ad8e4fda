"""Differences of lifecycle.yaml in entities that Redis keeps: their keys, indexes and history."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.persistence import KeptInRedis
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.lifecycle.transitions import edges, entity_path
from codegen.review.kinds.pairs import added, gained, kept, meant, shown, turn, words
from codegen.source.spec import Spec

_SETTINGS = frozenset({"url", "prefix", "expires", "replicas"})
"""Words that name variables; with the same value of the new one nothing is lost."""
_OF_THE_RUN = frozenset({"trace", "wakes", "by"})
"""Words of which nothing is stored."""


@kind(
    "redis.keys",
    "Redis keeps an entity under another key, for another time, or counts it elsewhere.",
    Verdict.STORED,
)
def redis_keys(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        for word, was, now in words(before, after, "unique", "indexes", "outbox"):
            verdict = Verdict.CONFIGURATION if word in _SETTINGS else Verdict.STORED
            verdict = Verdict.BEHAVIOUR if word in _OF_THE_RUN else verdict
            text = f"{name} in redis, {word}: {turn(was, now)}"
            yield Found(f"{name}.{word}", text, (*path, word), verdict=verdict)


@kind("index.added", "There is one more index, in which what was stored before is not.", Verdict.STORED)
def index_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        for index, _ in added(before.indexes, after.indexes):
            text = f"the index {index} of {name} is added; what was stored before is not in it"
            yield Found(f"{name}.{index}", text, (*path, "indexes", index))


@kind("index.removed", "An index is gone, and what was in it is never removed.", Verdict.BEHAVIOUR)
def index_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        for index, _ in added(after.indexes, before.indexes):
            yield Found(
                f"{name}.{index}", f"the index {index} of {name} is removed", (*path, "indexes", index)
            )


@kind("index.changed", "An index has another key, order or content.", Verdict.STORED)
def index_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        for index, was, now in kept(before.indexes, after.indexes):
            for word, left, right in meant(was, now):
                text = f"the index {index} of {name} {word}: {turn(left, right)}"
                yield Found(f"{name}.{index}.{word}", text, (*path, "indexes", index, word))


@kind(
    "unique.changed", "Something else is unique among entities in Redis, or for how long.", Verdict.BEHAVIOUR
)
def unique_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        was, now = before.unique, after.unique
        for field in sorted({*was, *now}):
            if was.get(field) != now.get(field):
                text = f"{name} unique {field}: {turn(was.get(field), now.get(field))}"
                yield Found(f"{name}.{field}", text, (*path, "unique", field))


@kind("outbox.changed", "The history of entities in Redis goes elsewhere.", Verdict.STORED)
def outbox_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        was, now, here = before.outbox, after.outbox, (*path, "outbox")
        if was is None or now is None:
            if was is not now:
                verdict = Verdict.COMPATIBLE if now else Verdict.BEHAVIOUR
                yield Found(name, f"{name} outbox {turn(was, now)}", here, verdict=verdict)
            continue
        for word, left, right in words(was, now):
            verdict = Verdict.CONFIGURATION if word in _SETTINGS else Verdict.STORED
            verdict = Verdict.BEHAVIOUR if word in _OF_THE_RUN else verdict
            text = f"{name} outbox {word} {turn(left, right)}"
            yield Found(f"{name}.{word}", text, (*here, word), verdict=verdict)


@kind("shift.added", "An entity can be changed in one more way that leaves its state.", Verdict.WIDENS)
def shift_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for shift, row in added(before.shifts, after.shifts):
            text = f"{shift} of {name} in {shown(row.in_)} is added for {shown(row.by)}"
            yield Found(f"{name}.{shift}", text, (*entity_path(name), "shifts", shift))


@kind(
    "shift.removed", "An entity can no longer be changed in a way that leaves its state.", Verdict.BEHAVIOUR
)
def shift_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for shift, _ in added(after.shifts, before.shifts):
            text = f"{shift} of {name} is removed"
            yield Found(f"{name}.{shift}", text, (*entity_path(name), "shifts", shift))


@kind(
    "shift.changed",
    "A change that leaves the state applies elsewhere, or writes something else.",
    Verdict.BEHAVIOUR,
)
def shift_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for shift, was, now in kept(before.shifts, after.shifts):
            path, subject = (*entity_path(name), "shifts", shift), f"{name}.{shift}"
            for word, left, right in meant(was, now, "by", "in_"):
                text = f"{shift} of {name} {word}: {turn(left, right)}"
                yield Found(f"{subject}.{word}", text, (*path, word))
            for word, left, right in (("by", was.by, now.by), ("in", was.in_, now.in_)):
                for each in gained(left, right):
                    text = f"{shift} of {name} {word} gains {each}"
                    yield Found(f"{subject}.{word} {each}", text, (*path, word), verdict=Verdict.WIDENS)
                for each in gained(right, left):
                    yield Found(
                        f"{subject}.{word} {each}", f"{shift} of {name} {word} loses {each}", (*path, word)
                    )


@kind("edge.copies", "Fields of an entity become what others are, or do so no longer.", Verdict.BEHAVIOUR)
def edge_copies(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _entries(old, new, "copies")


@kind("edge.fills", "Something else stands in for a field that was not given.", Verdict.BEHAVIOUR)
def edge_fills(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _entries(old, new, "fills")


@kind("edge.grows", "A number of an entity grows otherwise.", Verdict.BEHAVIOUR)
def edge_grows(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _entries(old, new, "grows")


@kind("edge.clears", "A transition clears other fields.", Verdict.BEHAVIOUR)
def edge_clears(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        was, now = getattr(edge.before, "clears", ()), getattr(edge.after, "clears", ())
        path = (*edge.path, "clears")
        for field in gained(was, now):
            yield Found(f"{edge.name} {field}", f"{edge.shown} clears {field}", path)
        for field in gained(now, was):
            yield Found(f"{edge.name} {field}", f"{edge.shown} no longer clears {field}", path)


@kind("edge.limits", "An entity is refused, kept or told of on another condition.", Verdict.BEHAVIOUR)
def edge_limits(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        for word in ("refuses", "unless_holding", "reason"):
            was, now = getattr(edge.before, word, None), getattr(edge.after, word, None)
            if was != now:
                text = f"{edge.shown} {word.replace('_', ' ')}: {turn(was, now)}"
                yield Found(f"{edge.name}.{word}", text, (*edge.path, word))


def _entries(old: Spec, new: Spec, word: str) -> Iterator[Found]:
    for edge in edges(old, new):
        was, now = getattr(edge.before, word, {}), getattr(edge.after, word, {})
        for name in sorted({*was, *now}):
            if was.get(name) != now.get(name):
                text = f"{edge.shown} {word} {name}: {turn(was.get(name), now.get(name))}"
                yield Found(f"{edge.name} {name}", text, (*edge.path, word, name))


def _both(old: Spec, new: Spec) -> Iterator[tuple[str, KeptInRedis, KeptInRedis, Path]]:
    """The entities that Redis keeps before and after."""
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        if before.in_redis and after.in_redis:
            yield name, before.in_redis, after.in_redis, (*entity_path(name), "kept_in")
