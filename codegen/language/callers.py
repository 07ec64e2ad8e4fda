"""`callers.yaml`: principals, their proofs, and the caller matrix. All other calls are denied."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from codegen.language.base import Doc, LowerName, Part, TypeName

Proof = Literal["anonymous", "certificate", "token", "store"]
"""`store`: it never calls over the wire; the server of the store authorizes it."""


class Principal(Part):
    """An identity that calls: a component, or a client from outside."""

    proof: Annotated[tuple[Proof, ...], Field(min_length=1)] = Field(
        description="How it proves itself, any one of: `certificate` of mutual TLS with its SPIFFE URI, "
        "bearer `token`, `store` (it calls no method; the credentials of the bucket authorize it), or "
        "`anonymous` (no proof; one principal at most)."
    )
    without_tokens: bool = Field(
        default=False,
        description="Whether an anonymous principal is accepted only by nodes that accept neither tokens "
        "nor certificates.",
    )
    doc: Doc | None = Field(default=None, description="What it is; for the reference page.")


class Permission(Part):
    """Conditions of a permission to call a method."""

    only: dict[LowerName, str | int | bool] = Field(
        default={},
        description="Request fields and the only value that each may have; any other call is denied.",
    )
    call: LowerName | None = Field(
        default=None,
        description="Call mode of `policies.calls` that the typed client of this caller uses; the callee "
        "does not see it. Without it the handler chooses.",
    )
    doc: Doc | None = Field(default=None, description="Why it is so; for the reference page.")


def _find_grant_shape(entry: Any) -> str:
    return "conditional" if isinstance(entry, dict) else "plain"


Grant = Annotated[
    Annotated[TypeName, Tag("plain")]
    | Annotated[dict[TypeName, Permission], Field(min_length=1, max_length=1), Tag("conditional")],
    Discriminator(_find_grant_shape),
]
"""A method by its name, or `Method: {only: …}`."""


class CallersFile(Part):
    """Principals, their proofs, and the caller matrix; any other call is denied."""

    principals: Annotated[dict[LowerName, Principal], Field(min_length=1)] = Field(
        description="Principals by name; every component is one."
    )
    may_call: dict[LowerName, dict[TypeName, tuple[Grant, ...]]] = Field(
        description="Caller matrix: principals, services and the methods that may be called, each by its "
        "name or as `Method: {only: …}`."
    )

    def get_grants(self, principal: str, service: str) -> dict[str, Permission]:
        """Map the methods of a service that a principal may call to their conditions."""
        found: dict[str, Permission] = {}
        for entry in self.may_call.get(principal, {}).get(service, ()):
            found.update({entry: Permission()} if isinstance(entry, str) else entry)
        return found
