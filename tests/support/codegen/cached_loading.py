"""Reads and compiles a text once, for tests that do so again and again with a change in one of its files."""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from codegen import generate
from codegen.diagnostics import Diagnostic
from codegen.emit.artefact import Artefact
from codegen.emit.proto.stubs import compile_protos
from codegen.source import loader
from codegen.source.yaml_reader import Source, parse


@contextmanager
def remembering() -> Iterator[None]:
    """Meanwhile a file that was read before is not read again; whoever examines it has a copy of his own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "parse", _copied)
        yield
    _parsed.cache_clear()


@contextmanager
def compiling_once() -> Iterator[None]:
    """Meanwhile protos that were compiled before in this process are not compiled again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate, "compile_protos", lambda protos: _compiled(tuple(protos)))
        yield
    _compiled.cache_clear()


@cache
def _compiled(protos: tuple[Artefact, ...]) -> tuple[Artefact, ...]:
    return tuple(compile_protos(protos))


def _copied(name: str, text: str) -> tuple[Source, list[Diagnostic]]:
    source, complaints, data = _parsed(name, text)
    # An examination takes out of the data what it cannot read.
    places = ({**source.keys}, {**source.values}, {*source.aliased})
    return Source(name, text, marshal.loads(data), *places), [*complaints]


@cache
def _parsed(name: str, text: str) -> tuple[Source, list[Diagnostic], bytes]:
    source, complaints = parse(name, text)
    return source, complaints, marshal.dumps(source.data)
