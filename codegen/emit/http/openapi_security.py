"""Who may call a method over HTTP, and how they prove themselves, as OpenAPI says it."""

from __future__ import annotations

from codegen.emit.http.openapi_schemas import Schema
from codegen.source.spec import MethodRow, Spec


def callers(spec: Spec, row: MethodRow) -> list[str]:
    """Who may call a method."""
    return [principal for principal, ref in spec.permissions if ref == row.ref]


def security(spec: Spec, row: MethodRow) -> list[Schema]:
    """One way of proof is enough; nothing is, too, where somebody without proof may call."""
    allowed = callers(spec, row)
    proofs = {proof for name in allowed for proof in spec.callers.principals[name].proof}
    listeners = [each for _, _, _, node in spec.nodes() for each in (node.http,) if each is not None]
    open_here = "anonymous" in proofs or any(each.anonymous in allowed for each in listeners)
    found: list[Schema] = [{name: []} for name in schemes(spec) if name in proofs]
    return [{}, *found] if open_here else found


def schemes(spec: Spec) -> dict[str, Schema]:
    """The ways of proof that a system has."""
    proofs = {proof for row in spec.callers.principals.values() for proof in row.proof}
    known: dict[str, Schema] = {
        "token": {"type": "http", "scheme": "bearer", "description": "The token of a principal."},
        "certificate": {"type": "mutualTLS", "description": "The certificate of a principal."},
    }
    return {name: row for name, row in known.items() if name in proofs}


def listed(names: list[str]) -> str:
    """Names in a sentence."""
    return ", ".join(sorted(names)) or "nobody"
