"""Call policies: deadlines, retries, idempotency, call modes, limits and keepalive as typed data."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.source.spec import MethodRow, Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    calls = {row.ref: (row, find_retry_key(row)) for row in spec.methods.values()}
    yield Artefact(
        f"generated/{spec.name}/policy.py", render_template("python/policy.py.j2", spec, calls=calls)
    )


def find_retry_key(row: MethodRow) -> str | None:
    """Find the request field that makes a retry idempotent, where a retry depends on one."""
    idempotency = row.method.idempotency
    return idempotency.key[0] if idempotency.class_ == "when_keyed" and row.retry != "never" else None
