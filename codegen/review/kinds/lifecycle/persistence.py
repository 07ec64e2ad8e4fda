"""Differences of lifecycle.yaml in how entities are kept, leased, shown and driven by the clock."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.lifecycle.transitions import edges, entity_path
from codegen.review.kinds.pairs import gained, kept, meant, shown, turn
from codegen.source.spec import Spec


@kind("holder.added", "One more component applies the transitions of an entity.", Verdict.WIDENS)
def holder_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for holder in gained(before.shared_with, after.shared_with):
            path = (*entity_path(name), "shared_with")
            yield Found(f"{name} {holder}", f"{name} is now shared with {holder}", path)


@kind("holder.removed", "A component no longer applies the transitions of an entity.", Verdict.BEHAVIOUR)
def holder_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        for holder in gained(after.shared_with, before.shared_with):
            path = (*entity_path(name), "shared_with")
            yield Found(f"{name} {holder}", f"{name} is no longer shared with {holder}", path)


@kind(
    "entity.kept", "An entity is kept elsewhere, or something else is unique among them.", Verdict.BEHAVIOUR
)
def entity_kept(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        was, now, path = before.kept_in, after.kept_in, (*entity_path(name), "kept_in")
        if was and now and was.store != now.store:
            text = f"{name} is kept in {turn(was.store, now.store)}"
            yield Found(name, text, path, verdict=Verdict.STORED)
        elif not ((before.in_redis and after.in_redis) or (before.in_s3 and after.in_s3)):
            # What both keep in Redis or in a bucket has kinds of its own.
            yield from _part(name, was, now, path, "is kept in")


@kind("entity.lease", "An entity is leased otherwise.", Verdict.BEHAVIOUR)
def entity_lease(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _parts(old, new, "lease", "lease")


@kind("entity.shown", "Outsiders are told something else of a state.", Verdict.BEHAVIOUR)
def entity_shown(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        path = (*entity_path(name), "shown")
        if before.shown is None or after.shown is None:
            if before.shown is not after.shown:
                yield Found(name, f"{name} is shown as {turn(before.shown, after.shown)}", path)
            continue
        if before.shown.enum != after.shown.enum:
            text = f"{name} is shown as a {turn(before.shown.enum, after.shown.enum)}"
            yield Found(name, text, (*path, "enum"))
        was, now = before.shown.as_, after.shown.as_
        for state in sorted({*was, *now}):
            if was.get(state) != now.get(state):
                text = f"{name} in {state} is shown as {turn(was.get(state), now.get(state))}"
                yield Found(f"{name}.{state}", text, (*path, "as", state))


@kind("edge.counts", "A transition counts something else.", Verdict.BEHAVIOUR)
def edge_counts(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _edge_words(old, new, "counts")


@kind("edge.waits", "An entity waits otherwise after a transition.", Verdict.BEHAVIOUR)
def edge_waits(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _edge_words(old, new, "waits")


@kind("edge.gives_up", "A transition ends an entity on another condition.", Verdict.BEHAVIOUR)
def edge_gives_up(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _edge_words(old, new, "gives_up")


@kind(
    "edge.due", "The clock drives a transition at other times, or another component does.", Verdict.BEHAVIOUR
)
def edge_due(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _edge_words(old, new, "due")


@kind("edge.also_due", "A second clock drives a transition otherwise.", Verdict.BEHAVIOUR)
def edge_also_due(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _edge_words(old, new, "also_due")


def _parts(old: Spec, new: Spec, word: str, verb: str) -> Iterator[Found]:
    """The words of a part of an entity that came, went or changed."""
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        path = (*entity_path(name), word)
        yield from _part(name, getattr(before, word), getattr(after, word), path, verb)


def _part(name: str, was: object, now: object, path: Path, verb: str) -> Iterator[Found]:
    if isinstance(was, BaseModel) and isinstance(now, BaseModel):
        for part, left, right in meant(was, now):
            yield Found(f"{name}.{part}", f"{name} {verb} {part} {turn(left, right)}", (*path, part))
    elif was is not now:
        yield Found(name, f"{name} {verb} {turn(was, now)}", path)


def _edge_words(old: Spec, new: Spec, word: str) -> Iterator[Found]:
    for edge in edges(old, new):
        was, now = getattr(edge.before, word, None), getattr(edge.after, word, None)
        if was != now:
            text = f"{edge.shown} {word.replace('_', ' ')}: {shown(was)} -> {shown(now)}"
            yield Found(edge.name, text, (*edge.path, word))
