"""Texts with NUL: the rules of every request refuse them by their field, whatever the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from runtime.model.system import Method, System
from runtime.node.systems import load_system, system_names

UNKNOWN = {("orchestrator", "job_id"), ("queuey", "job_id"), ("queuey", "address")}
"""Ids that may look like anything: one that no entity has is not found."""
TEXT = "a\0b"
NESTED = json.dumps({"outer": [{"inner": "a\0b"}]})
KEYED = json.dumps({"outer": {"a\0b": 1}})


class Case(NamedTuple):
    """A request with NUL in one of its texts, and the path of the field that has it."""

    method: Method
    path: str
    request: Any


def find_texts(
    descriptor: Descriptor, system: System, at: str = ""
) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Find every text in a message: its path, and the steps that put a NUL there."""
    for field in descriptor.fields:
        path, step = f"{at}{field.name}", field.name
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            if inner.fields_by_name["key"].type == FieldDescriptor.TYPE_STRING:
                yield path, [(step, {TEXT: "x"})]
                yield path, [(step, {"x": TEXT})]
        elif inner is not None:
            index = "[0]" if field.is_repeated else ""
            for found, steps in find_texts(inner, system, f"{path}{index}."):
                yield found, [(step, [] if field.is_repeated else None), *steps]
        elif field.type == FieldDescriptor.TYPE_STRING:
            values = (NESTED, KEYED) if field.full_name in system.json_fields else (TEXT,)
            for value in values:
                yield (
                    f"{path}[0]" if field.is_repeated else path,
                    [(step, [value] if field.is_repeated else value)],
                )


def fill_message(method: Method, steps: list[tuple[str, Any]]) -> Any:
    request = method.request()
    message: Any = request
    for name, _ in steps[:-1]:
        part = getattr(message, name)
        message = part.add() if hasattr(part, "add") else part
        if hasattr(message, "SetInParent"):
            message.SetInParent()
    name, value = steps[-1]
    if isinstance(value, dict):
        getattr(message, name).update(value)
    elif isinstance(value, list):
        getattr(message, name).extend(value)
    else:
        setattr(message, name, value)
    return request


def list_cases() -> Iterator[Any]:
    for name in system_names():
        system = load_system(name)
        if all(each.storage is None for each in system.lifecycles.values()):
            continue  # By default it is kept in memory, where any text can be.
        for service in system.services.values():
            for method in service.methods:
                descriptor = cast("Descriptor", method.request.DESCRIPTOR)
                for number, (path, steps) in enumerate(find_texts(descriptor, system)):
                    case = Case(method, path, fill_message(method, steps))
                    if (name, path) in UNKNOWN:
                        continue
                    yield pytest.param(case, id=f"{name}-{method}-{path}-{number}")


@pytest.mark.parametrize("case", [*list_cases()])
def test_every_text_of_every_request_refuses_nul(case: Case) -> None:
    """In every system: no store has to refuse it, and none stores a text that another one could not."""
    assert case.method.check is not None
    assert case.path in [each.field for each in case.method.check(case.request)]
