"""Emitters, a folder for each kind of artefact; each is a pure function from a spec to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from codegen.catalogue import render_catalogue
from codegen.emit.artefact import Artefact
from codegen.emit.console import bucket_page
from codegen.emit.deploy import alerts, compose, dashboard, image, kubernetes, sentinel, service_config
from codegen.emit.docs import json_schema, language_page, reference
from codegen.emit.http import openapi
from codegen.emit.postgres import postgres_files
from codegen.emit.proto import proto_files
from codegen.emit.python import (
    callers,
    deployments,
    errors,
    lifecycle,
    messages,
    metrics_module,
    policy,
    records,
    requests,
    services,
    settings,
    storage,
    system,
)
from codegen.emit.sqlite import sqlite_files
from codegen.source.spec import Spec

Emitter = Callable[[Spec], Iterator[Artefact]]

CODE: Sequence[Emitter] = (
    proto_files.emit,
    messages.emit,
    errors.emit,
    requests.emit,
    records.emit,
    lifecycle.emit,
    storage.emit,
    callers.emit,
    policy.emit,
    services.emit,
    settings.emit,
    deployments.emit,
    metrics_module.emit,
    postgres_files.emit,
    sqlite_files.emit,
    system.emit,
)
PAGES_AND_MANIFESTS: Sequence[Emitter] = (
    service_config.emit,
    alerts.emit,
    dashboard.emit,
    image.emit,
    compose.emit,
    sentinel.emit,
    kubernetes.emit,
    openapi.emit,
    bucket_page.emit,
    reference.emit,
)


def emit_code(specs: Sequence[Spec]) -> list[Artefact]:
    """Emit the .proto files, and the Python modules, which are not formatted yet."""
    package = Artefact("generated/__init__.py", _PACKAGE)
    return [package, *(artefact for spec in specs for emit in CODE for artefact in emit(spec))]


def emit_rest(specs: Sequence[Spec], root: Path) -> list[Artefact]:
    """Emit every other artefact that needs no compiler."""
    return [
        *(artefact for spec in specs for emit in PAGES_AND_MANIFESTS for artefact in emit(spec)),
        *(artefact for spec in specs for artefact in postgres_files.emit_migrations(spec, root)),
        *(artefact for spec in specs for artefact in sqlite_files.emit_migrations(spec, root)),
        *json_schema.emit(),
        *language_page.emit(),
        Artefact("docs/reference/errors.md", render_catalogue()),
        # Type checkers use the annotations of an installed package only if it has this file (PEP 561).
        Artefact("generated/py.typed", ""),
    ]


_PACKAGE = '"""Everything that is generated from spec/. Do not edit; run `nox -s generate`."""\n'
