"""Differences of system.yaml: the name, proto files, policies and the freeze."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from codegen.review.difference import Found, Kind, Verdict, kind
from codegen.review.form import Path
from codegen.review.kinds.pairs import added, gained, kept, rose, shown, turn, words
from codegen.source.spec import Spec

POLICIES: Path = ("system", "policies")
NAMED = ("retry", "calls", "pagination", "limits", "retention")
"""Policies that other files refer to by name."""

HARMLESS_WHEN_RAISED = frozenset({"limits.value", "pagination.max_size", "shutdown.grace_ms"})


@kind("system.name", "The system has another name.", Verdict.WIRE)
def system_name(old: Spec, new: Spec) -> Iterator[Found]:
    if old.system.name != new.system.name:
        names = turn(old.system.name, new.system.name)
        yield Found(new.system.name, f"the system's name {names}", ("system", "name"))


@kind("system.version", "The system has another version.", Verdict.BEHAVIOUR)
def system_version(old: Spec, new: Spec) -> Iterator[Found]:
    before, after = old.system.version, new.system.version
    if before != after:
        verdict = Verdict.COMPATIBLE if rose(before, after) else None
        yield Found(str(after), f"version {turn(before, after)}", ("system", "version"), verdict=verdict)


@kind("system.json", "Messages look otherwise as JSON.", Verdict.WIRE)
def system_json(old: Spec, new: Spec) -> Iterator[Found]:
    for word, was, now in words(old.system.json_, new.system.json_):
        yield Found(word, f"JSON {word} {turn(was, now)}", ("system", "json", word))


@kind("proto.added", "There is one more proto file.", Verdict.COMPATIBLE)
def proto_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name, proto in added(old.system.protos, new.system.protos):
        yield Found(name, f"proto file {proto.file} is added", ("system", "protos", name))


@kind("proto.removed", "A proto file is gone.", Verdict.WIRE)
def proto_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, proto in added(new.system.protos, old.system.protos):
        yield Found(name, f"proto file {proto.file} is removed", ("system", "protos", name))


@kind("proto.changed", "A proto file has another name or package, or imports others.", Verdict.WIRE)
def proto_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for name, before, after in kept(old.system.protos, new.system.protos):
        for word, was, now in words(before, after):
            path = ("system", "protos", name, word)
            verdict = Verdict.COMPATIBLE if word == "imports" else None
            yield Found(f"{name}.{word}", f"proto {name}: {word} {turn(was, now)}", path, verdict=verdict)


@kind(
    "policy.added",
    "There is one more policy; a new bound on what is kept changes behaviour.",
    Verdict.COMPATIBLE,
)
def policy_added(old: Spec, new: Spec) -> Iterator[Found]:
    for section in NAMED:
        for name, policy in added(_named(old, section), _named(new, section)):
            verdict = Verdict.BEHAVIOUR if section == "retention" else None
            text = f"policy {section}.{name} is added ({shown(policy)})"
            yield Found(f"{section}.{name}", text, (*POLICIES, section, name), verdict=verdict)


@kind("policy.removed", "A policy is gone.", Verdict.BEHAVIOUR)
def policy_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for section in NAMED:
        for name, _ in added(_named(new, section), _named(old, section)):
            verdict = Verdict.COMPATIBLE if section == "retention" else None
            text = f"policy {section}.{name} is removed"
            yield Found(f"{section}.{name}", text, (*POLICIES, section, name), verdict=verdict)


@kind("policy.changed", "A policy says something else.", Verdict.BEHAVIOUR)
def policy_changed(old: Spec, new: Spec) -> Iterator[Found]:
    for section in NAMED:
        for name, before, after in kept(_named(old, section), _named(new, section)):
            yield from _policy(f"{section}.{name}", section, before, after, (*POLICIES, section, name))
    for section in ("keepalive", "shutdown"):
        before, after = getattr(old.system.policies, section), getattr(new.system.policies, section)
        yield from _policy(section, section, before, after, (*POLICIES, section))


@kind("log_field.added", "Log lines carry one more field.", Verdict.COMPATIBLE)
def log_field_added(old: Spec, new: Spec) -> Iterator[Found]:
    for name in gained(old.system.policies.log_fields, new.system.policies.log_fields):
        yield Found(name, f"log lines gain the field {name}", (*POLICIES, "log_fields"))


@kind("log_field.removed", "Log lines lack a field.", Verdict.BEHAVIOUR)
def log_field_removed(old: Spec, new: Spec) -> Iterator[Found]:
    for name in gained(new.system.policies.log_fields, old.system.policies.log_fields):
        yield Found(name, f"log lines lose the field {name}", (*POLICIES, "log_fields"))


@kind("freeze.added", "The design is frozen.", Verdict.COMPATIBLE)
def freeze_added(old: Spec, new: Spec) -> Iterator[Found]:
    if new.system.frozen and not old.system.frozen:
        since = new.system.frozen.since
        yield Found(since, f"the design is frozen since {since}", ("system", "frozen"))


@kind("freeze.lifted", "The design is no longer frozen.", Verdict.BEHAVIOUR)
def freeze_lifted(old: Spec, new: Spec) -> Iterator[Found]:
    if old.system.frozen and not new.system.frozen:
        since = old.system.frozen.since
        yield Found(since, f"the freeze of {since} is lifted", ("system", "frozen"))


@kind("freeze.since", "The freeze has another date.", Verdict.BEHAVIOUR)
def freeze_since(old: Spec, new: Spec) -> Iterator[Found]:
    before, after = old.system.frozen, new.system.frozen
    if before and after and before.since != after.since:
        text = f"the date of the freeze {turn(before.since, after.since)}"
        yield Found(after.since, text, ("system", "frozen", "since"))


def _entries(name: str, word: str, called: str) -> tuple[Kind, Kind]:
    """The two kinds of a list of sentences about the freeze."""

    @kind(f"{name}.added", f"There is one more {called}.", Verdict.COMPATIBLE)
    def came(old: Spec, new: Spec) -> Iterator[Found]:
        if old.system.frozen and new.system.frozen:
            for entry in gained(getattr(old.system.frozen, word), getattr(new.system.frozen, word)):
                yield Found(entry, f"the {called} '{entry}' is added", ("system", "frozen", word))

    @kind(f"{name}.removed", f"A {called} is gone.", Verdict.BEHAVIOUR)
    def went(old: Spec, new: Spec) -> Iterator[Found]:
        if old.system.frozen and new.system.frozen:
            for entry in gained(getattr(new.system.frozen, word), getattr(old.system.frozen, word)):
                yield Found(entry, f"the {called} '{entry}' is removed", ("system", "frozen", word))

    return came, went


decision_added, decision_removed = _entries("decision", "decisions", "frozen decision")
gate_added, gate_removed = _entries("gate", "gate", "condition for lifting the freeze")
scope_added, scope_removed = _entries("out_of_scope", "out_of_scope", "limit of the scope")


def _named(spec: Spec, section: str) -> dict[str, BaseModel]:
    found: dict[str, BaseModel] = getattr(spec.system.policies, section)
    return found


def _policy(name: str, section: str, before: BaseModel, after: BaseModel, at: Path) -> Iterator[Found]:
    for word, was, now in words(before, after):
        harmless = f"{section}.{word}" in HARMLESS_WHEN_RAISED and rose(was, now)
        verdict = Verdict.COMPATIBLE if harmless else None
        yield Found(f"{name}.{word}", f"{name} {word} {turn(was, now)}", (*at, word), verdict=verdict)
