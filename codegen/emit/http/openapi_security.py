"""Security schemes and requirements of an OpenAPI document."""

from __future__ import annotations

from codegen.emit.http.openapi_schemas import Schema
from codegen.source.spec import MethodRow, Spec


def list_callers(spec: Spec, row: MethodRow) -> list[str]:
    """List the principals that may call a method."""
    return [principal for principal, ref in spec.permissions if ref == row.ref]


def build_security(spec: Spec, row: MethodRow) -> list[Schema]:
    """Build the alternative security requirements; an empty one where an anonymous principal may call."""
    allowed = list_callers(spec, row)
    proofs = {proof for name in allowed for proof in spec.callers.principals[name].proof}
    listeners = [each for _, _, _, node in spec.nodes() for each in (node.http,) if each is not None]
    is_open = "anonymous" in proofs or any(each.anonymous in allowed for each in listeners)
    found: list[Schema] = [{name: []} for name in build_schemes(spec) if name in proofs]
    return [{}, *found] if is_open else found


def build_schemes(spec: Spec) -> dict[str, Schema]:
    """Build the security schemes of a system."""
    proofs = {proof for row in spec.callers.principals.values() for proof in row.proof}
    known: dict[str, Schema] = {
        "token": {"type": "http", "scheme": "bearer", "description": "The token of a principal."},
        "certificate": {"type": "mutualTLS", "description": "The certificate of a principal."},
    }
    return {name: row for name, row in known.items() if name in proofs}


def format_names(names: list[str]) -> str:
    """Format names for a sentence."""
    return ", ".join(sorted(names)) or "nobody"
