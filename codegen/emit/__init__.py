"""One module for each kind of artefact; each is a pure function from a spec to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from codegen.catalogue import catalogue
from codegen.emit import (
    alerts,
    callers,
    compose,
    dashboard,
    deployments,
    errors,
    image,
    kubernetes,
    language_page,
    lifecycle,
    lua,
    measured,
    messages,
    openapi,
    page,
    policy,
    proto,
    readme,
    records,
    redis_creation,
    reference,
    requests,
    schema,
    sentinel,
    service_config,
    services,
    settings,
    sql,
    sqlite,
    system,
)
from codegen.emit.artefact import Artefact
from codegen.spec import Spec

Emitter = Callable[[Spec], Iterator[Artefact]]

CODE: Sequence[Emitter] = (
    proto.emit,
    messages.emit,
    errors.emit,
    requests.emit,
    records.emit,
    lifecycle.emit,
    callers.emit,
    policy.emit,
    services.emit,
    settings.emit,
    deployments.emit,
    measured.emit,
    sql.emit,
    sqlite.emit,
    lua.emit,
    redis_creation.emit,
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
    page.emit,
    reference.emit,
)


def emit_code(specs: Sequence[Spec]) -> list[Artefact]:
    """The .proto files, and the Python modules as the templates leave them: not formatted yet."""
    package = Artefact("generated/__init__.py", _PACKAGE)
    return [package, *(artefact for spec in specs for emit in CODE for artefact in emit(spec))]


def emit_rest(specs: Sequence[Spec], root: Path) -> list[Artefact]:
    """Every other artefact that needs no compiler."""
    return [
        *(artefact for spec in specs for emit in PAGES_AND_MANIFESTS for artefact in emit(spec)),
        *(artefact for spec in specs for artefact in sql.emit_migrations(spec, root)),
        *(artefact for spec in specs for artefact in sqlite.emit_migrations(spec, root)),
        *schema.emit(),
        *language_page.emit(),
        *readme.emit(specs, root),
        Artefact("docs/errors.md", catalogue()),
        # Type checkers believe the annotations of an installed package that has this file (PEP 561).
        Artefact("generated/py.typed", ""),
    ]


_PACKAGE = '"""Everything that is generated from spec/. Do not edit; run `nox -s generate`."""\n'
