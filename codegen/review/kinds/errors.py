"""Differences of errors.yaml: conditions, what happens to failures of others, and events for the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.language.errors import Condition
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import added, gained, kept, shown, turn, words
from codegen.source.spec import Spec

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@kind("condition.added", "There is one more condition.", Verdict.COMPATIBLE)
def condition_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, row in added(old.errors.conditions, new.errors.conditions):
        yield Found(name, f"condition {name} is added ({_answer(row)})", _condition(name))


@kind("condition.removed", "A condition is gone.", Verdict.BEHAVIOUR)
def condition_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.errors.conditions, old.errors.conditions):
        yield Found(name, f"condition {name} is removed", _condition(name))


@kind("condition.changed", "A condition has another code, role or retry advice.", Verdict.BEHAVIOUR)
def condition_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.errors.conditions, new.errors.conditions):
        for word, was, now in words(before, after, "message", "soft"):
            verdict = Verdict.COMPATIBLE if word == "reserved" and not now else None
            text = f"{name} {word} {turn(was, now)}"
            yield Found(f"{name}.{word}", text, (*_condition(name), word), verdict=verdict)


@kind(
    "condition.soft",
    "A soft condition is told by other fields, or a condition turns soft or hard.",
    Verdict.BEHAVIOUR,
)
def condition_soft(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.errors.conditions, new.errors.conditions):
        was, now = (shown(each.soft) if each.soft is not None else "an error" for each in (before, after))
        if was != now:
            yield Found(name, f"{name} is told by {turn(was, now)}", (*_condition(name), "soft"))


@kind("condition.message", "A condition is put in other words to the caller.", Verdict.COMPATIBLE)
def condition_message(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.errors.conditions, new.errors.conditions):
        if before.message != after.message:
            text = f"{name} message '{shown(before.message)}' -> '{shown(after.message)}'"
            yield Found(name, text, (*_condition(name), "message"))


@kind(
    "upstream.changed",
    "The failure of another component looks otherwise to our own caller.",
    Verdict.BEHAVIOUR,
)
def upstream_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for word, was, now in words(old.errors.upstream, new.errors.upstream):
        path = ("errors", "upstream", word)
        for code in gained(was, now):
            yield Found(f"{word} {code}", f"upstream {word} gains {code}", path)
        for code in gained(now, was):
            yield Found(f"{word} {code}", f"upstream {word} loses {code}", path)


@kind("reason.added", "There is one more reason for an end.", Verdict.COMPATIBLE)
def reason_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(old.errors.reasons, new.errors.reasons):
        yield Found(name, f"reason {name} is added", ("errors", "reasons", name))


@kind("reason.removed", "A reason for an end is no longer given.", Verdict.BEHAVIOUR)
def reason_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.errors.reasons, old.errors.reasons):
        yield Found(name, f"reason {name} is removed", ("errors", "reasons", name))


@kind("event.added", "There is one more event for the log.", Verdict.COMPATIBLE)
def event_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, event in added(old.errors.events, new.errors.events):
        yield Found(name, f"event {name} is added at {event.level}", ("errors", "events", name))


@kind("event.removed", "An event is no longer logged.", Verdict.BEHAVIOUR)
def event_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.errors.events, old.errors.events):
        yield Found(name, f"event {name} is removed", ("errors", "events", name))


@kind(
    "event.changed",
    "An event is logged at another level; one that is seen less may be missed.",
    Verdict.BEHAVIOUR,
)
def event_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.errors.events, new.errors.events):
        for word, was, now in words(before, after):
            verdict = Verdict.COMPATIBLE if _louder(word, was, now) else None
            text = f"event {name} {word} {turn(was, now)}"
            yield Found(f"{name}.{word}", text, ("errors", "events", name, word), verdict=verdict)


def _condition(name: str) -> Path:
    return ("errors", "conditions", name)


def _answer(row: Condition) -> str:
    return f"soft: {shown(row.soft)}" if row.soft is not None else f"{row.grpc}, HTTP {row.http}"


def _louder(word: str, was: Any, now: Any) -> bool:
    return LEVELS.index(now) > LEVELS.index(was) if word == "level" else bool(now)
