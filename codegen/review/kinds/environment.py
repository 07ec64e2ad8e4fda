"""Differences of environment.yaml: variables, their bounds, who reads them, and rules between them."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.environment import Variable, VariableRule
from codegen.review.difference import Found, Verdict, kind
from codegen.review.form import Path, rule_name
from codegen.review.kinds.pairs import added, fell, gained, kept, rose, same, shown, turn, words
from codegen.source.spec import Spec

EVERYONE = ("everyone",)


@kind(
    "variable.added",
    "There is one more variable; one that must be set breaks deployments.",
    Verdict.COMPATIBLE,
)
def variable_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, row in added(old.environment.variables, new.environment.variables):
        verdict = Verdict.CONFIGURATION if row.required else None
        yield Found(name, f"variable {name} is added, {_needed(row)}", _variable(name), verdict=verdict)


@kind("variable.removed", "A variable is gone.", Verdict.CONFIGURATION)
def variable_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(new.environment.variables, old.environment.variables):
        yield Found(name, f"variable {name} is removed", _variable(name))


@kind("variable.default", "A variable has another default.", Verdict.BEHAVIOUR)
def variable_default(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _variables(old, new):
        was, now = _default(before), _default(after)
        if not same(was, now):
            verdict = Verdict.CONFIGURATION if now is None else Verdict.COMPATIBLE if was is None else None
            paths = (*_variable(name), "default"), (*_variable(name), "default_from")
            yield Found(name, f"{name} default {turn(was, now)}", *paths, verdict=verdict)


@kind(
    "variable.required",
    "A variable must be set that could be left out, or the other way.",
    Verdict.CONFIGURATION,
)
def variable_required(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _variables(old, new):
        if before.required != after.required:
            verdict = None if after.required else Verdict.COMPATIBLE
            text = f"{name} {'must now' if after.required else 'need no longer'} be set"
            yield Found(name, text, (*_variable(name), "required"), verdict=verdict)


@kind("variable.bound", "A variable has another bound.", Verdict.CONFIGURATION)
def variable_bound(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _variables(old, new):
        for word, was, now in words(before, after):
            if word in ("min", "max"):
                looser = fell(was, now) if word == "min" else rose(was, now)
                verdict = Verdict.COMPATIBLE if now is None or looser else None
                path = (*_variable(name), word)
                yield Found(f"{name} {word}", f"{name} {word} {turn(was, now)}", path, verdict=verdict)


@kind("variable.choice", "A variable allows other values.", Verdict.CONFIGURATION)
def variable_choice(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _variables(old, new):
        path = (*_variable(name), "choices")
        for choice in gained(before.choices, after.choices):
            text = f"{name} can also be {choice}"
            yield Found(f"{name} {choice}", text, path, verdict=Verdict.COMPATIBLE)
        for choice in gained(after.choices, before.choices):
            yield Found(f"{name} {choice}", f"{name} can no longer be {choice}", path)


@kind(
    "variable.changed",
    "A variable has another type, unit, role or pattern, or is clamped otherwise.",
    Verdict.CONFIGURATION,
)
def variable_changed(old: Spec, new: Spec) -> Iterator[Found]:
    told = ("default", "default_from", "required", "min", "max", "choices", "read_by", "also_named")
    for name, before, after in _variables(old, new):
        for word, was, now in words(before, after, *told):
            verdict = Verdict.BEHAVIOUR if word == "clamp" else None
            path = (*_variable(name), word)
            yield Found(f"{name} {word}", f"{name} {word} {turn(was, now)}", path, verdict=verdict)


@kind(
    "variable.name", "A variable goes by other names, or by the same in another order.", Verdict.CONFIGURATION
)
def variable_name(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _variables(old, new):
        was, now = before.also_named, after.also_named
        if was != now:
            harmless = now[: len(was)] == was
            verdict = Verdict.COMPATIBLE if harmless else None
            path = (*_variable(name), "also_named")
            yield Found(name, f"{name} is also named {turn(was, now)}", path, verdict=verdict)


@kind(
    "variable.prefix",
    "Names of variables that begin so are no longer, or now, nobody else's.",
    Verdict.COMPATIBLE,
)
def variable_prefix(old: Spec, new: Spec) -> Iterator[Found]:
    was, now = old.environment.prefix, new.environment.prefix
    if was != now:
        yield Found(now or was or "", f"the prefix of variables {turn(was, now)}", ("environment", "prefix"))


@kind(
    "reader.added",
    "Someone else reads a variable; one that must be set breaks deployments.",
    Verdict.COMPATIBLE,
)
def reader_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _variables(old, new):
        for reader in gained(_readers(before), _readers(after)):
            verdict = Verdict.CONFIGURATION if after.required else None
            path = (*_variable(name), "read_by")
            yield Found(f"{name} {reader}", f"{name} is now read by {reader}", path, verdict=verdict)


@kind("reader.removed", "Someone no longer reads a variable.", Verdict.CONFIGURATION)
def reader_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in _variables(old, new):
        for reader in gained(_readers(after), _readers(before)):
            verdict = Verdict.COMPATIBLE if _readers(after) == EVERYONE else None
            path = (*_variable(name), "read_by")
            yield Found(f"{name} {reader}", f"{name} is no longer read by {reader}", path, verdict=verdict)


@kind("variable_rule.added", "Something more must hold between variables.", Verdict.CONFIGURATION)
def variable_rule_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(_rules(old), _rules(new)):
        yield Found(name, f"the rule '{name}' is added", ("environment", "rules", name))


@kind("variable_rule.removed", "Something need no longer hold between variables.", Verdict.COMPATIBLE)
def variable_rule_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, _ in added(_rules(new), _rules(old)):
        yield Found(name, f"the rule '{name}' is removed", ("environment", "rules", name))


def _variable(name: str) -> Path:
    return ("environment", "variables", name)


def _variables(old: Spec, new: Spec) -> Iterator[tuple[str, Variable, Variable]]:
    yield from kept(old.environment.variables, new.environment.variables)


def _rules(spec: Spec) -> dict[str, VariableRule]:
    return {rule_name(rule): rule for rule in spec.environment.rules}


def _readers(row: Variable) -> tuple[str, ...]:
    return EVERYONE if row.read_by == "everyone" else tuple(row.read_by)


def _default(row: Variable) -> bool | float | str | None:
    return f"the {row.default_from}" if row.default_from else row.default


def _needed(row: Variable) -> str:
    if row.required:
        return "and must be set"
    return "and may be left out" if _default(row) is None else f"default {shown(_default(row))}"
