"""Differences of the rules of fields: validation and normalization of requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from codegen.language.types import FieldRules, ItemRules, MessageField
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.members import iter_message_pairs
from codegen.review.kinds.pairs import format_change, iter_changed_keys, iter_common
from codegen.source.spec import Spec

Direction = Literal["tightened", "loosened", "changed"]

FLAGS = frozenset(
    {"non_empty", "uuid", "uuid4", "defined", "specified", "required", "storable", "json_object"}
)
LOWER_BOUNDS = frozenset({"min", "min_length"})
UPPER_BOUNDS = frozenset({"max", "max_length", "max_bytes", "max_items"})
DEMANDS = frozenset({"pattern", "must_be", "sha256_of", "one_of"})
"""Rules that reject a request. The others (default, clamp, cut, pages) normalize it."""


@kind("rule.tightened", "A field rejects values that it accepted before.", Verdict.BEHAVIOUR)
def find_rule_tightened(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _iter_rule_changes(old, new, "tightened")


@kind("rule.loosened", "A field accepts values that it rejected before.", Verdict.COMPATIBLE)
def find_rule_loosened(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _iter_rule_changes(old, new, "loosened")


@kind(
    "rule.changed",
    "A field has another validation or normalization of its value.",
    Verdict.BEHAVIOUR,
)
def find_rule_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    yield from _iter_rule_changes(old, new, "changed")


def _iter_rule_changes(old: Spec, new: Spec, wanted: Direction) -> Iterator[SpecChange]:
    for pair in iter_message_pairs(old, new):
        for name, was, now in iter_common(pair.before, pair.after):
            if isinstance(was, MessageField) and isinstance(now, MessageField):
                subject, at = f"{pair.name}.{name}", (*pair.new_at, "fields", name, "rules")
                for rule, before, after, path in _iter_changed_rules(was.rules, now.rules, at):
                    if (
                        _find_direction(rule, _resolve_limit(old, before), _resolve_limit(new, after))
                        == wanted
                    ):
                        text = f"{subject} rule {rule} {_format_rule_change(rule, before, after)}"
                        yield SpecChange(f"{subject} {rule}", text, path)


def _iter_changed_rules(
    before: ItemRules, after: ItemRules, at: Path
) -> Iterator[tuple[str, Any, Any, Path]]:
    for word, was, now in iter_changed_keys(before, after, "items"):
        yield word, was, now, (*at, word)
    if isinstance(before, FieldRules) and isinstance(after, FieldRules) and before.items != after.items:
        was_items, now_items = before.items or ItemRules(), after.items or ItemRules()
        for word, was, now, _ in _iter_changed_rules(was_items, now_items, at):
            yield f"items.{word}", was, now, (*at, "items")
        if was_items == now_items:
            yield "items", before.items, after.items, (*at, "items")


def _find_direction(name: str, before: Any, after: Any) -> Direction:
    rule = name.removeprefix("items.")
    if rule in FLAGS:
        return "tightened" if after else "loosened"
    if (rule == "required_when" and {} in (before, after)) or (
        rule == "required_unless" and () in (before, after)
    ):
        return "tightened" if after else "loosened"
    if rule == "required_unless":
        return _compare_sets(set(before), set(after))
    if rule in LOWER_BOUNDS | UPPER_BOUNDS | DEMANDS and None in (before, after):
        return "tightened" if before is None else "loosened"
    if rule == "one_of":
        return _compare_sets(set(before), set(after))
    if rule in LOWER_BOUNDS:
        return "tightened" if after > before else "loosened"
    if rule in UPPER_BOUNDS and isinstance(before, int) and isinstance(after, int):
        return "tightened" if after < before else "loosened"
    return "changed"


def _compare_sets(before: set[str], after: set[str]) -> Direction:
    if after <= before:
        return "tightened"
    return "loosened" if after >= before else "changed"


def _resolve_limit(spec: Spec, value: Any) -> Any:
    """Resolve a bound to the value of the limit that it names."""
    named = spec.system.policies.limits.get(value) if isinstance(value, str) else None
    return named.value if named else value


def _format_rule_change(rule: str, before: Any, after: Any) -> str:
    if rule.removeprefix("items.") in FLAGS:
        return "is added" if after else "is removed"
    return format_change(before, after)
