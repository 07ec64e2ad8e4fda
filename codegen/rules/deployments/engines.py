"""Rules of deployments.yaml about engines: processes that share entities, and variables of the storage."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.rules.lookup import format_list
from codegen.rules.rule import Finding, rule
from codegen.rules.storage.persistence import StoreSetting, iter_store_settings
from codegen.source.spec import Spec

ONE_PROCESS = {"memory": "in memory", "sqlite": "in a file of one process"}
"""Engines whose storage belongs to one process, and where each keeps entities."""
_PLACES = {"data_path": "file", "url": "server", "string": "bucket"}


@rule(
    "E742",
    "The engine of a deployment belongs to one process, and components that need it are in several.",
    wrong="engine: memory\nnodes: {desk: {hosts: [desk]}, clerk: {hosts: [clerk]}}  # both have the orders",
    right="engine: memory\nnodes: {desk: {hosts: [desk, clerk]}}",
    needs=("deployments", "lifecycle"),
)
def check_memory_in_one_process(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        if deployment.engine not in ONE_PROCESS or deployment.routing is not None:
            continue  # With routing each process has the entities of its own keys.
        kept: dict[tuple[str, ...], list[str]] = {}
        for entity, row in spec.lifecycle.entities.items():
            kept.setdefault(tuple(sorted({row.held_by, *row.shared_with})), []).append(entity)
        for holders, entities in kept.items():
            nodes = {
                each: node
                for each, node in deployment.nodes.items()
                if not set(holders).isdisjoint(node.hosts)
            }
            if len(nodes) == 1 and all(node.replicas == 1 for node in nodes.values()):
                continue
            where = format_list([f"{each} x {node.replicas}" for each, node in nodes.items()])
            place, what = ONE_PROCESS[deployment.engine], " and ".join(entities)
            message = f"'{name}' keeps each {what} {place}, but its components are in {where}."
            hint = f"Let one node with one replica host {format_list([*holders])}."
            yield Finding(spec.place("deployments", name, "engine"), message, hint)


@rule(
    "E743",
    "The engine of a deployment needs a variable that is not defined, or that is of no use to it.",
    wrong="engine: sqlite  # and environment.yaml has no DATABASE_PATH",
    right="DATABASE_PATH: {type: data_path, default: desk.db, read_by: [desk], doc: The database file.}",
    needs=("deployments", "environment", "lifecycle", "services", "storage"),
)
def check_engine_variables(spec: Spec) -> Iterator[Finding]:
    for name, deployment in spec.deployments.root.items():
        place, reported = spec.place("deployments", name, "engine"), set[str]()
        for entity, row in spec.placed_by(deployment.engine).lifecycle.entities.items():
            if row.kept_in == spec.lifecycle.entities[entity].kept_in:
                continue  # Of names in storage.yaml that are used by default another rule complains.
            for setting in iter_store_settings(entity, row):
                problem = _find_problem(spec, setting)
                if problem and setting.variable not in reported:
                    reported.add(setting.variable)
                    what = f"the {_PLACES[setting.kind]} of '{setting.variable}'"
                    yield Finding(
                        place, f"'{name}' keeps its entities in {what}, which {problem[0]}", problem[1]
                    )


def _find_problem(spec: Spec, setting: StoreSetting) -> tuple[str, str] | None:
    """Find why a variable cannot say where an engine keeps entities, and what to do about it."""
    name, row = setting.variable, spec.environment.variables.get(setting.variable)
    readers = [each for each in setting.readers if each in spec.services.components]
    if row is None:
        return "is not defined.", f"Add {name} of type {setting.kind} to environment.yaml."
    if row.type != setting.kind:
        return f"is of type {row.type}.", f"Let it be of type {setting.kind} in environment.yaml."
    if row.read_by != "everyone" and (deaf := [each for each in readers if each not in row.read_by]):
        return f"{format_list(deaf)} does not read.", f"Add it to 'read_by' of {name} in environment.yaml."
    if not row.required and row.default is None and not setting.may_be_unset:
        return "may be left unset.", f"Say 'required: true' of {name} in environment.yaml."
    return None
