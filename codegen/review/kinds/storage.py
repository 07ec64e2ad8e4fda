"""Differences of storage.yaml: names and layouts of entities in each engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel

from codegen.language.storage import StorageFile
from codegen.language.storage.layouts import ENGINES
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import (
    format_change,
    iter_added,
    iter_changed_keys,
    iter_changed_meanings,
    iter_common,
)
from codegen.source.spec import Spec

_VARIABLE_KEYS = frozenset(
    {"url", "path", "prefix", "expires", "replicas", "endpoint", "bucket", "region", "unversioned", "skew"}
)
"""Keys that name variables; with the same value of the new one no data is lost."""
_RUNTIME_KEYS = frozenset({"trace", "wake_up", "by", "polls", "repairs", "retires"})
"""Keys of which nothing is stored."""
_OWN_KINDS = {"redis": ("outbox",), "s3": ("indexes",)}
"""Keys of an entity that have kinds of their own."""


class _Sections(NamedTuple):
    """The names of one engine in both specs; where a spec has none, they are the defaults."""

    engine: str
    before: Any
    after: Any


@kind("storage.place", "An engine finds its server, its file or its bucket otherwise.", Verdict.CONFIGURATION)
def find_storage_place(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for engine, before, after in _iter_sections(old, new):
        for word, was, now in iter_changed_keys(before, after, "entities"):
            verdict = None if word in _VARIABLE_KEYS else Verdict.STORED
            text = f"{engine} {word}: {format_change(was, now)}"
            yield SpecChange(f"{engine}.{word}", text, ("storage", engine, word), verdict=verdict)


@kind("names.added", "Entities have names of their own in an engine instead of its defaults.", Verdict.STORED)
def find_names_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for engine, before, after in _iter_sections(old, new):
        for name, _ in iter_added(before.entities, after.entities):
            verdict = None if name in old.lifecycle.entities else Verdict.COMPATIBLE
            text = f"{name} has names of its own in {engine}"
            path = ("storage", engine, "entities", name)
            yield SpecChange(f"{engine} {name}", text, path, verdict=verdict)


@kind("names.removed", "Entities have the default names of an engine instead of their own.", Verdict.STORED)
def find_names_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for engine, before, after in _iter_sections(old, new):
        for name, _ in iter_added(after.entities, before.entities):
            text = f"{name} has no names of its own in {engine}"
            yield SpecChange(f"{engine} {name}", text, ("storage", engine, "entities", name))


@kind("names.changed", "An engine keeps an entity under another name or in another layout.", Verdict.STORED)
def find_names_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for engine, name, before, after, path in _iter_names(old, new):
        for word, was, now in iter_changed_meanings(before, after, *_OWN_KINDS.get(engine, ())):
            text = f"{name} in {engine}, {word}: {format_change(was, now)}"
            yield SpecChange(f"{engine} {name}.{word}", text, (*path, word), verdict=_judge(word))


@kind("outbox.changed", "The outbox of entities in Redis has another destination.", Verdict.STORED)
def find_outbox_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for engine, name, before, after, path in _iter_names(old, new):
        if engine != "redis":
            continue
        was, now, here = before.outbox, after.outbox, (*path, "outbox")
        if was is None or now is None:
            if was is not now:
                verdict = Verdict.COMPATIBLE if now else Verdict.BEHAVIOUR
                yield SpecChange(name, f"{name} outbox {format_change(was, now)}", here, verdict=verdict)
            continue
        for word, left, right in iter_changed_keys(was, now):
            text = f"{name} outbox {word} {format_change(left, right)}"
            yield SpecChange(f"{name}.{word}", text, (*here, word), verdict=_judge(word))


def _judge(word: str) -> Verdict:
    if word in _VARIABLE_KEYS:
        return Verdict.CONFIGURATION
    return Verdict.BEHAVIOUR if word in _RUNTIME_KEYS else Verdict.STORED


def _iter_sections(old: Spec, new: Spec) -> Iterator[_Sections]:
    for engine in ENGINES:
        before, after = getattr(old.storage, engine), getattr(new.storage, engine)
        if before is not None or after is not None:
            yield _Sections(engine, before or _make_default(engine), after or _make_default(engine))


def _make_default(engine: str) -> BaseModel:
    """Make the section of an engine that is nothing but defaults."""
    section: type[BaseModel] = get_args(StorageFile.model_fields[engine].annotation)[0]
    return section()


def _iter_names(old: Spec, new: Spec) -> Iterator[tuple[str, str, Any, Any, Path]]:
    """Iterate over the entities that have names in an engine in both specs."""
    for engine, before, after in _iter_sections(old, new):
        for name, was, now in iter_common(before.entities, after.entities):
            yield engine, name, was, now, ("storage", engine, "entities", name)
