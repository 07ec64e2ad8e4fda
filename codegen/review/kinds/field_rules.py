"""Differences of the rules of fields: what a request must satisfy, and how it is put in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from codegen.language.types import FieldRules, ItemRules, MessageField
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.members import messages
from codegen.review.kinds.pairs import kept, turn, words
from codegen.source.spec import Spec

Turn = Literal["tightened", "loosened", "changed"]

FLAGS = frozenset(
    {"non_empty", "uuid", "uuid4", "defined", "specified", "required", "storable", "json_object"}
)
LOWER_BOUNDS = frozenset({"min", "min_length"})
UPPER_BOUNDS = frozenset({"max", "max_length", "max_bytes", "max_items"})
DEMANDS = frozenset({"pattern", "must_be", "sha256_of", "one_of"})
"""Rules that refuse a request. The others (default, clamp, cut, pages) put it in order."""


@kind("rule.tightened", "A field refuses what it took before.", Verdict.BEHAVIOUR)
def rule_tightened(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _turned(old, new, "tightened")


@kind("rule.loosened", "A field takes what it refused before.", Verdict.COMPATIBLE)
def rule_loosened(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _turned(old, new, "loosened")


@kind(
    "rule.changed",
    "A field asks for something else, or puts its value in order otherwise.",
    Verdict.BEHAVIOUR,
)
def rule_changed(old: Spec, new: Spec) -> Iterator[Found]:
    yield from _turned(old, new, "changed")


def _turned(old: Spec, new: Spec, wanted: Turn) -> Iterator[Found]:
    for held in messages(old, new):
        for name, was, now in kept(held.before, held.after):
            if isinstance(was, MessageField) and isinstance(now, MessageField):
                subject, at = f"{held.name}.{name}", (*held.new_at, "fields", name, "rules")
                for rule, before, after, path in _rules(was.rules, now.rules, at):
                    if _direction(rule, _size(old, before), _size(new, after)) == wanted:
                        text = f"{subject} rule {rule} {_told(rule, before, after)}"
                        yield Found(f"{subject} {rule}", text, path)


def _rules(before: ItemRules, after: ItemRules, at: Path) -> Iterator[tuple[str, Any, Any, Path]]:
    for word, was, now in words(before, after, "items"):
        yield word, was, now, (*at, word)
    if isinstance(before, FieldRules) and isinstance(after, FieldRules) and before.items != after.items:
        was_items, now_items = before.items or ItemRules(), after.items or ItemRules()
        for word, was, now, _ in _rules(was_items, now_items, at):
            yield f"items.{word}", was, now, (*at, "items")
        if was_items == now_items:
            yield "items", before.items, after.items, (*at, "items")


def _direction(name: str, before: Any, after: Any) -> Turn:
    rule = name.removeprefix("items.")
    if rule in FLAGS:
        return "tightened" if after else "loosened"
    if (rule == "required_when" and {} in (before, after)) or (
        rule == "required_unless" and () in (before, after)
    ):
        return "tightened" if after else "loosened"
    if rule == "required_unless":
        return _narrowed(set(before), set(after))
    if rule in LOWER_BOUNDS | UPPER_BOUNDS | DEMANDS and None in (before, after):
        return "tightened" if before is None else "loosened"
    if rule == "one_of":
        return _narrowed(set(before), set(after))
    if rule in LOWER_BOUNDS:
        return "tightened" if after > before else "loosened"
    if rule in UPPER_BOUNDS and isinstance(before, int) and isinstance(after, int):
        return "tightened" if after < before else "loosened"
    return "changed"


def _narrowed(before: set[str], after: set[str]) -> Turn:
    if after <= before:
        return "tightened"
    return "loosened" if after >= before else "changed"


def _size(spec: Spec, value: Any) -> Any:
    """The value of the limit that a bound names."""
    named = spec.system.policies.limits.get(value) if isinstance(value, str) else None
    return named.value if named else value


def _told(rule: str, before: Any, after: Any) -> str:
    if rule.removeprefix("items.") in FLAGS:
        return "is added" if after else "is removed"
    return turn(before, after)
