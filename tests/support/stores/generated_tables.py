"""Generated lifecycle tables, read without files, and compared with what they were made of."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.abc import InspectLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType
from typing import Any

from msgspec.structs import replace

from codegen.source.spec import Spec
from runtime.model.lifecycles import Lifecycle
from runtime.stores.semantics.placement import index_fields, read_placement


class _TextLoader(InspectLoader):
    """Loads a module from its text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def get_source(self, fullname: str) -> str:
        return self._text


def read_tables(text: str, spec: Spec, records: Mapping[str, type[Any] | None]) -> dict[str, Lifecycle]:
    """Import a generated `lifecycle.py`, with plain numbers for enums and the records of the test."""
    messages = {value: row.number for enum in spec.enums.values() for value, row in enum.values.items()}
    named = {f"{_to_camel(entity)}Record": record for entity, record in records.items()}
    package = f"generated.{spec.name}"
    with _made_up({package: {}, f"{package}.messages": messages, f"{package}.records": named}):
        found = spec_from_loader(f"{package}.lifecycle", _TextLoader(text))
        assert found is not None
        assert found.loader is not None
        module = module_from_spec(found)
        found.loader.exec_module(module)
    tables: Mapping[str, Lifecycle] = module.LIFECYCLES
    return dict(tables)


@contextmanager
def _made_up(modules: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """Let modules be found that have some names and no file."""
    for name, values in modules.items():
        module = ModuleType(name)
        vars(module).update(values)
        module.__path__ = []
        sys.modules[name] = module
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]


def assert_same_meaning(original: Lifecycle, made: Lifecycle) -> None:
    """Fail unless two lifecycles differ in nothing but where an entity is kept."""
    assert _without_engine(made) == _without_engine(original)
    one, other = read_placement(original), read_placement(made)
    assert (other.unique, other.retained_s) == (one.unique, one.retained_s)
    assert other.indexes.keys() == one.indexes.keys()
    for name, index in one.indexes.items():
        same = other.indexes[name]
        assert index_fields(same) == index_fields(index)
        assert (same.states, same.only_if, same.only_unless) == (
            index.states,
            index.only_if,
            index.only_unless,
        )


def _without_engine(lifecycle: Lifecycle) -> Lifecycle:
    lease = lifecycle.lease
    if lease is not None:
        holder = replace(lease.holder, booked="") if lease.holder else None
        lease = replace(lease, holder=holder)
    return replace(
        lifecycle,
        lease=lease,
        storage=None,
        holders=frozenset(),
        failed=frozenset(),
        key_form=None,
        retained_by=None,
    )


def _to_camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
