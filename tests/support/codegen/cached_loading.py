"""A cache for reading and compiling, for tests that do so often with a change in one file."""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from pydantic import BaseModel

from codegen import generate
from codegen.diagnostics import Diagnostic
from codegen.emit.artefact import Artefact
from codegen.emit.proto.stubs import compile_protos
from codegen.source import loader, schema_validation
from codegen.source.yaml_reader import Source, parse


@contextmanager
def cached_files() -> Iterator[None]:
    """Cache files that were read before; each reader gets a copy of its own.

    A valid file becomes the same model each time, which cannot be changed.
    """
    models: dict[tuple[type[BaseModel], str], BaseModel] = {}

    def validate(
        model: type[BaseModel], source: Source, dropped: set[str]
    ) -> tuple[BaseModel | None, list[Diagnostic]]:
        if (known := models.get((model, source.text))) is not None:
            return known, []
        found, complaints = schema_validation.validate(model, source, dropped)
        if found is not None and not complaints:
            models[model, source.text] = found
        return found, complaints

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "parse", _copy)
        patch.setattr(loader, "validate", validate)
        yield
    _parse.cache_clear()


@contextmanager
def cached_protos() -> Iterator[None]:
    """Cache protos that were compiled before in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "compile_protos", lambda protos: _compile(tuple(protos)))
        yield
    _compile.cache_clear()


@cache
def _compile(protos: tuple[Artefact, ...]) -> tuple[Artefact, ...]:
    return tuple(compile_protos(protos))


def _copy(name: str, text: str) -> tuple[Source, list[Diagnostic]]:
    source, complaints, data = _parse(name, text)
    # A check removes unreadable parts from the data.
    places = ({**source.keys}, {**source.values}, {*source.aliased})
    return Source(name, text, marshal.loads(data), *places), [*complaints]


@cache
def _parse(name: str, text: str) -> tuple[Source, list[Diagnostic], bytes]:
    source, complaints = parse(name, text)
    return source, complaints, marshal.dumps(source.data)
