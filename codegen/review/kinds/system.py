"""Differences of system.yaml: the name, proto files, policies and the freeze."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from codegen.review.difference import Kind, SpecChange, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import (
    format_change,
    format_value,
    is_higher,
    iter_added,
    iter_changed_keys,
    iter_common,
    list_gained,
)
from codegen.source.spec import Spec

POLICIES: Path = ("system", "policies")
NAMED_POLICIES = ("retry", "calls", "pagination", "limits", "retention")
"""Policies that other files refer to by name."""

HARMLESS_WHEN_RAISED = frozenset({"limits.value", "pagination.max_size", "shutdown.grace_ms"})


@kind("system.name", "The system has another name.", Verdict.WIRE)
def find_system_name(old: Spec, new: Spec) -> Iterator[SpecChange]:
    if old.system.name != new.system.name:
        names = format_change(old.system.name, new.system.name)
        yield SpecChange(new.system.name, f"the system's name {names}", ("system", "name"))


@kind("system.version", "The system has another version.", Verdict.BEHAVIOUR)
def find_system_version(old: Spec, new: Spec) -> Iterator[SpecChange]:
    before, after = old.system.version, new.system.version
    if before != after:
        verdict = Verdict.COMPATIBLE if is_higher(before, after) else None
        yield SpecChange(
            str(after), f"version {format_change(before, after)}", ("system", "version"), verdict=verdict
        )


@kind("system.json", "Messages look otherwise as JSON.", Verdict.WIRE)
def find_system_json(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for word, was, now in iter_changed_keys(old.system.json_, new.system.json_):
        yield SpecChange(word, f"JSON {word} {format_change(was, now)}", ("system", "json", word))


@kind("proto.added", "There is one more proto file.", Verdict.COMPATIBLE)
def find_proto_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, proto in iter_added(old.system.protos, new.system.protos):
        yield SpecChange(name, f"proto file {proto.file} is added", ("system", "protos", name))


@kind("proto.removed", "A proto file is gone.", Verdict.WIRE)
def find_proto_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, proto in iter_added(new.system.protos, old.system.protos):
        yield SpecChange(name, f"proto file {proto.file} is removed", ("system", "protos", name))


@kind("proto.changed", "A proto file has another name or package, or imports others.", Verdict.WIRE)
def find_proto_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name, before, after in iter_common(old.system.protos, new.system.protos):
        for word, was, now in iter_changed_keys(before, after):
            path = ("system", "protos", name, word)
            verdict = Verdict.COMPATIBLE if word == "imports" else None
            yield SpecChange(
                f"{name}.{word}", f"proto {name}: {word} {format_change(was, now)}", path, verdict=verdict
            )


@kind(
    "policy.added",
    "There is one more policy; a new bound on what is kept changes behaviour.",
    Verdict.COMPATIBLE,
)
def find_policy_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for section in NAMED_POLICIES:
        for name, policy in iter_added(_get_policies(old, section), _get_policies(new, section)):
            verdict = Verdict.BEHAVIOUR if section == "retention" else None
            text = f"policy {section}.{name} is added ({format_value(policy)})"
            yield SpecChange(f"{section}.{name}", text, (*POLICIES, section, name), verdict=verdict)


@kind("policy.removed", "A policy is gone.", Verdict.BEHAVIOUR)
def find_policy_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for section in NAMED_POLICIES:
        for name, _ in iter_added(_get_policies(new, section), _get_policies(old, section)):
            verdict = Verdict.COMPATIBLE if section == "retention" else None
            text = f"policy {section}.{name} is removed"
            yield SpecChange(f"{section}.{name}", text, (*POLICIES, section, name), verdict=verdict)


@kind("policy.changed", "A policy says something else.", Verdict.BEHAVIOUR)
def find_policy_changed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for section in NAMED_POLICIES:
        for name, before, after in iter_common(_get_policies(old, section), _get_policies(new, section)):
            yield from _compare_policy(
                f"{section}.{name}", section, before, after, (*POLICIES, section, name)
            )
    for section in ("keepalive", "shutdown"):
        before, after = getattr(old.system.policies, section), getattr(new.system.policies, section)
        yield from _compare_policy(section, section, before, after, (*POLICIES, section))


@kind("log_field.added", "Log lines carry one more field.", Verdict.COMPATIBLE)
def find_log_field_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name in list_gained(old.system.policies.log_fields, new.system.policies.log_fields):
        yield SpecChange(name, f"log lines gain the field {name}", (*POLICIES, "log_fields"))


@kind("log_field.removed", "Log lines lack a field.", Verdict.BEHAVIOUR)
def find_log_field_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
    for name in list_gained(new.system.policies.log_fields, old.system.policies.log_fields):
        yield SpecChange(name, f"log lines lose the field {name}", (*POLICIES, "log_fields"))


@kind("freeze.added", "The design is frozen.", Verdict.COMPATIBLE)
def find_freeze_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
    if new.system.frozen and not old.system.frozen:
        since = new.system.frozen.since
        yield SpecChange(since, f"the design is frozen since {since}", ("system", "frozen"))


@kind("freeze.lifted", "The design is no longer frozen.", Verdict.BEHAVIOUR)
def find_freeze_lifted(old: Spec, new: Spec) -> Iterator[SpecChange]:
    if old.system.frozen and not new.system.frozen:
        since = old.system.frozen.since
        yield SpecChange(since, f"the freeze of {since} is lifted", ("system", "frozen"))


@kind("freeze.since", "The freeze has another date.", Verdict.BEHAVIOUR)
def find_freeze_since(old: Spec, new: Spec) -> Iterator[SpecChange]:
    before, after = old.system.frozen, new.system.frozen
    if before and after and before.since != after.since:
        text = f"the date of the freeze {format_change(before.since, after.since)}"
        yield SpecChange(after.since, text, ("system", "frozen", "since"))


def _make_entry_kinds(name: str, word: str, called: str) -> tuple[Kind, Kind]:
    """Make the two kinds of a list of sentences about the freeze."""

    @kind(f"{name}.added", f"There is one more {called}.", Verdict.COMPATIBLE)
    def find_added(old: Spec, new: Spec) -> Iterator[SpecChange]:
        if old.system.frozen and new.system.frozen:
            for entry in list_gained(getattr(old.system.frozen, word), getattr(new.system.frozen, word)):
                yield SpecChange(entry, f"the {called} '{entry}' is added", ("system", "frozen", word))

    @kind(f"{name}.removed", f"A {called} is gone.", Verdict.BEHAVIOUR)
    def find_removed(old: Spec, new: Spec) -> Iterator[SpecChange]:
        if old.system.frozen and new.system.frozen:
            for entry in list_gained(getattr(new.system.frozen, word), getattr(old.system.frozen, word)):
                yield SpecChange(entry, f"the {called} '{entry}' is removed", ("system", "frozen", word))

    return find_added, find_removed


decision_added, decision_removed = _make_entry_kinds("decision", "decisions", "frozen decision")
gate_added, gate_removed = _make_entry_kinds("gate", "gate", "condition for lifting the freeze")
scope_added, scope_removed = _make_entry_kinds("out_of_scope", "out_of_scope", "limit of the scope")


def _get_policies(spec: Spec, section: str) -> dict[str, BaseModel]:
    found: dict[str, BaseModel] = getattr(spec.system.policies, section)
    return found


def _compare_policy(
    name: str, section: str, before: BaseModel, after: BaseModel, at: Path
) -> Iterator[SpecChange]:
    for word, was, now in iter_changed_keys(before, after):
        harmless = f"{section}.{word}" in HARMLESS_WHEN_RAISED and is_higher(was, now)
        verdict = Verdict.COMPATIBLE if harmless else None
        yield SpecChange(
            f"{name}.{word}", f"{name} {word} {format_change(was, now)}", (*at, word), verdict=verdict
        )
