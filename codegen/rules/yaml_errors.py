"""The catalogue of complaints about reading a file: codegen/source/yaml_reader.py, schema_validation.py."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.rules.rule import Finding, Rule
from codegen.source.spec import Spec


def _found_on_reading(spec: Spec) -> Iterator[Finding]:  # noqa: ARG001
    """A spec that could be read holds to these rules already."""
    yield from ()


def _text(code: str, meaning: str, wrong: str, right: str) -> Rule:
    return Rule(code, meaning, wrong, right, _found_on_reading)


not_yaml = _text(
    "E001",
    "A file is not YAML in UTF-8.",
    wrong="doc: Jobs: all of them",
    right='doc: "Jobs: all of them"',
)
key_twice = _text(
    "E002",
    "A mapping has the same key twice.",
    wrong="states: {QUEUED: 1, QUEUED: 2}",
    right="states: {QUEUED: 1, RUNNING: 2}",
)
wrong_files = _text(
    "E003",
    "A file of the spec is missing, cannot be read, or is none that a spec has.",
    wrong="# spec/locker/lifecycles.yaml",
    right="# spec/locker/lifecycle.yaml",
)
unknown_key = _text(
    "E004",
    "The language has no such key here.",
    wrong="dispatch: {form: QUEUED, to: RUNNING}",
    right="dispatch: {from: QUEUED, to: RUNNING}",
)
wrong_type = _text(
    "E005",
    "A value is of the wrong type.",
    wrong="by: vault",
    right="by: [vault]",
)
missing_key = _text(
    "E006",
    "A key that must be there is missing.",
    wrong="LOG_LEVEL: {type: string, doc: Least level that is logged.}",
    right="LOG_LEVEL: {type: string, doc: Least level that is logged., read_by: everyone}",
)
wrong_value = _text(
    "E007",
    "A value or a name is not one that is allowed here.",
    wrong="job_not_found: {http: 200}",
    right="job_not_found: {http: 404}",
)
foreign_yaml = _text(
    "E008",
    "A file uses YAML that a spec has no use for: tags, several documents, keys that are no names, "
    "aliases that grow without bound, endless nesting.",
    wrong="retries: !!int 3",
    right="retries: 3",
)
entry_twice = _text(
    "E009",
    "A list has the same entry twice.",
    wrong="terminal: [DONE, FAILED, DONE]",
    right="terminal: [DONE, FAILED]",
)
