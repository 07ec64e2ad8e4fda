"""The rule about names of a spec that become Python identifiers."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from codegen.rules.rule import Finding, rule
from codegen.source.spec import Spec
from codegen.source.yaml_reader import Path


@rule(
    "E112",
    "A name becomes a name in Python, and is a reserved word there.",
    wrong="from: {number: 1, type: string}",
    right="sender: {number: 1, type: string}",
)
def check_python_keywords(spec: Spec) -> Iterator[Finding]:
    for file, path, name in _iter_python_names(spec):
        if keyword.iskeyword(name):
            message = f"'{name}' is a reserved word of Python, where this name would be used."
            yield Finding(spec.place(file, *path, key=True), message, "Choose another name.")


def _iter_python_names(spec: Spec) -> Iterator[tuple[str, Path, str]]:
    """Iterate over file, path and Python identifier of everything that gets one."""
    for proto, types in spec.types.root.items():
        for kind, members in (("enums", types.enums), ("messages", types.messages)):
            yield from (("types", (proto, kind, name), name) for name in members)
        for name, message in types.messages.items():
            yield from (
                ("types", (proto, "messages", name, "fields", field), field) for field in message.fields
            )
    yield from (("services", ("components", name), name) for name in spec.services.components)
    for row in spec.methods.values():
        path = ("services", row.service_name, "methods", row.name)
        yield "services", path, row.name[0].lower() + row.name[1:]
    for name, entity in spec.lifecycle.entities.items():
        yield "lifecycle", ("entities", name), name
        yield from (
            ("lifecycle", ("entities", name, word, each), each)
            for word, members in (("transitions", entity.transitions), ("updates", entity.updates))
            for each in members
        )
    yield from (("errors", ("conditions", name), name.capitalize()) for name in spec.errors.conditions)
    yield from (("errors", ("events", name), name) for name in spec.errors.events)
    for deployment_name, deployment in spec.deployments.root.items():
        yield "deployments", (deployment_name,), deployment_name
        yield from (("deployments", (deployment_name, "nodes", name), name) for name in deployment.nodes)
    yield "system", ("name",), spec.name
