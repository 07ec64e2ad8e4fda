"""JSON Schemas of messages over HTTP, for requests and for responses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Literal

from codegen.emit.http.pattern_samples import generate_sample
from codegen.emit.python.text_rules import is_nul_possible, is_storable
from codegen.language.types import EnumType, FieldRules, ItemRules, MessageField
from codegen.source.spec import Spec, type_ref

Schema = dict[str, Any]
Side = Literal["request", "response"]

UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
UUID4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_NO_NUL = r"^[^\u0000]*$"
_NOT_ZERO: Schema = {"not": {"enum": [0, "", None, []]}}
_INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "sint32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "sint64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
STORABLE_JSON: Schema = {
    "description": "Any JSON in which no text has the character NUL.",
    "anyOf": [
        {"type": ["null", "boolean", "number"]},
        {"type": "string", "pattern": _NO_NUL},
        {"type": "array", "items": {"$ref": "#/components/schemas/StorableJson"}},
        {
            "type": "object",
            "propertyNames": {"pattern": _NO_NUL},
            "additionalProperties": {"$ref": "#/components/schemas/StorableJson"},
        },
    ],
}


class SchemaBuilder:
    """Builder of the schemas of all messages that the routes of a spec use."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._displayed_enums = {
            each.public_status.enum
            for each in spec.lifecycle.entities.values()
            if each.public_status is not None
        }
        self.components: dict[str, Schema] = {}
        self._sides: dict[str, set[Side]] = {}

    def register(self, message: str, side: Side) -> None:
        """Register the use of a message and of those in it, as one name may need a schema for each side."""
        if side in self._sides.setdefault(message, set()):
            return
        self._sides[message].add(side)
        for row in self._spec.messages[message].fields.values():
            if (inner := type_ref(row.type).name) in self._spec.messages:
                self.register(inner, side)

    def build_ref(self, message: str, side: Side) -> Schema:
        """Build a reference to a message, and add its schema to the components."""
        both = side == "request" and "response" in self._sides[message]
        name = f"{message}InRequest" if both else message
        if name not in self.components:
            self.components[name] = {}
            self.components[name] = self.build_message(message, side)
        return {"$ref": f"#/components/schemas/{name}"}

    def build_message(self, name: str, side: Side, without: Collection[str] = ()) -> Schema:
        """Build the schema of a message, without the fields that are in the path."""
        row = self._spec.messages[name]
        fields = {field: each for field, each in row.fields.items() if field not in without}
        found: Schema = {
            "type": "object",
            "properties": {
                self._spec.json_name(field): self.build_field(each, side) for field, each in fields.items()
            },
        }
        if row.doc:
            found["description"] = row.doc
        needed = [
            self._spec.json_name(field)
            for field, each in fields.items()
            if (is_needed(self._spec, each) if side == "request" else self._is_present(each))
        ]
        choices = [self._build_choice(fields, field) for field in fields if side == "request"]
        if any(choices):
            found["allOf"] = [each for each in choices if each]
        return found | ({"required": sorted(needed)} if needed else {})

    def _build_choice(self, fields: Mapping[str, MessageField], name: str) -> Schema:
        """Build the alternatives of `required_unless`: the field itself, or one of the other fields."""
        if not (others := fields[name].rules.required_unless):
            return {}
        alternatives: list[Schema] = []
        for each in (name, *others):
            json_name = self._spec.json_name(each)
            given = {"const": True} if fields[each].type == "bool" else _NOT_ZERO
            alternatives.append({"required": [json_name], "properties": {json_name: given}})
        return {"anyOf": alternatives}

    def build_field(self, row: MessageField, side: Side) -> Schema:
        """Build the schema of a field."""
        kind, name, _ = type_ref(row.type)
        rules = row.rules if side == "request" else None
        if kind == "single":
            found = self._build_value(row, name, rules, side)
        else:
            items = (rules.items or ItemRules(storable=rules.storable)) if rules else None
            each = self._build_value(row, name, items, side)
            found = self._build_collection(kind, each, row, side)
            if rules is not None and kind == "map" and is_storable(self._spec, rules):
                found["propertyNames"] = {"pattern": _NO_NUL}
        if rules is not None and rules.default is not None:
            found = found | {"default": self._format_default(row, name)}
        if rules is not None and rules.page_size:
            found = found | {"default": self._spec.system.policies.pagination[rules.page_size].default_size}
        if row.optional and (side == "request" or self._is_present(row)):
            found = _allow_null(found)
        return found | ({"description": row.doc} if row.doc else {})

    def _is_present(self, row: MessageField) -> bool:
        """Whether every response has a field."""
        return not row.optional or self._spec.system.json_.unset == "shown"

    def _build_collection(self, kind: str, each: Schema, row: MessageField, side: Side) -> Schema:
        least, most = ("minItems", "maxItems") if kind == "repeated" else ("minProperties", "maxProperties")
        found: Schema = (
            {"type": "array", "items": each}
            if kind == "repeated"
            else {"type": "object", "additionalProperties": each}
        )
        if side == "request" and row.rules.non_empty:
            found[least] = 1
        if side == "request" and row.rules.max_items is not None:
            found[most] = self._spec.limit(row.rules.max_items)
        return found

    def _build_value(self, row: MessageField, name: str, rules: ItemRules | None, side: Side) -> Schema:
        if name in self._spec.messages:
            return self.build_ref(name, side)
        if (enum := self._spec.enums.get(name)) is not None:
            return self._build_enum(name, enum, rules, side)
        if name == "json":
            return self._build_json(rules)
        if name == "timestamp":
            return {"type": "string", "format": "date-time"}
        if name in _INTEGERS:
            return self._build_integer(name, rules)
        if name == "bool":
            must_be = row.rules.must_be if side == "request" else None
            return {"type": "boolean"} | ({} if must_be is None else {"const": must_be})
        if name in ("double", "float"):
            return {"type": "number"}
        return self._build_bytes(rules) if name == "bytes" else self._build_text(row, rules, side)

    def _build_enum(self, name: str, enum: EnumType, rules: ItemRules | None, side: Side) -> Schema:
        is_zero_hidden = (rules is not None and rules.specified) or (
            side == "response" and name in self._displayed_enums
        )
        values = [
            enum.word(value)
            for value, member in enum.values.items()
            if not (is_zero_hidden and member.number == 0)
            if rules is None or rules.one_of is None or value in rules.one_of
        ]
        found: Schema = {"type": "string", "enum": values}
        docs = [f"{enum.word(value)}: {member.doc}" for value, member in enum.values.items() if member.doc]
        text = "\n".join(filter(None, (enum.doc, *docs)))
        return found | ({"description": text} if text else {})

    def _build_json(self, rules: ItemRules | None) -> Schema:
        if rules is None:
            return {}
        storable = is_storable(self._spec, rules)
        if storable:
            self.components["StorableJson"] = STORABLE_JSON
        anything: Schema = {"$ref": "#/components/schemas/StorableJson"} if storable else {}
        if not rules.json_object:
            return anything
        found: Schema = {"type": "object", "additionalProperties": anything or True}
        return found | ({"propertyNames": {"pattern": _NO_NUL}} if storable else {})

    def _build_integer(self, name: str, rules: ItemRules | None) -> Schema:
        least, most = _INTEGERS[name]
        if rules is not None:
            least = max(least, rules.min if rules.min is not None else least)
            most = min(most, rules.max if rules.max is not None else most)
        if has_default(rules) and not least <= 0 <= most:
            # 0 is replaced by the default.
            if least != 1:
                return {"anyOf": [{"const": 0}, {"type": "integer", "minimum": least, "maximum": most}]}
            least = 0
        return {"type": "integer", "minimum": least, "maximum": most}

    def _build_bytes(self, rules: ItemRules | None) -> Schema:
        found: Schema = {"type": "string", "contentEncoding": "base64"}
        if rules is not None:
            found["pattern"] = f"^{_BASE64}$"
            if rules.max_bytes is not None:
                found["maxLength"] = (self._spec.limit(rules.max_bytes) + 2) // 3 * 4
            if rules.non_empty:
                found["minLength"] = 4
        return found

    def _build_text(self, row: MessageField, rules: ItemRules | None, side: Side) -> Schema:
        found: Schema = {"type": "string"}
        if rules is None:
            return found
        if rules.non_empty or rules.min_length:
            found["minLength"] = max(int(rules.non_empty), rules.min_length or 0)
        most = [self._spec.limit(each) for each in (rules.max_length, rules.max_bytes) if each is not None]
        if most:
            found["maxLength"] = min(most)
        if rules.one_of is not None:
            found["enum"] = list(rules.one_of)
        patterns = [f"^(?:{rules.pattern})$"] if rules.pattern is not None else []
        if rules.uuid or rules.uuid4:
            found["format"] = "uuid"
            patterns.append(f"^{UUID4 if rules.uuid4 else UUID}$")
        if is_nul_possible(self._spec, rules):
            patterns.append(_NO_NUL)
        if side == "request" and row.rules.page_token:
            digits = self._spec.system.policies.pagination[row.rules.page_token].max_token_digits
            patterns.append(f"^[0-9]{{0,{digits - 1}}}$")
        if len(patterns) == 1:
            found["pattern"] = patterns[0]
        elif patterns:
            found["allOf"] = [{"pattern": each} for each in patterns]
        # Empty text is replaced by the default.
        return {"anyOf": [{"const": ""}, found]} if has_default(rules) and _is_empty_refused(rules) else found

    def _format_default(self, row: MessageField, name: str) -> Any:
        default = row.rules.default
        enum = self._spec.enums.get(name)
        return enum.word(str(default)) if enum is not None else default


def is_needed(spec: Spec, row: MessageField) -> bool:
    """Whether a request must have a field: an absent one is empty or 0, which its rules may refuse."""
    rules, (kind, name, _) = row.rules, type_ref(row.type)
    if row.optional or has_default(rules):
        return False
    if kind != "single":
        return rules.non_empty
    if name == "json":
        return True
    if name in spec.messages or name == "timestamp":
        return rules.required
    if (enum := spec.enums.get(name)) is not None:
        zero = next(value for value, member in enum.values.items() if member.number == 0)
        return rules.specified or (rules.one_of is not None and zero not in rules.one_of)
    if name in _INTEGERS:
        return (rules.min or 0) > 0 or (rules.max or 0) < 0
    if name == "bool":
        return rules.must_be is True
    return _is_empty_refused(rules)


def has_default(rules: ItemRules | None) -> bool:
    """Whether a default replaces 0 or empty."""
    return isinstance(rules, FieldRules) and (rules.default is not None or rules.page_size is not None)


def _is_empty_refused(rules: ItemRules) -> bool:
    is_text_refused = (rules.one_of is not None and "" not in rules.one_of) or rules.uuid or rules.uuid4
    is_unmatched = rules.pattern is not None and re.fullmatch(rules.pattern, "") is None
    return rules.non_empty or bool(rules.min_length) or is_text_refused or is_unmatched


def _allow_null(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str) and not {"enum", "format"} & set(schema):
        return schema | {"type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def build_example(schema: Mapping[str, Any], components: Mapping[str, Schema], depth: int = 0) -> Any:
    """Build a simple value that a schema allows."""
    if "$ref" in schema:
        return build_example(components[schema["$ref"].rpartition("/")[2]], components, depth + 1)
    for word in ("default", "const"):
        if word in schema:
            return schema[word]
    if "enum" in schema:
        named = [each for each in schema["enum"] if not str(each).upper().endswith("UNSPECIFIED")]
        return (named or schema["enum"])[0]
    if "anyOf" in schema:
        return build_example(schema["anyOf"][0], components, depth)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = {
            name: build_example(each, components, depth + 1)
            for name, each in schema.get("properties", {}).items()
        }
        if schema.get("minProperties") and not properties:
            return {"first": build_example(schema["additionalProperties"], components, depth + 1)}
        return properties
    if kind == "array":
        return [build_example(schema["items"], components, depth + 1)] if depth < 4 else []
    if kind == "string":
        return _build_text_example(schema)
    if kind in ("integer", "number"):
        return max(schema.get("minimum", 0), min(1, schema.get("maximum", 1)))
    return {"boolean": True, "null": None}.get(str(kind))


def _build_text_example(schema: Mapping[str, Any]) -> str:
    if schema.get("format") == "uuid":
        return "6f1d3c1e-9b1f-4c57-8a55-0d3a1f3b7c42"
    if schema.get("format") == "date-time":
        return "2030-01-31T12:00:00.000000Z"
    patterns = [schema.get("pattern"), *(each.get("pattern") for each in schema.get("allOf", ()))]
    for pattern in patterns:
        if pattern and pattern != _NO_NUL and not schema.get("contentEncoding"):
            return generate_sample(pattern)
    if schema.get("contentEncoding"):
        return "Y2hhcnRlcg=="
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    return ("example" * (least // 7 + 1))[:most]
