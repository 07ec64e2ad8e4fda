"""The one record that holds all the tables of a system, and the packages around them."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, fill
from codegen.spec import Spec

TRANSPORT_LIMITS = {"message_bytes": 4 * 1024 * 1024, "concurrent_streams": 1024, "connections": 4096}
"""Limits that the transport holds to; a spec that names one under `policies.limits` sets it."""


def emit(spec: Spec) -> Iterator[Artefact]:
    named = spec.system.policies.limits
    limits = {name: named[name].value if name in named else usual for name, usual in TRANSPORT_LIMITS.items()}
    text = fill("python/system.py.j2", spec, **limits)
    yield Artefact(f"generated/{spec.name}/system.py", text)
    yield Artefact(f"generated/{spec.name}/__init__.py", fill("python/package.py.j2", spec))
