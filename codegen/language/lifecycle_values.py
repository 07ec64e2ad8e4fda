"""Values of the lifecycle: growth, defaults, limits, overrides of variables, and the public status."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from codegen.language.base import LowerName, Part, TypeName, UpperName


class Multiplier(Part):
    """Growth of a number of the record by a factor, rounded up."""

    times: Annotated[float, Field(gt=1.0)] = Field(description="The factor.")
    max: UpperName = Field(description="Variable with the greatest value that the number grows to.")


class Default(Part):
    """A default that depends on an enum field of the record."""

    by: LowerName = Field(description="Record field, an enum.")
    of: dict[UpperName, UpperName] = Field(
        description="Every value of the enum, and the variable with the default for it."
    )


class Ceiling(Part):
    """The most entities in an index; at the limit a creation raises the condition of role `store_full`."""

    index: LowerName = Field(description="The index of the entity.")
    max: UpperName = Field(description="Variable with the number; 0 is no limit.")


class Overrides(Part):
    """Other values of variables for entities with a certain text in their record."""

    by: LowerName = Field(description="Record field, a string, that is compared.")
    for_: dict[str, dict[UpperName, int | float]] = Field(
        alias="for",
        description="Texts, and for each the variables of `backoff` and `dead_letter` with their values; for "
        "any other text the environment counts.",
    )


class PublicStatus(Part):
    """The public status: an enum of the API, in place of the states."""

    enum: TypeName = Field(description="The enum of `types.yaml`.")
    as_: dict[UpperName, UpperName] = Field(
        alias="as", description="Every state, and the value of the enum that clients see for it."
    )
