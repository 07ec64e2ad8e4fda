"""Differences in hints at entities in a bucket, conditions of edges, and the page of a system."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.storage.s3 import Layout
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.lifecycle.transitions import iter_edge_pairs
from codegen.review.kinds.pairs import (
    format_change,
    iter_added,
    iter_changed_keys,
    iter_changed_meanings,
    iter_common,
)
from codegen.source.spec import Spec


@kind(
    "hint.added", "There are more hints at entities, which what was stored before lacks.", Verdict.BEHAVIOUR
)
def find_hint_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_bucket_pairs(old, new):
        for index, _ in iter_added(before.indexes, after.indexes):
            text = f"hints at {name}s in {index} are added; what was stored before has none"
            yield SpecChange(f"{name}.{index}", text, (*path, "indexes", index))


@kind(
    "hint.removed", "Hints at entities are gone, and those that there are stay for ever.", Verdict.BEHAVIOUR
)
def find_hint_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_bucket_pairs(old, new):
        for index, _ in iter_added(after.indexes, before.indexes):
            yield SpecChange(
                f"{name}.{index}", f"hints at {name}s in {index} are removed", (*path, "indexes", index)
            )


@kind("hint.changed", "Hints at entities have another key, or are of other entities.", Verdict.STORED)
def find_hint_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after, path in _iter_bucket_pairs(old, new):
        for index, was, now in iter_common(before.indexes, after.indexes):
            for word, left, right in iter_changed_meanings(was, now):
                text = f"hints at {name}s in {index}, {word}: {format_change(left, right)}"
                yield SpecChange(f"{name}.{index}.{word}", text, (*path, "indexes", index, word))


@kind("edge.where", "A transition requires other values of fields.", Verdict.BEHAVIOUR)
def find_edge_where(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, "where", {}), getattr(edge.after, "where", {})
        for field in sorted({*was, *now}):
            if was.get(field) != now.get(field):
                text = f"{edge.label} where {field}: {format_change(was.get(field), now.get(field))}"
                verdict = None if field in now else Verdict.WIDENS
                yield SpecChange(f"{edge.name} {field}", text, (*edge.path, "where", field), verdict=verdict)


@kind("edge.by_name", "A transition is taken by its name only, or no longer so.", Verdict.BEHAVIOUR)
def find_edge_by_name(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for edge in iter_edge_pairs(old, new):
        was, now = getattr(edge.before, "by_name", False), getattr(edge.after, "by_name", False)
        if was != now:
            phrase = "by its name only" if now else "by its ends"
            yield SpecChange(edge.name, f"{edge.label} is now taken {phrase}", (*edge.path, "by_name"))


@kind(
    "page.changed", "A page in a browser acts as someone else, or watches something else.", Verdict.BEHAVIOUR
)
def find_page_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    before, after = old.system.page, new.system.page
    if before is None or after is None:
        if before is not after:
            verdict = Verdict.COMPATIBLE if after else None
            yield SpecChange(
                "page", f"the page {format_change(before, after)}", ("system", "page"), verdict=verdict
            )
        return
    for word, was, now in iter_changed_keys(before, after):
        yield SpecChange(word, f"the page, {word}: {format_change(was, now)}", ("system", "page", word))


def _iter_bucket_pairs(old: Spec, new: Spec) -> Iterator[tuple[str, Layout, Layout, Path]]:
    """Iterate over the layouts of entities in a bucket that both specs have."""
    if old.storage.s3 is not None and new.storage.s3 is not None:
        for name, before, after in iter_common(old.storage.s3.entities, new.storage.s3.entities):
            yield name, before, after, ("storage", "s3", "entities", name)
