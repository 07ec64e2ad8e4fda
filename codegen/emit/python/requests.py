"""Request validators as plain Python: `check_…` lists violations, `settle_…` normalises a valid request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from codegen.emit.artefact import Artefact, render_template, to_snake_case
from codegen.emit.python.text_rules import is_nul_possible, is_storable
from codegen.language.types import FieldRules, ItemRules, MessageField
from codegen.source.spec import Spec, field_enum, type_ref

_CHECKED_LISTS = ("repeated json", "repeated string")
_NUL = "must not contain the character NUL"


@dataclass(slots=True)
class FieldTest:
    """One `if`: its condition and the message of the violation, or an expression for the message."""

    when: str
    problem: str
    computed: bool = False


@dataclass(slots=True)
class FieldChecks:
    """The checks and the normalisation of one field."""

    name: str
    item: str = "item"
    """The variable of an element."""
    required: bool = False
    tests: list[FieldTest] = field(default_factory=list)
    item_tests: list[FieldTest] = field(default_factory=list)
    settles: list[str] = field(default_factory=list)
    nested: str = ""
    nested_kind: str = ""
    nested_checked: bool = False
    nested_settled: bool = False


@dataclass(slots=True)
class MessageChecks:
    """The checks and the normalisation of one message."""

    name: str
    fields: list[FieldChecks]

    @property
    def checked_fields(self) -> list[FieldChecks]:
        return [
            each
            for each in self.fields
            if each.required or each.tests or each.item_tests or each.nested_checked
        ]

    @property
    def settled_fields(self) -> list[FieldChecks]:
        return [each for each in self.fields if each.settles or each.nested_settled]


def emit(spec: Spec) -> Iterator[Artefact]:
    messages = [each for each in build_message_checks(spec) if each.checked_fields or each.settled_fields]
    patterns = sorted(
        {
            rules.pattern
            for message in spec.messages.values()
            for row in message.fields.values()
            for rules in (row.rules, row.rules.items)
            if rules and rules.pattern
        }
    )
    body = render_template("python/requests/requests_body.py.j2", spec, messages=messages)
    helpers = [name for name in ("cut", "is_uuid", "is_uuid4", "sha256_hex") if f"{name}(" in body]
    has_json = "json_problem(" in body
    values = {value for enum in spec.enums.values() for value in enum.values}
    text = render_template(
        "python/requests/requests.py.j2",
        spec,
        imported=sorted(
            {each.name for each in messages} | (values & set(re.findall(r"\b[A-Z0-9_]+\b", body)))
        ),
        body=body,
        patterns=patterns,
        helpers=helpers,
        has_json=has_json,
    )
    yield Artefact(f"generated/{spec.name}/requests.py", text)


def build_message_checks(spec: Spec) -> list[MessageChecks]:
    """Build the checks of every message that requests contain."""
    reached = _find_reachable(spec)
    found = {name: _build_message(spec, name) for name in spec.messages if name in reached}
    changed = True
    while changed:
        # A message is checked when a nested one is; messages may be recursive, so iterate to a fixed point.
        changed = False
        for message in found.values():
            for each in message.fields:
                inner = found.get(each.nested)
                if inner and (bool(inner.checked_fields), bool(inner.settled_fields)) != (
                    each.nested_checked,
                    each.nested_settled,
                ):
                    each.nested_checked, each.nested_settled = (
                        bool(inner.checked_fields),
                        bool(inner.settled_fields),
                    )
                    changed = True
    return list(found.values())


def _find_reachable(spec: Spec) -> set[str]:
    pending = [row.request for row in spec.methods.values()]
    reached: set[str] = set()
    while pending:
        name = pending.pop()
        if name in spec.messages and name not in reached:
            reached.add(name)
            pending += [type_ref(row.type).name for row in spec.messages[name].fields.values()]
    return reached


def _build_message(spec: Spec, name: str) -> MessageChecks:
    rows = spec.messages[name].fields
    # The elements of several lists have different variables, so that each variable has one type.
    lists = [key for key, row in rows.items() if row.rules.items or row.type in _CHECKED_LISTS]
    items = {key: "item" if len(lists) == 1 else f"{key}_item" for key in rows}
    return MessageChecks(name, [_build_field(spec, rows, key, row, items[key]) for key, row in rows.items()])


def _build_field(
    spec: Spec, message: Mapping[str, MessageField], name: str, row: MessageField, item: str
) -> FieldChecks:
    found = FieldChecks(name, item=item)
    kind, inner, _ = type_ref(row.type)
    value = f"message.{name}"
    found.required = row.rules.required
    if row.rules.must_be is not None:
        found.tests.append(
            FieldTest(f"{value} is not {row.rules.must_be}", f"must be {str(row.rules.must_be).lower()}")
        )
    if row.rules.sha256_of:
        other = f"message.{row.rules.sha256_of}"
        found.tests.append(
            FieldTest(
                f"{value} and {value} != sha256_hex({other})",
                f"must be empty or the lowercase hex SHA-256 of {row.rules.sha256_of}",
            )
        )
        found.settles.append(f"if not {value}:\n    {value} = sha256_hex({other})")
    if row.rules.page_token:
        found.tests.append(_test_page_token(spec, value, row.rules.page_token))
    if row.rules.max_items is not None:
        bound = spec.limit(row.rules.max_items)
        found.tests.append(FieldTest(f"len({value}) > {bound}", f"must have at most {bound} elements"))
    found.tests += _test_value(spec, row, row.rules, value)
    items = row.rules.items or ItemRules()
    found.item_tests += _test_value(spec, row, items, item) if row.rules.items else ()
    if row.type == "string" and is_nul_possible(spec, row.rules):
        found.tests.append(FieldTest(f'"\\0" in {value}', _NUL))
    elif row.type == "repeated string" and is_nul_possible(spec, items):
        found.item_tests.append(FieldTest(f'"\\0" in {item}', _NUL))
    elif kind == "map" and is_storable(spec, row.rules):
        found.tests += _test_map(row, value)
    if inner == "json" and kind == "single":
        found.tests.append(_test_json(spec, row.rules, value))
    elif inner == "json" and kind == "repeated":
        found.item_tests.append(_test_json(spec, items, item))
    if (row.rules.default is not None or row.rules.page_size) and _is_zero_refused(spec, row):
        # 0 or empty is replaced by the default, so it violates no rule.
        for test in found.tests:
            test.when = f"{value} and {test.when}"
    if row.optional:
        # An absent field is neither empty nor 0, so it violates no rule.
        for test in found.tests:
            test.when = f'message.HasField("{name}") and {test.when}'
    for other, wanted in row.rules.required_when.items():
        when = f'message.{other} == {wanted} and not message.HasField("{name}")'
        found.tests.append(FieldTest(when, f"must be given where {other} is {wanted}"))
    if row.rules.required_unless:
        found.tests.append(_test_required_unless(spec, message, name))
    settles = [*_format_settles(spec, row, value)]
    if row.optional and settles:
        lines = "\n".join(settles).replace("\n", "\n    ")
        settles = [f'if message.HasField("{name}"):\n    {lines}']
    found.settles += [*_format_fills(spec, name, row), *settles]
    if inner in spec.messages:
        found.nested, found.nested_kind = inner, kind
    return found


def _test_required_unless(spec: Spec, rows: Mapping[str, MessageField], name: str) -> FieldTest:
    """Test that a field is given, or one of the fields that replace it."""
    others = rows[name].rules.required_unless
    given = " or ".join(_format_presence(spec, each, rows[each]) for each in (name, *others))
    wanted = "true" if rows[name].type == "bool" else "given"
    return FieldTest(f"not ({given})", f"must be {wanted} unless {' or '.join(others)} is given")


def _format_presence(spec: Spec, name: str, row: MessageField) -> str:
    kind, inner, _ = type_ref(row.type)
    is_message = kind == "single" and (inner in spec.messages or inner == "timestamp")
    return f'message.HasField("{name}")' if row.optional or is_message else f"message.{name}"


def _test_page_token(spec: Spec, value: str, policy: str) -> FieldTest:
    rules = spec.system.policies.pagination[policy]
    digits = rules.max_token_digits
    return FieldTest(
        f"{value} and not ({value}.isascii() and {value}.isdigit() and len({value}) <= {digits}"
        f" and int({value}) <= {rules.max_token})",
        f"must be empty or a whole number from 0 to {rules.max_token} in decimal digits",
    )


def _test_json(spec: Spec, rules: ItemRules, value: str) -> FieldTest:
    """Test that a text is JSON, which gRPC carries as a string."""
    words = {"must_be_object": rules.json_object, "storable": is_storable(spec, rules)}
    arguments = "".join(f", {name}=True" for name, is_set in words.items() if is_set)
    return FieldTest(f"(problem := json_problem({value}{arguments}))", "problem", computed=True)


def _test_value(spec: Spec, row: MessageField, rules: ItemRules, value: str) -> Iterator[FieldTest]:
    if rules.non_empty:
        yield FieldTest(f"not {value}", "must not be empty")
    if rules.min_length is not None:
        yield FieldTest(
            f"len({value}) < {rules.min_length}", f"must have at least {rules.min_length} characters"
        )
    if rules.max_length is not None:
        bound = spec.limit(rules.max_length)
        yield FieldTest(f"len({value}) > {bound}", f"must have at most {bound} characters")
    if rules.max_bytes is not None:
        bound = spec.limit(rules.max_bytes)
        size = value if type_ref(row.type).name == "bytes" else f"{value}.encode()"
        yield FieldTest(f"len({size}) > {bound}", f"must have at most {bound} bytes")
    if rules.min is not None:
        yield FieldTest(f"{value} < {rules.min}", f"must be at least {rules.min}")
    if rules.max is not None:
        yield FieldTest(f"{value} > {rules.max}", f"must be at most {rules.max}")
    if rules.pattern is not None:
        yield FieldTest(f"not PATTERNS[{rules.pattern!r}].fullmatch({value})", f"must match {rules.pattern}")
    if rules.uuid:
        yield FieldTest(f"not is_uuid({value})", "must be the lowercase text of a UUID")
    if rules.uuid4:
        yield FieldTest(f"not is_uuid4({value})", "must be the lowercase text of a version 4 UUID")
    yield from _test_choice(spec, row, rules, value)


def _is_zero_refused(spec: Spec, row: MessageField) -> bool:
    """Whether the rules of a field refuse 0 or empty; an enum accepts its 0 unless they refuse it."""
    rules, enum = row.rules, field_enum(spec, row)
    if enum is None:
        return True
    zero = next(name for name, member in enum.values.items() if member.number == 0)
    return rules.specified or (rules.one_of is not None and zero not in rules.one_of)


def _test_map(row: MessageField, value: str) -> Iterator[FieldTest]:
    """Test the keys and values of a map for NUL; they have no other rules."""
    _, inner, key = type_ref(row.type)
    if key == "string":
        yield FieldTest(f'any("\\0" in name for name in {value})', _NUL)
    if inner == "string":
        yield FieldTest(f'any("\\0" in text for text in {value}.values())', _NUL)
    elif inner == "json":
        problems = f"(json_problem(text, storable=True) for text in {value}.values())"
        yield FieldTest(f"(problem := next(filter(None, {problems}), ''))", "problem", computed=True)


def _test_choice(spec: Spec, row: MessageField, rules: ItemRules, value: str) -> Iterator[FieldTest]:
    enum = field_enum(spec, row)
    if enum is None:
        if rules.one_of is not None:
            yield FieldTest(f"{value} not in {rules.one_of!r}", f"must be one of {', '.join(rules.one_of)}")
        return
    allowed = [
        name
        for name, member in enum.values.items()
        if (rules.one_of is None or name in rules.one_of) and not (rules.specified and member.number == 0)
    ]
    if rules.defined or rules.one_of is not None:
        yield FieldTest(f"{value} not in {_format_tuple(allowed)}", f"must be one of {', '.join(allowed)}")
    elif rules.specified:
        yield FieldTest(f"not {value}", "must be specified")


def _format_fills(spec: Spec, name: str, row: MessageField) -> Iterator[str]:
    """Format the assignments that fill an absent field."""
    if row.rules.absent is not None:
        value = row.rules.absent if field_enum(spec, row) else repr(row.rules.absent)
        yield f'if not message.HasField("{name}"):\n    message.{name} = {value}'
    if row.rules.filled:
        yield f"message.{name}.SetInParent()"


def _format_settles(spec: Spec, row: MessageField, value: str) -> Iterator[str]:
    rules: FieldRules = row.rules
    if rules.default is not None:
        enum = field_enum(spec, row)
        yield f"if not {value}:\n    {value} = {rules.default if enum else repr(rules.default)}"
    if rules.page_size:
        policy = spec.system.policies.pagination[rules.page_size]
        yield f"{value} = min({value} or {policy.default_size}, {policy.max_size})"
    if rules.clamp is not None:
        inner = value if rules.clamp.min is None else f"max({value}, {rules.clamp.min})"
        yield f"{value} = {inner if rules.clamp.max is None else f'min({inner}, {rules.clamp.max})'}"
    if rules.upper:
        yield f"{value} = {value}.upper()"
    if rules.cut is not None:
        yield f"{value} = cut({value}, {spec.limit(rules.cut)})"


def _format_tuple(names: list[str]) -> str:
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def name_functions(spec: Spec) -> dict[str, tuple[str, str]]:
    """Name the check and settle functions of every request; empty where it needs none."""
    return {
        each.name: (
            f"check_{to_snake_case(each.name)}" if each.checked_fields else "",
            f"settle_{to_snake_case(each.name)}" if each.settled_fields else "",
        )
        for each in build_message_checks(spec)
    }
