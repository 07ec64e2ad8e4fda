"""Differences of environment.yaml: variables, their bounds, their readers, and rules between them."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.language.environment import Variable, VariableRule
from codegen.review.difference import SpecChange, Verdict, kind
from codegen.review.form import Path, format_rule_name
from codegen.review.kinds.pairs import (
    format_change,
    format_value,
    is_higher,
    is_lower,
    is_same,
    iter_added,
    iter_changed_keys,
    iter_common,
    list_gained,
)
from codegen.source.spec import Spec

EVERYONE = ("everyone",)


@kind(
    "variable.added",
    "There is one more variable; one that must be set breaks deployments.",
    Verdict.COMPATIBLE,
)
def find_variable_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, row in iter_added(old.environment.variables, new.environment.variables):
        need, verdict = _format_need(row), None
        if row.required:
            is_read = _is_read_by_old_deployments(old, new, name)
            verdict = Verdict.CONFIGURATION if is_read else None
            need += "" if is_read else " where a deployment is added"
        yield SpecChange(name, f"variable {name} is added, {need}", _get_variable_path(name), verdict=verdict)


def _is_read_by_old_deployments(old: Spec, new: Spec, variable: str) -> bool:
    """Whether a deployment that was there before reads a new variable."""
    return any(
        variable in new.variables_of(deployment, node)
        for name, deployment, node, _ in new.nodes()
        if name in old.deployments.root
    )


@kind("variable.removed", "A variable is gone.", Verdict.CONFIGURATION)
def find_variable_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(new.environment.variables, old.environment.variables):
        yield SpecChange(name, f"variable {name} is removed", _get_variable_path(name))


@kind("variable.default", "A variable has another default.", Verdict.BEHAVIOUR)
def find_variable_default(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_variables(old, new):
        was, now = _get_default(before), _get_default(after)
        if not is_same(was, now):
            verdict = Verdict.CONFIGURATION if now is None else Verdict.COMPATIBLE if was is None else None
            paths = (*_get_variable_path(name), "default"), (*_get_variable_path(name), "default_from")
            yield SpecChange(name, f"{name} default {format_change(was, now)}", *paths, verdict=verdict)


@kind(
    "variable.required",
    "A variable becomes required, or no longer is.",
    Verdict.CONFIGURATION,
)
def find_variable_required(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_variables(old, new):
        if before.required != after.required:
            verdict = None if after.required else Verdict.COMPATIBLE
            text = f"{name} {'must now' if after.required else 'need no longer'} be set"
            yield SpecChange(name, text, (*_get_variable_path(name), "required"), verdict=verdict)


@kind("variable.bound", "A variable has another bound.", Verdict.CONFIGURATION)
def find_variable_bound(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_variables(old, new):
        for word, was, now in iter_changed_keys(before, after):
            if word in ("min", "max"):
                looser = is_lower(was, now) if word == "min" else is_higher(was, now)
                verdict = Verdict.COMPATIBLE if now is None or looser else None
                path = (*_get_variable_path(name), word)
                yield SpecChange(
                    f"{name} {word}", f"{name} {word} {format_change(was, now)}", path, verdict=verdict
                )


@kind("variable.choice", "A variable allows other values.", Verdict.CONFIGURATION)
def find_variable_choice(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_variables(old, new):
        path = (*_get_variable_path(name), "choices")
        for choice in list_gained(before.choices, after.choices):
            text = f"{name} can also be {choice}"
            yield SpecChange(f"{name} {choice}", text, path, verdict=Verdict.COMPATIBLE)
        for choice in list_gained(after.choices, before.choices):
            yield SpecChange(f"{name} {choice}", f"{name} can no longer be {choice}", path)


@kind(
    "variable.changed",
    "A variable has another type, unit, role or pattern, or is clamped otherwise.",
    Verdict.CONFIGURATION,
)
def find_variable_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    with_kinds = ("default", "default_from", "required", "min", "max", "choices", "read_by", "also_named")
    for name, before, after in _iter_variables(old, new):
        for word, was, now in iter_changed_keys(before, after, *with_kinds):
            verdict = Verdict.BEHAVIOUR if word == "clamp" else None
            path = (*_get_variable_path(name), word)
            yield SpecChange(
                f"{name} {word}", f"{name} {word} {format_change(was, now)}", path, verdict=verdict
            )


@kind(
    "variable.name", "A variable goes by other names, or by the same in another order.", Verdict.CONFIGURATION
)
def find_variable_name(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_variables(old, new):
        was, now = before.also_named, after.also_named
        if was != now:
            harmless = now[: len(was)] == was
            verdict = Verdict.COMPATIBLE if harmless else None
            path = (*_get_variable_path(name), "also_named")
            yield SpecChange(name, f"{name} is also named {format_change(was, now)}", path, verdict=verdict)


@kind(
    "variable.prefix",
    "Names of variables have another reserved prefix.",
    Verdict.COMPATIBLE,
)
def find_variable_prefix(old: Spec, new: Spec) -> Iterator[SpecChange]:
    was, now = old.environment.prefix, new.environment.prefix
    if was != now:
        yield SpecChange(
            now or was or "", f"the prefix of variables {format_change(was, now)}", ("environment", "prefix")
        )


@kind(
    "reader.added",
    "A variable has one more reader; one that must be set breaks deployments.",
    Verdict.COMPATIBLE,
)
def find_reader_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_variables(old, new):
        for reader in list_gained(_list_readers(before), _list_readers(after)):
            verdict = Verdict.CONFIGURATION if after.required else None
            path = (*_get_variable_path(name), "read_by")
            yield SpecChange(f"{name} {reader}", f"{name} is now read by {reader}", path, verdict=verdict)


@kind("reader.removed", "A variable has lost a reader.", Verdict.CONFIGURATION)
def find_reader_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in _iter_variables(old, new):
        for reader in list_gained(_list_readers(after), _list_readers(before)):
            verdict = Verdict.COMPATIBLE if _list_readers(after) == EVERYONE else None
            path = (*_get_variable_path(name), "read_by")
            yield SpecChange(
                f"{name} {reader}", f"{name} is no longer read by {reader}", path, verdict=verdict
            )


@kind("variable_rule.added", "There is one more rule between variables.", Verdict.CONFIGURATION)
def find_variable_rule_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(_map_rules(old), _map_rules(new)):
        yield SpecChange(name, f"the rule '{name}' is added", ("environment", "rules", name))


@kind("variable_rule.removed", "A rule between variables is gone.", Verdict.COMPATIBLE)
def find_variable_rule_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, _ in iter_added(_map_rules(new), _map_rules(old)):
        yield SpecChange(name, f"the rule '{name}' is removed", ("environment", "rules", name))


def _get_variable_path(name: str) -> Path:
    return ("environment", "variables", name)


def _iter_variables(old: Spec, new: Spec) -> Iterator[tuple[str, Variable, Variable]]:
    yield from iter_common(old.environment.variables, new.environment.variables)


def _map_rules(spec: Spec) -> dict[str, VariableRule]:
    return {format_rule_name(rule): rule for rule in spec.environment.rules}


def _list_readers(row: Variable) -> tuple[str, ...]:
    return EVERYONE if row.read_by == "everyone" else tuple(row.read_by)


def _get_default(row: Variable) -> bool | float | str | None:
    return f"the {row.default_from}" if row.default_from else row.default


def _format_need(row: Variable) -> str:
    if row.required:
        return "and must be set"
    return (
        "and may be left out" if _get_default(row) is None else f"default {format_value(_get_default(row))}"
    )
