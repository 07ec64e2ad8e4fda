"""`callers.yaml`: principals, their proofs, and the caller matrix. All other calls are denied."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from codegen.language.base import Doc, LowerName, Part, TypeName

Proof = Literal["anonymous", "certificate", "token", "store"]
"""`store`: it never calls over the wire; the server of the store authorizes it."""


class Principal(Part):
    """Someone who calls."""

    proof: Annotated[tuple[Proof, ...], Field(min_length=1)]
    without_tokens: bool = Field(
        default=False,
        description="Whoever is anonymous is let in only where there are no tokens and no certificates.",
    )
    doc: Doc | None = None


class Permission(Part):
    """Conditions under which a method may be called."""

    only: dict[LowerName, str | int | bool] = Field(
        default={}, description="Request fields and the only value each may have."
    )
    call: LowerName | None = Field(
        default=None,
        description="The call mode in which the engine of this caller makes the call; the callee does not "
        "see it.",
    )
    doc: Doc | None = None


def _find_grant_shape(entry: Any) -> str:
    return "conditional" if isinstance(entry, dict) else "plain"


Grant = Annotated[
    Annotated[TypeName, Tag("plain")]
    | Annotated[dict[TypeName, Permission], Field(min_length=1, max_length=1), Tag("conditional")],
    Discriminator(_find_grant_shape),
]
"""A method by its name, or `Method: {only: …}`."""


class CallersFile(Part):
    """Principals and the caller matrix."""

    principals: Annotated[dict[LowerName, Principal], Field(min_length=1)]
    may_call: dict[LowerName, dict[TypeName, tuple[Grant, ...]]]

    def get_grants(self, principal: str, service: str) -> dict[str, Permission]:
        """Map the methods of a service that a principal may call to their conditions."""
        found: dict[str, Permission] = {}
        for entry in self.may_call.get(principal, {}).get(service, ()):
            found.update({entry: Permission()} if isinstance(entry, str) else entry)
        return found
