"""Differences of errors.yaml: conditions, failures of upstream calls, reasons, and log events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.language.errors import Condition
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import (
    format_change,
    format_value,
    iter_added,
    iter_changed_keys,
    iter_common,
    list_gained,
)
from codegen.source.spec import Spec

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@kind("condition.added", "There is one more condition.", Verdict.COMPATIBLE)
def find_condition_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, row in iter_added(old.errors.conditions, new.errors.conditions):
        yield SpecChange(
            name, f"condition {name} is added ({_format_answer(row)})", _get_condition_path(name)
        )


@kind("condition.removed", "A condition is gone.", Verdict.BEHAVIOUR)
def find_condition_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.errors.conditions, old.errors.conditions):
        yield SpecChange(name, f"condition {name} is removed", _get_condition_path(name))


@kind("condition.changed", "A condition has another code, role or retry advice.", Verdict.BEHAVIOUR)
def find_condition_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.errors.conditions, new.errors.conditions):
        for word, was, now in iter_changed_keys(before, after, "message", "soft"):
            verdict = Verdict.COMPATIBLE if word == "reserved" and not now else None
            text = f"{name} {word} {format_change(was, now)}"
            yield SpecChange(f"{name}.{word}", text, (*_get_condition_path(name), word), verdict=verdict)


@kind(
    "condition.soft",
    "A soft condition has other response fields, or a condition turns soft or hard.",
    Verdict.BEHAVIOUR,
)
def find_condition_soft(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.errors.conditions, new.errors.conditions):
        was, now = (
            format_value(each.soft) if each.soft is not None else "an error" for each in (before, after)
        )
        if was != now:
            yield SpecChange(
                name, f"{name} is reported by {format_change(was, now)}", (*_get_condition_path(name), "soft")
            )


@kind("condition.message", "A condition has another message.", Verdict.COMPATIBLE)
def find_condition_message(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.errors.conditions, new.errors.conditions):
        if before.message != after.message:
            text = f"{name} message '{format_value(before.message)}' -> '{format_value(after.message)}'"
            yield SpecChange(name, text, (*_get_condition_path(name), "message"))


@kind(
    "upstream.changed",
    "The failure of an upstream call is mapped to another code.",
    Verdict.BEHAVIOUR,
)
def find_upstream_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for word, was, now in iter_changed_keys(old.errors.upstream, new.errors.upstream):
        path = ("errors", "upstream", word)
        for code in list_gained(was, now):
            yield SpecChange(f"{word} {code}", f"upstream {word} gains {code}", path)
        for code in list_gained(now, was):
            yield SpecChange(f"{word} {code}", f"upstream {word} loses {code}", path)


@kind("reason.added", "There is one more reason for an end.", Verdict.COMPATIBLE)
def find_reason_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(old.errors.reasons, new.errors.reasons):
        yield SpecChange(name, f"reason {name} is added", ("errors", "reasons", name))


@kind("reason.removed", "A reason for an end is no longer given.", Verdict.BEHAVIOUR)
def find_reason_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.errors.reasons, old.errors.reasons):
        yield SpecChange(name, f"reason {name} is removed", ("errors", "reasons", name))


@kind("event.added", "There is one more event for the log.", Verdict.COMPATIBLE)
def find_event_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, event in iter_added(old.errors.events, new.errors.events):
        yield SpecChange(name, f"event {name} is added at {event.level}", ("errors", "events", name))


@kind("event.removed", "An event is no longer logged.", Verdict.BEHAVIOUR)
def find_event_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.errors.events, old.errors.events):
        yield SpecChange(name, f"event {name} is removed", ("errors", "events", name))


@kind(
    "event.changed",
    "An event is logged at another level; one that is seen less may be missed.",
    Verdict.BEHAVIOUR,
)
def find_event_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.errors.events, new.errors.events):
        for word, was, now in iter_changed_keys(before, after):
            verdict = Verdict.COMPATIBLE if _is_louder(word, was, now) else None
            text = f"event {name} {word} {format_change(was, now)}"
            yield SpecChange(f"{name}.{word}", text, ("errors", "events", name, word), verdict=verdict)


def _get_condition_path(name: str) -> Path:
    return ("errors", "conditions", name)


def _format_answer(row: Condition) -> str:
    return f"soft: {format_value(row.soft)}" if row.soft is not None else f"{row.grpc}, HTTP {row.http}"


def _is_louder(word: str, was: Any, now: Any) -> bool:
    return LEVELS.index(now) > LEVELS.index(was) if word == "level" else bool(now)
