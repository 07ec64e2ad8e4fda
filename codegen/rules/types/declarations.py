"""Rules of types.yaml: the names of types and their members, and the types of fields."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.language.types import EnumType, MessageField
from codegen.rules.lookup import format_enum_prefix, format_list, iter_types
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import SCALARS, Spec, type_ref
from codegen.source.yaml_reader import Path

_MAP_KEYS = sorted(set(SCALARS) - {"bytes", "double", "float", "json", "timestamp"})


@rule(
    "E101",
    "A section of types.yaml is for a proto that system.yaml does not have.",
    wrong="publik: {messages: {}}",
    right="public: {messages: {}}",
    spreads=True,
)
def check_protos_exist(spec: Spec) -> Iterator[Finding]:
    for proto in spec.types.root:
        place = spec.place("types", proto, key=True)
        lack = "which system.yaml does not have"
        yield from report_unknown(
            spec, place, "Types are defined for the proto", proto, spec.system.protos, lack
        )


@rule(
    "E102",
    "Two types have the same name. A name means the same in all protos of a system.",
    wrong="public: {messages: {Page: {}}}\ninternal: {messages: {Page: {}}}",
    right="public: {messages: {Page: {}}}\ninternal: {messages: {RecordPage: {}}}",
    spreads=True,
)
def check_types_unique(spec: Spec) -> Iterator[Finding]:
    first: dict[str, Path] = {}
    for proto, types in spec.types.root.items():
        for kind, members in (("enums", types.enums), ("messages", types.messages)):
            for name in members:
                path = (proto, kind, name)
                if name in first:
                    line = spec.place("types", *first[name], key=True).line
                    message = f"The type '{name}' is defined twice; it is already on line {line}."
                    hint = "Give it another name, or use the one that is there."
                    yield Finding(spec.place("types", *path, key=True), message, hint)
                first.setdefault(name, path)
    for name in spec.services.services:
        if name in first:
            message = f"The service '{name}' is called like a type."
            place = spec.place("services", "services", name, key=True)
            yield Finding(place, message, "Give one of them another name.")


@rule(
    "E107",
    "A field is of a type that does not exist.",
    wrong="status: {number: 1, type: JobState}",
    right="status: {number: 1, type: JobStatus}",
    spreads=True,
)
def check_field_types_exist(spec: Spec) -> Iterator[Finding]:
    known = {*SCALARS, *spec.enums, *spec.messages}
    for path, name, field in _iter_fields(spec):
        if (wanted := type_ref(field.type).name) not in known:
            place = spec.place("types", *path, name, "type")
            yield from report_unknown(spec, place, f"'{name}' is of type", wanted, known)


@rule(
    "E108",
    "A proto uses a type of another proto without importing it.",
    wrong="internal: {file: internal.proto, package: tasks.internal}",
    right="internal: {file: internal.proto, package: tasks.internal, imports: [public]}",
    needs=("system", "types"),
)
def check_imports_complete(spec: Spec) -> Iterator[Finding]:
    uses = [
        (str(path[0]), ("types", *path, name, "type"), type_ref(field.type).name)
        for path, name, field in _iter_fields(spec)
    ]
    for row in spec.methods.values():
        path = ("services", "services", row.service_name, "methods", row.name)
        uses += [(row.service.proto, path, name) for name in (row.request, row.response)]
    reported: set[tuple[str, str]] = set()
    for proto, (file, *rest), name in uses:
        home = spec.proto_of.get(name, proto)
        declared = spec.system.protos.get(proto)
        if home == proto or declared is None or home in declared.imports or (proto, home) in reported:
            continue
        reported.add((proto, home))
        message = f"The proto '{proto}' uses '{name}', which is in '{home}', and does not import that."
        yield Finding(
            spec.place(str(file), *rest), message, f"Add '{home}' to the imports of '{proto}' in system.yaml."
        )


@rule(
    "E109",
    "A map has keys of a type that cannot be one.",
    wrong='labels: {number: 1, type: "map<bytes, string>"}',
    right='labels: {number: 1, type: "map<string, string>"}',
)
def check_map_keys(spec: Spec) -> Iterator[Finding]:
    for path, name, field in _iter_fields(spec):
        ref = type_ref(field.type)
        if ref.kind == "map" and ref.key not in _MAP_KEYS:
            message = f"The keys of '{name}' are of type '{ref.key}', which no key of a map can be."
            yield Finding(
                spec.place("types", *path, name, "type"), message, f"Known: {', '.join(_MAP_KEYS)}."
            )


@rule(
    "E110",
    "Two enums of a package have the same value name. Proto puts the values of an enum beside it.",
    wrong="JobStatus: {values: {FAILED: {number: 1}}}\nOutcome: {values: {FAILED: {number: 1}}}",
    right="JobStatus: {values: {FAILED: {number: 1}}}\nOutcome: {values: {OUTCOME_FAILED: {number: 1}}}",
)
def check_enum_values_unique(spec: Spec) -> Iterator[Finding]:
    used_names: dict[tuple[str, str], str] = {}
    for proto, types in spec.types.root.items():
        package = spec.system.protos[proto].package if proto in spec.system.protos else proto
        used_names |= {(package, name): name for name in types.messages}
        for enum_name, enum in types.enums.items():
            for value in enum.values:
                place = spec.place("types", proto, "enums", enum_name, "values", value, key=True)
                other = used_names.setdefault((package, value), enum_name)
                short = value.removeprefix(format_enum_prefix(enum_name))
                if other != enum_name:
                    message = f"'{value}' of '{enum_name}' has a namesake in '{other}' of the same package."
                    yield Finding(
                        place,
                        message,
                        f"Call it '{format_enum_prefix(enum_name)}{value}', or rename the other.",
                    )
                elif short != value and short in enum.values:
                    message = f"'{value}' and '{short}' of '{enum_name}' are the same to protoc."
                    yield Finding(place, message, "Remove one of them.")


@rule(
    "E111",
    "Two fields of a message have the same name in JSON.",
    wrong="line_1: {number: 1, type: string}\nline1: {number: 2, type: string}",
    right="first_line: {number: 1, type: string}\nsecond_line: {number: 2, type: string}",
)
def check_json_names_unique(spec: Spec) -> Iterator[Finding]:
    for path, type_, members in iter_types(spec):
        if isinstance(type_, EnumType):
            continue
        first: dict[str, str] = {}
        for name in members:
            json_name = re.sub("_(.)", lambda found: found[1].upper(), name)
            if json_name in first:
                message = f"{format_list([first[json_name], name])} are both '{json_name}' in JSON."
                yield Finding(spec.place("types", *path, name, key=True), message, "Rename one of them.")
            first.setdefault(json_name, name)


@rule(
    "E115",
    "A list or a map may be absent, which is the same as empty.",
    wrong="items: {number: 1, type: repeated string, optional: true}",
    right="items: {number: 1, type: repeated string}",
)
def check_optional_lists(spec: Spec) -> Iterator[Finding]:
    for path, name, field in _iter_fields(spec):
        if field.optional and type_ref(field.type).kind != "single":
            message = f"'{name}' is of type {field.type}, where absent and empty cannot be distinguished."
            yield Finding(
                spec.place("types", *path, name, "optional", key=True), message, "Remove 'optional'."
            )


@rule(
    "E116",
    "The prefix of an enum is not what all of its values begin with.",
    wrong="Progress: {prefix: PROGRES_, values: {PROGRESS_READY: {number: 1}}}",
    right="Progress: {prefix: PROGRESS_, values: {PROGRESS_READY: {number: 1}}}",
)
def check_enum_prefixes(spec: Spec) -> Iterator[Finding]:
    for proto, types in spec.types.root.items():
        for name, enum in types.enums.items():
            unprefixed = [value for value in enum.values if not _has_prefix(value, enum.prefix or "")]
            if unprefixed:
                place = spec.place("types", proto, "enums", name, "prefix")
                message = (
                    f"'{unprefixed[0]}' of '{name}' would have no name without the prefix '{enum.prefix}'."
                )
                yield Finding(
                    place, message, f"Say 'prefix: {format_enum_prefix(name)}' and let all values begin so."
                )


def _has_prefix(value: str, prefix: str) -> bool:
    return value.startswith(prefix) and re.match("[A-Z]", value.removeprefix(prefix)) is not None


def _iter_fields(spec: Spec) -> Iterator[tuple[Path, str, MessageField]]:
    """Iterate over all fields, each with the path to its message's fields."""
    for proto, types in spec.types.root.items():
        for message_name, message in types.messages.items():
            for name, field in message.fields.items():
                yield (proto, "messages", message_name, "fields"), name, field
