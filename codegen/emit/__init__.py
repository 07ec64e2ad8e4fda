"""One module for each kind of artefact; each is a pure function from a spec to files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from codegen.catalogue import catalogue
from codegen.emit import (
    callers,
    compose,
    deployments,
    errors,
    image,
    kubernetes,
    lifecycle,
    messages,
    policy,
    proto,
    readme,
    reference,
    requests,
    schema,
    service_config,
    services,
    settings,
    system,
)
from codegen.emit.artefact import Artefact
from codegen.spec import Spec

PER_SYSTEM: Sequence[Callable[[Spec], Iterator[Artefact]]] = (
    proto.emit,
    messages.emit,
    errors.emit,
    requests.emit,
    lifecycle.emit,
    callers.emit,
    policy.emit,
    services.emit,
    settings.emit,
    deployments.emit,
    system.emit,
    service_config.emit,
    image.emit,
    compose.emit,
    kubernetes.emit,
    reference.emit,
)


def emit_all(specs: Sequence[Spec], root: Path) -> list[Artefact]:
    """Every artefact of the specs that needs no other tool; formatting and compiling come after."""
    return [
        *(artefact for spec in specs for emit in PER_SYSTEM for artefact in emit(spec)),
        *schema.emit(),
        *readme.emit(specs, root),
        Artefact("docs/errors.md", catalogue()),
        Artefact("generated/__init__.py", _PACKAGE),
    ]


_PACKAGE = '"""Everything that is generated from spec/. Do not edit; run `nox -s generate`."""\n'
