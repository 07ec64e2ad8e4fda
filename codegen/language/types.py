"""`types.yaml`: enums and messages, a section for each proto file, with the rules of their fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel, StringConstraints

from codegen.language.base import Count, Doc, LowerName, Part, Positive, TypeName, UpperName

FieldNumber = Annotated[int, Field(ge=1, le=536_870_911)]
FieldType = Annotated[
    str,
    StringConstraints(
        pattern=r"^(?:repeated )?[A-Za-z][A-Za-z0-9]*$|^map<[a-z0-9]+, ?[A-Za-z][A-Za-z0-9]*>$",
    ),
    Field(
        description=(
            "A scalar, `json`, `timestamp`, a message or an enum; `repeated T`; `map<K, V>`. `json` is JSON "
            "text on the wire of gRPC and stands as it is in a JSON body."
        ),
        examples=["string", "JobSpec", "repeated JobStatus", "map<string, string>"],
    ),
]


class EnumValue(Part):
    """One value of an enum and its number on the wire."""

    number: Count
    doc: Doc | None = None


class Reserved(Part):
    """Numbers and names of deleted members, which are never used again."""

    numbers: tuple[Count, ...] = ()
    names: tuple[str, ...] = ()


class EnumType(Part):
    """An enum; the value of number 0 means unspecified."""

    doc: Doc | None = None
    values: Annotated[dict[UpperName, EnumValue], Field(min_length=1)]
    prefix: str | None = Field(default=None, description="Left out where the values are shown in JSON.")
    spelled: Literal["upper", "lower", "title"] = Field(
        default="upper", description="How the values are spelled in JSON, queries and stores that hold text."
    )
    reserved: Reserved = Reserved()

    def word(self, value: str) -> str:
        """Format a value as it is spelled in JSON."""
        short = value.removeprefix(self.prefix or "")
        if self.spelled == "title":
            return short.capitalize()
        return short.lower() if self.spelled == "lower" else short


class Bounds(Part):
    """A lower bound, an upper bound or both."""

    min: int | None = None
    max: int | None = None


class ItemRules(Part):
    """What a value must satisfy before a handler sees it."""

    non_empty: bool = Field(default=False, description="Text, bytes or list must not be empty.")
    min_length: Positive | None = Field(default=None, description="In characters.")
    max_length: int | LowerName | None = Field(
        default=None, description="In characters; a number or a limit."
    )
    max_bytes: int | LowerName | None = Field(default=None, description="Encoded size; a number or a limit.")
    min: int | None = None
    max: int | None = None
    pattern: str | None = Field(default=None, description="Regular expression for the whole text.")
    uuid: bool = Field(default=False, description="Lowercase text of a UUID of any version.")
    uuid4: bool = Field(default=False, description="Lowercase text of a version 4 UUID.")
    defined: bool = Field(default=False, description="The number must be a value of the enum.")
    specified: bool = Field(default=False, description="The enum must not be its unspecified value.")
    one_of: tuple[str, ...] | None = Field(default=None, description="Enum values or texts that are allowed.")
    storable: bool | None = Field(
        default=None,
        description=(
            "Text or JSON without NUL and half surrogates, which databases refuse. Unless said it is so "
            "wherever an entity of the system is kept outside of memory."
        ),
    )
    json_object: bool = Field(default=False, description="JSON must be an object.")


class FieldRules(ItemRules):
    """What a field must satisfy, and how it is put in order, before a handler sees it."""

    required: bool = Field(default=False, description="A message field must be present.")
    required_when: dict[LowerName, UpperName] = Field(
        default={}, description="An optional field must be present where enum fields beside it have a value."
    )
    required_unless: tuple[LowerName, ...] = Field(
        default=(),
        description="The field must be given, or one of these beside it. 0, false and empty are not given.",
    )
    must_be: bool | None = Field(default=None, description="The only value a bool may have.")
    max_items: int | LowerName | None = Field(
        default=None, description="Most elements of a list; a number or a limit."
    )
    items: ItemRules | None = Field(default=None, description="Rules of each element of a list.")
    sha256_of: LowerName | None = Field(
        default=None,
        description="Lowercase hex SHA-256 of a bytes field beside it; empty is filled in, wrong is refused.",
    )
    default: int | str | None = Field(default=None, description="Takes the place of 0 or empty.")
    absent: int | float | str | bool | None = Field(
        default=None, description="Takes the place of an optional field that is absent."
    )
    filled: bool = Field(
        default=False, description="A message that is absent is made of what stands in for its fields."
    )
    clamp: Bounds | None = Field(default=None, description="Moves a number to the nearest bound.")
    upper: bool = Field(default=False, description="Puts text in upper case.")
    cut: int | LowerName | None = Field(
        default=None, description="Cuts text to so many bytes, at a character."
    )
    page_size: LowerName | None = Field(default=None, description="Page size under a pagination policy.")
    page_token: LowerName | None = Field(default=None, description="Page token under a pagination policy.")


class MessageField(Part):
    """One field of a message."""

    number: FieldNumber
    type: FieldType
    optional: bool = Field(default=False, description="May be absent, which is not the same as empty or 0.")
    rules: FieldRules = FieldRules()
    doc: Doc | None = None


class MessageType(Part):
    """A message. Numbers run without gaps; a deleted field leaves its number and name reserved."""

    doc: Doc | None = None
    fields: dict[LowerName, MessageField] = {}
    reserved: Reserved = Reserved()


class ProtoTypes(Part):
    """The types that one proto file defines."""

    enums: dict[TypeName, EnumType] = {}
    messages: dict[TypeName, MessageType] = {}


class TypesFile(RootModel[dict[LowerName, ProtoTypes]]):
    """Enums and messages by the proto that defines them."""

    model_config = {"frozen": True, "strict": True}
