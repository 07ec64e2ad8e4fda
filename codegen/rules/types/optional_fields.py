"""Rules of types.yaml about optional fields: when they are required, and their values when absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.language.types import MessageField
from codegen.rules.lookup import find_misfit
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path


@rule(
    "E128",
    "A field must be present under a condition that its message cannot meet, or is never absent.",
    wrong="address: {number: 2, type: string, rules: {required_when: {outcome: GOOD}}}",
    right="address: {number: 2, type: string, optional: true, rules: {required_when: {outcome: GOOD}}}",
    needs=("types",),
)
def check_required_when(spec: Spec) -> Iterator[Finding]:
    for proto, types in spec.types.root.items():
        for message_name, message in types.messages.items():
            for name, row in message.fields.items():
                path = (proto, "messages", message_name, "fields", name, "rules", "required_when")
                if row.rules.required_when and not row.optional:
                    place = spec.place("types", *path, key=True)
                    text = f"'{name}' must be present at times, but it is never absent."
                    yield Finding(place, text, "Say 'optional: true' of it.")
                for other, value in row.rules.required_when.items():
                    yield from _check_condition(
                        spec, (*path, other), message_name, message.fields, name, value
                    )
                siblings = [each for each in message.fields if each != name]
                for at, other in enumerate(row.rules.required_unless):
                    place = spec.place("types", *path[:-1], "required_unless", at)
                    lack = f"which {message_name} does not have beside it"
                    yield from report_unknown(
                        spec, place, f"'{name}' may be left out by", other, siblings, lack
                    )


@rule(
    "E129",
    "A value replaces a field that is never absent, or a field is distinguished from 0 and empty twice.",
    wrong="tries: {number: 1, type: uint32, rules: {absent: 3}}",
    right="tries: {number: 1, type: uint32, optional: true, rules: {absent: 3}}",
)
def check_absent_values(spec: Spec) -> Iterator[Finding]:
    for proto, types in spec.types.root.items():
        for message_name, message in types.messages.items():
            for name, row in message.fields.items():
                path = (proto, "messages", message_name, "fields", name, "rules")
                if row.rules.absent is not None and not row.optional:
                    text = f"Something stands in for '{name}' where it is absent, and it never is."
                    place = spec.place("types", *path, "absent", key=True)
                    yield Finding(place, text, "Say 'optional: true' of it, or 'default' for 'absent'.")
                elif row.rules.filled and row.rules.required:
                    text = f"'{name}' is made where it is absent, and must be present."
                    yield Finding(spec.place("types", *path, "filled", key=True), text, "Do one of the two.")


def _check_condition(
    spec: Spec, path: Path, message: str, fields: Mapping[str, MessageField], name: str, value: str
) -> Iterator[Finding]:
    other, subject = str(path[-1]), f"'{name}' must be present by"
    key = spec.place("types", *path, key=True)
    if other not in fields or other == name:
        known = [each for each in fields if each != name]
        yield from report_unknown(
            spec, key, subject, other, known, f"which {message} does not have beside it"
        )
    elif fields[other].type not in spec.enums:
        yield Finding(key, f"{subject} '{other}', which is of type {fields[other].type}.", "Name an enum.")
    elif wrong := find_misfit(spec, fields[other].type, value):
        yield Finding(
            spec.place("types", *path), f"{subject} '{other}', but that {wrong.problem}.", wrong.hint
        )
