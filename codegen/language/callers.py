"""`callers.yaml`: who there is, how each proves itself, and who may call what. The rest is denied."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from codegen.language.base import Doc, LowerName, Part, TypeName

Proof = Literal["anonymous", "certificate", "token", "store"]
"""`store`: nothing of it comes over the wire; what it may do is up to the server that keeps the entities."""


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


def _shape(entry: Any) -> str:
    return "conditional" if isinstance(entry, dict) else "plain"


Grant = Annotated[
    Annotated[TypeName, Tag("plain")]
    | Annotated[dict[TypeName, Permission], Field(min_length=1, max_length=1), Tag("conditional")],
    Discriminator(_shape),
]
"""A method by its name, or `Method: {only: …}`."""


class CallersFile(Part):
    """Principals and the caller matrix."""

    principals: Annotated[dict[LowerName, Principal], Field(min_length=1)]
    may_call: dict[LowerName, dict[TypeName, tuple[Grant, ...]]]

    def grants(self, principal: str, service: str) -> dict[str, Permission]:
        """The methods of a service that a principal may call, with the conditions of each."""
        found: dict[str, Permission] = {}
        for entry in self.may_call.get(principal, {}).get(service, ()):
            found.update({entry: Permission()} if isinstance(entry, str) else entry)
        return found
