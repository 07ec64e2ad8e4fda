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
]


class EnumValue(Part):
    """One value of an enum."""

    number: Count = Field(description="Its number on the wire; 0 is the unspecified value.")
    doc: Doc | None = Field(default=None, description="What it means; a comment in the .proto file.")


class Reserved(Part):
    """Numbers and names of deleted members, which must not be used again."""

    numbers: tuple[Count, ...] = Field(default=(), description="Numbers of deleted members.")
    names: tuple[str, ...] = Field(default=(), description="Names of deleted members.")


class EnumType(Part):
    """An enum. Its value of number 0 means unspecified, which is what a missing field reads as."""

    doc: Doc | None = Field(default=None, description="What it is; a comment in the .proto file.")
    values: Annotated[dict[UpperName, EnumValue], Field(min_length=1)] = Field(
        description="Its values; no two enums of a proto package share the name of a value."
    )
    prefix: str | None = Field(
        default=None,
        description="What all of its values begin with, such as `STATUS_`; left out of a value in JSON, in "
        "queries and in stores that hold text.",
    )
    spelled: Literal["upper", "lower", "title"] = Field(
        default="upper",
        description="Case of a value, after the prefix, in JSON, in queries and in stores that hold text: "
        "`READY`, `ready` or `Ready`.",
    )
    reserved: Reserved = Field(default=Reserved(), description="Deleted values.")

    def word(self, value: str) -> str:
        """Format a value as it is spelled in JSON."""
        short = value.removeprefix(self.prefix or "")
        if self.spelled == "title":
            return short.capitalize()
        return short.lower() if self.spelled == "lower" else short


class Bounds(Part):
    """A lower bound, an upper bound or both."""

    min: int | None = Field(default=None, description="A smaller number becomes this; none is no bound.")
    max: int | None = Field(default=None, description="A larger number becomes this; none is no bound.")


class ItemRules(Part):
    """Checks of a value before a handler sees it; a failed one raises the condition of `invalid_request`."""

    non_empty: bool = Field(
        default=False, description="Whether text, bytes, JSON, a list or a map must not be empty."
    )
    min_length: Positive | None = Field(default=None, description="Least length of a text in characters.")
    max_length: int | LowerName | None = Field(
        default=None,
        description="Most characters of a text: a number, or the name of a limit in characters.",
    )
    max_bytes: int | LowerName | None = Field(
        default=None,
        description="Most bytes of bytes, or of text and JSON in UTF-8: a number, or the name of a limit "
        "in bytes.",
    )
    min: int | None = Field(default=None, description="Least value of a number; a smaller one is refused.")
    max: int | None = Field(default=None, description="Greatest value of a number; a larger one is refused.")
    pattern: str | None = Field(
        default=None, description="Python regular expression that the whole text must match."
    )
    uuid: bool = Field(
        default=False, description="Whether a text must be a UUID of any version in lower case, with hyphens."
    )
    uuid4: bool = Field(
        default=False, description="Whether a text must be a UUID of version 4 in lower case, with hyphens."
    )
    defined: bool = Field(
        default=False, description="Whether the number of an enum must be one of its values."
    )
    specified: bool = Field(default=False, description="Whether an enum must not have its value of number 0.")
    one_of: tuple[str, ...] | None = Field(
        default=None, description="The only values that an enum or a text may have."
    )
    storable: bool | None = Field(
        default=None,
        description="Whether text, JSON or a map must be without the character NUL, which databases "
        "refuse. By default it must where any entity of the system is kept outside of memory.",
    )
    json_object: bool = Field(default=False, description="Whether JSON must be an object, as `{…}`.")


class FieldRules(ItemRules):
    """Checks of a field, and replacements in it, before a handler sees it. An absent field passes."""

    required: bool = Field(
        default=False, description="Whether a field that is a message or a timestamp must be present."
    )
    required_when: dict[LowerName, UpperName] = Field(
        default={},
        description="Enum fields of the same message and a value of each: while one has it, this optional "
        "field must be present.",
    )
    required_unless: tuple[LowerName, ...] = Field(
        default=(),
        description="Fields of the same message: this field or one of them must be given, and 0, false and "
        "empty do not count as given.",
    )
    must_be: bool | None = Field(default=None, description="The only value that a bool may have.")
    max_items: int | LowerName | None = Field(
        default=None,
        description="Most elements of a list or a map: a number, or the name of a limit in items.",
    )
    items: ItemRules | None = Field(default=None, description="Checks of each element of a list.")
    sha256_of: LowerName | None = Field(
        default=None,
        description="Bytes field of the same message whose SHA-256, in lower-case hex, this text must be; "
        "an empty text is filled in.",
    )
    default: int | str | None = Field(
        default=None, description="Value that replaces 0 or an empty text; for an enum, the name of a value."
    )
    absent: int | float | str | bool | None = Field(
        default=None, description="Value that an optional field gets when it is absent."
    )
    filled: bool = Field(
        default=False,
        description="Whether an absent message is created, so that the replacements of its own fields apply.",
    )
    clamp: Bounds | None = Field(
        default=None, description="Bounds that a number is moved to, where `min` and `max` refuse it."
    )
    upper: bool = Field(default=False, description="Whether a text is put in upper case.")
    cut: int | LowerName | None = Field(
        default=None,
        description="Bytes of UTF-8 to which a text is cut, at a character: a number, or the name of a "
        "limit in bytes.",
    )
    page_size: LowerName | None = Field(
        default=None,
        description="Pagination policy whose default replaces 0, and whose largest size replaces more.",
    )
    page_token: LowerName | None = Field(
        default=None,
        description="Pagination policy whose bounds the number in this text must keep; empty is the first "
        "page.",
    )


class MessageField(Part):
    """One field of a message."""

    number: FieldNumber = Field(description="Its number on the wire, which never changes.")
    type: FieldType = Field(
        description="A protobuf scalar, `json`, `timestamp`, a message or an enum; `repeated T` is a list, "
        "`map<K, V>` a map. `json` is a string in the .proto file and plain JSON in a JSON body."
    )
    optional: bool = Field(
        default=False,
        description="Whether the field can be absent, which is not the same as empty or 0; without it an "
        "absent field reads as empty or 0.",
    )
    rules: FieldRules = Field(
        default=FieldRules(),
        description="Checks and replacements in requests. In a record, `cut` also holds for text that an "
        "edge takes, and `uuid`, `uuid4` and `pattern` of the key say what ids look like.",
    )
    doc: Doc | None = Field(default=None, description="What it is; a comment in the .proto file.")


class MessageType(Part):
    """A message: a request, a response, or the record of an entity."""

    doc: Doc | None = Field(default=None, description="What it is; a comment in the .proto file.")
    fields: dict[LowerName, MessageField] = Field(
        default={}, description="Its fields; their numbers run from 1 without a gap that is not reserved."
    )
    reserved: Reserved = Field(default=Reserved(), description="Deleted fields.")


class ProtoTypes(Part):
    """The types of one .proto file."""

    enums: dict[TypeName, EnumType] = Field(
        default={}, description="Its enums; a name means the same in all protos of a system."
    )
    messages: dict[TypeName, MessageType] = Field(
        default={}, description="Its messages; a name means the same in all protos of a system."
    )


class TypesFile(RootModel[dict[LowerName, ProtoTypes]]):
    """Enums and messages, by the proto of `system.yaml` that defines them, and the checks of fields."""

    model_config = {"frozen": True, "strict": True}
