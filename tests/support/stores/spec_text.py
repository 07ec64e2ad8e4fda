"""Lifecycles of tests as spec text, compiled in memory: what codegen makes of them for an engine.

A test's lifecycle is a Python object. Engines that run generated SQL or Lua get it from here: the lifecycle
is written as the files of a spec, loaded, checked by the rules and rendered; the generated tables are read
back and must mean the same as the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from msgspec import json
from msgspec.structs import replace

from codegen.diagnostics import Diagnostic, render
from codegen.emit.postgres import postgres_files
from codegen.emit.python import lifecycle as lifecycle_module
from codegen.emit.sqlite import sqlite_files
from codegen.language import FILES, OPTIONAL
from codegen.rules import check
from codegen.source.schema_validation import validate
from codegen.source.spec import Spec
from codegen.source.yaml_reader import parse
from runtime.model.lifecycles import Lifecycle
from tests.support.stores.generated_tables import assert_same_meaning, read_tables
from tests.support.stores.lifecycles import ALL, COURIER, ERRAND
from tests.support.stores.spec_entities import describe_entity
from tests.support.stores.spec_frame import LOOKING, write_frame

EMITTERS: Mapping[str, tuple[Any, ...]] = {
    "memory": (),
    "postgres": (postgres_files.emit,),
    "redis": (),
    "s3": (),
    "sqlite": (sqlite_files.emit,),
}
"""What is generated for an engine beside the tables of the lifecycle."""
_REMEMBERED = 256
"""How many texts are remembered: lifecycles that are drawn come once, and there may be many of them."""
SYSTEM = "shop"
"""The name of the made-up system: artefacts are under `generated/shop/`."""
USELESS = frozenset(
    (
        *("E211", "E212", "E231", "E236", "E238", "E239", "E240"),
        *("E243", "E244", "E247", "E248", "E253", "E256", "E257", "E258"),
    )
)
"""Rules that tell a useful lifecycle from one that leads nowhere. An engine has to run either."""


class Compiled(NamedTuple):
    """Artefacts by their paths, and the lifecycles as generated, with the physical names of the engine."""

    artefacts: Mapping[str, str]
    lifecycles: Mapping[str, Lifecycle]
    spec: Spec


def compile_lifecycle(engine: str, lifecycle: Lifecycle, variables: Mapping[str, Any]) -> Compiled:
    """Compile a lifecycle for an engine, with the variables that it names, and those of its partners.

    The generated lifecycle has the record type of the original. What was compiled before is remembered.
    """
    if any(lifecycle is each for each in ALL):
        return _compile_fixed(engine, lifecycle.entity, (*sorted(variables.items()),))
    return _compile_any(engine, lifecycle, variables)


@cache
def _compile_fixed(engine: str, entity: str, variables: tuple[tuple[str, Any], ...]) -> Compiled:
    lifecycle = next(each for each in ALL if each.entity == entity)
    return _compile_any(engine, lifecycle, dict(variables))


def _compile_any(engine: str, lifecycle: Lifecycle, variables: Mapping[str, Any]) -> Compiled:
    lifecycles = (lifecycle, *_partners(lifecycle))
    files = write_files(engine, lifecycles, variables)
    compiled = _compile(engine, (*files.items(),), tuple((each.entity, each.record) for each in lifecycles))
    assert_same_meaning(lifecycle, compiled.lifecycles[lifecycle.entity])
    return compiled


def _partners(lifecycle: Lifecycle) -> tuple[Lifecycle, ...]:
    """The entities that a lifecycle names: those that hold its leases, and those whose leases it holds."""
    if lifecycle.entity == COURIER.entity:
        return (ERRAND,)
    edges = lifecycle.transitions.values()
    has_holder = bool(lifecycle.lease and lifecycle.lease.holder)
    goes_by_holder = any(due.holder_in is not None for edge in edges for due in edge.dues)
    courier = replace(COURIER, unless_holding=lifecycle.entity if has_holder else None)
    return (courier,) if has_holder or goes_by_holder else ()


@lru_cache(_REMEMBERED)
def _compile(
    engine: str, files: tuple[tuple[str, str], ...], records: tuple[tuple[str, type[Any]], ...]
) -> Compiled:
    spec = load_spec(engine, dict(files))
    artefacts = {each.path: each.text for emit in EMITTERS[engine] for each in emit(spec)}
    table = next(lifecycle_module.emit(spec)).text
    return Compiled(artefacts, read_tables(table, spec, dict(records)), spec)


def load_spec(engine: str, files: Mapping[str, str]) -> Spec:
    """Load a spec and check it by the rules."""
    models: dict[str, Any] = {name: FILES[name]() for name in OPTIONAL - files.keys()}
    sources = {}
    complaints: list[Diagnostic] = []
    for name, text in files.items():
        sources[name], models[name], found = _load(name, text)
        complaints += found
    assert not complaints, render(complaints, "text")
    spec = Spec(f"spec/{SYSTEM}", sources, "0" * 64, **models).at_home()
    complaints = [each for each in check(spec) if each.severity == "error" and each.code not in USELESS]
    assert not complaints, render(complaints, "text")
    return spec


def write_files(
    engine: str, lifecycles: tuple[Lifecycle, ...], variables: Mapping[str, Any]
) -> dict[str, str]:
    """Write the files of a spec; JSON is YAML, and quick to write."""
    entities = [describe_entity(each) for each in lifecycles]
    data = write_frame(SYSTEM, engine, lifecycles, variables)
    data["lifecycle"] = {"entities": {each.name: each.entity for each in entities}}
    # Every physical name is a default.
    data |= {} if engine == "memory" else {"storage": {engine: {}}}
    data["types"] = {
        "book": {
            "enums": {name: enum for each in entities for name, enum in each.enums.items()},
            "messages": LOOKING | {name: row for each in entities for name, row in each.messages.items()},
        }
    }
    return {name: json.format(json.encode(each), indent=1).decode() for name, each in data.items()}


@lru_cache(_REMEMBERED)
def _load(name: str, text: str) -> tuple[Any, Any, tuple[Diagnostic, ...]]:
    source, complaints = parse(f"spec/{SYSTEM}/{name}.yaml", text)
    model, found = validate(FILES[name], source, set())
    return source, model, (*complaints, *found)
