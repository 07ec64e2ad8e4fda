"""Differences of lifecycle.yaml in entities that a bucket keeps, and in the page that shows them."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.s3_persistence import KeptInS3
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.lifecycle.transitions import edges, entity_path
from codegen.review.kinds.pairs import added, kept, meant, turn, words
from codegen.source.spec import Spec

_SETTINGS = frozenset({"endpoint", "bucket", "region", "prefix", "unversioned", "skew"})
"""Words that name variables; with the same value of the new one nothing is lost."""
_OF_THE_RUN = frozenset({"polls", "repairs", "retires"})
"""Words of which nothing is stored."""


@kind(
    "bucket.layout",
    "A bucket keeps an entity under another key, in another form, or is looked through otherwise.",
    Verdict.STORED,
)
def bucket_layout(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        changed = {word for word, _, _ in meant(before, after, "indexes")}
        for word, was, now in words(before, after, "indexes"):
            if word in changed:
                verdict = Verdict.CONFIGURATION if word in _SETTINGS else Verdict.STORED
                verdict = Verdict.BEHAVIOUR if word in _OF_THE_RUN else verdict
                text = f"{name} in its bucket, {word}: {turn(was, now)}"
                yield Found(f"{name}.{word}", text, (*path, word), verdict=verdict)


@kind(
    "hint.added", "There are more hints at entities, which what was stored before lacks.", Verdict.BEHAVIOUR
)
def hint_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        for index, _ in added(before.indexes, after.indexes):
            text = f"hints at {name}s in {index} are added; what was stored before has none"
            yield Found(f"{name}.{index}", text, (*path, "indexes", index))


@kind(
    "hint.removed", "Hints at entities are gone, and those that there are stay for ever.", Verdict.BEHAVIOUR
)
def hint_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        for index, _ in added(after.indexes, before.indexes):
            yield Found(
                f"{name}.{index}", f"hints at {name}s in {index} are removed", (*path, "indexes", index)
            )


@kind("hint.changed", "Hints at entities have another key, or are of other entities.", Verdict.STORED)
def hint_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after, path in _both(old, new):
        for index, was, now in kept(before.indexes, after.indexes):
            for word, left, right in meant(was, now):
                text = f"hints at {name}s in {index}, {word}: {turn(left, right)}"
                yield Found(f"{name}.{index}.{word}", text, (*path, "indexes", index, word))


@kind("edge.where", "A transition asks for other values of fields.", Verdict.BEHAVIOUR)
def edge_where(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        was, now = getattr(edge.before, "where", {}), getattr(edge.after, "where", {})
        for field in sorted({*was, *now}):
            if was.get(field) != now.get(field):
                text = f"{edge.shown} where {field}: {turn(was.get(field), now.get(field))}"
                verdict = None if field in now else Verdict.WIDENS
                yield Found(f"{edge.name} {field}", text, (*edge.path, "where", field), verdict=verdict)


@kind("edge.by_name", "A transition is taken by its name only, or no longer so.", Verdict.BEHAVIOUR)
def edge_by_name(old: Spec, new: Spec) -> Iterator[Found]:
    for edge in edges(old, new):
        was, now = getattr(edge.before, "by_name", False), getattr(edge.after, "by_name", False)
        if was != now:
            said = "by its name only" if now else "by its ends"
            yield Found(edge.name, f"{edge.shown} is now taken {said}", (*edge.path, "by_name"))


@kind(
    "page.changed", "A page in a browser acts as someone else, or watches something else.", Verdict.BEHAVIOUR
)
def page_changed(old: Spec, new: Spec) -> Iterator[Found]:
    before, after = old.system.page, new.system.page
    if before is None or after is None:
        if before is not after:
            verdict = Verdict.COMPATIBLE if after else None
            yield Found("page", f"the page {turn(before, after)}", ("system", "page"), verdict=verdict)
        return
    for word, was, now in words(before, after):
        yield Found(word, f"the page, {word}: {turn(was, now)}", ("system", "page", word))


def _both(old: Spec, new: Spec) -> Iterator[tuple[str, KeptInS3, KeptInS3, Path]]:
    """The entities that a bucket keeps before and after."""
    for name, before, after in kept(old.lifecycle.entities, new.lifecycle.entities):
        if before.in_s3 and after.in_s3:
            yield name, before.in_s3, after.in_s3, (*entity_path(name), "kept_in")
