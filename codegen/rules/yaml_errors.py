"""Catalogue entries of the errors of codegen/source/yaml_reader.py and schema_validation.py."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.rules.rule import Finding, Rule
from codegen.source.spec import Spec


def _check_nothing(spec: Spec) -> Iterator[Finding]:  # noqa: ARG001
    """Find nothing: the reader has reported these errors already."""
    yield from ()


def _make_rule(code: str, meaning: str, wrong: str, right: str) -> Rule:
    return Rule(code, meaning, wrong, right, _check_nothing)


not_yaml = _make_rule(
    "E001",
    "A file is not YAML in UTF-8.",
    wrong="doc: Jobs: all of them",
    right='doc: "Jobs: all of them"',
)
duplicate_key = _make_rule(
    "E002",
    "A mapping has the same key twice.",
    wrong="states: {QUEUED: 1, QUEUED: 2}",
    right="states: {QUEUED: 1, RUNNING: 2}",
)
wrong_files = _make_rule(
    "E003",
    "A file of the spec is missing, cannot be read, or is none that a spec has.",
    wrong="# spec/locker/lifecycles.yaml",
    right="# spec/locker/lifecycle.yaml",
)
unknown_key = _make_rule(
    "E004",
    "The language has no such key here.",
    wrong="dispatch: {form: QUEUED, to: RUNNING}",
    right="dispatch: {from: QUEUED, to: RUNNING}",
)
wrong_type = _make_rule(
    "E005",
    "A value is of the wrong type.",
    wrong="by: vault",
    right="by: [vault]",
)
missing_key = _make_rule(
    "E006",
    "A key that must be there is missing.",
    wrong="LOG_LEVEL: {type: string, doc: Least level that is logged.}",
    right="LOG_LEVEL: {type: string, doc: Least level that is logged., read_by: everyone}",
)
wrong_value = _make_rule(
    "E007",
    "A value or a name is not one that is allowed here.",
    wrong="job_not_found: {http: 200}",
    right="job_not_found: {http: 404}",
)
unsupported_yaml = _make_rule(
    "E008",
    "A file uses YAML that a spec has no use for: tags, several documents, keys that are no names, "
    "aliases that grow without bound, endless nesting.",
    wrong="retries: !!int 3",
    right="retries: 3",
)
duplicate_entry = _make_rule(
    "E009",
    "A list has the same entry twice.",
    wrong="terminal: [DONE, FAILED, DONE]",
    right="terminal: [DONE, FAILED]",
)
renamed_key = _make_rule(
    "E010",
    "A key has another name since a later version of the language.",
    wrong="fail: {from: RUNNING, to: FAILED, gives_up: …}",
    right="fail: {from: RUNNING, to: FAILED, dead_letter: …}",
)
