"""From an HTTP request to a message: path, query or body, within their limits."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from runtime.model.json_text import NotJson, Numeral, read
from runtime.model.system import Method, Route
from runtime.transport.http.codec import Codec, Field, descriptor_of
from runtime.transport.http.values import Misread

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
WITH_BODY = frozenset(("POST", "PUT", "PATCH"))
_MOST_PARAMETERS = 100
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}
_NUMBERS = frozenset(
    (
        *(FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64),
        *(FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64),
        *(FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT),
    )
)


class TooLarge(Exception):
    """A body of more bytes than are taken."""


class Gone(Exception):
    """The client closed the connection before its request was complete."""


class WrongMedia(Exception):
    """A body of a type that is not read here. The text says which."""


class RequestReader:
    """Makes the request message of one method."""

    def __init__(self, method: Method, route: Route, codec: Codec) -> None:
        descriptor = descriptor_of(method.request)
        self.has_body = route.method in WITH_BODY
        in_path = [field.name for field in descriptor.fields if f"{{{field.name}}}" in route.path]
        self._in_path = {name: _Parameter(descriptor.fields_by_name[name], codec) for name in in_path}
        elsewhere = (*in_path, route.body)
        others = [field for field in descriptor.fields if field.name not in elsewhere]
        # Where everything in it may be left out, so may the body.
        self.needs_body = self.has_body and any(field.containing_oneof is None for field in others)
        self._read = codec.reader(method.request, without=in_path)
        self._in_query = {codec.name(field): _Parameter(field, codec) for field in others}
        self._make = method.request

    def from_body(self, body: bytes, path: Mapping[str, str]) -> Message:
        """The message of a JSON body. Raises NotJson or Misread."""
        if not body:
            if self.needs_body:
                raise NotJson("it is empty")
            return self._with_path(self._make(), path)
        return self._with_path(self._read(read(body)), path)

    def from_query(self, query: bytes, path: Mapping[str, str]) -> Message:
        """The message of a query. Raises Misread."""
        given: dict[str, list[str]] = {}
        if query:
            try:
                pairs = parse_qsl(
                    query.decode("ascii"),
                    keep_blank_values=True,
                    errors="strict",
                    max_num_fields=_MOST_PARAMETERS,
                )
            except UnicodeError:
                raise Misread("must be UTF-8 behind its percent signs", "query") from None
            except ValueError:
                raise Misread(f"must have at most {_MOST_PARAMETERS} parameters", "query") from None
            for name, value in pairs:
                given.setdefault(name, []).append(value)
        found = {
            parameter.attribute: parameter.read(name, texts)
            for name, texts in given.items()
            if (parameter := self._in_query.get(name)) is not None
        }
        return self._with_path(self._make(**found), path)

    def _with_path(self, message: Message, path: Mapping[str, str]) -> Message:
        for name, text in path.items():
            parameter = self._in_path[name]
            setattr(message, name, parameter.read(parameter.shown, [text]))
        return message


class _Parameter:
    """A field whose value comes as text: in the path, or in the query, there as often as it has elements."""

    def __init__(self, field: FieldDescriptor, codec: Codec) -> None:
        self.attribute = field.name
        self.shown = codec.name(field)
        self._field: Field = codec.field(field)
        self._repeated = field.is_repeated
        self._plain = _plain_of(field, codec)

    def read(self, name: str, texts: list[str]) -> Any:
        if not self._repeated and len(texts) > 1:
            raise Misread("must be given once", name)
        try:
            values = [self._plain(text) for text in texts]
            return self._field.read(values if self._repeated else values[0])
        except Misread as misread:
            raise misread.within(name) from None


def _plain_of(field: FieldDescriptor, codec: Codec) -> Callable[[str], Any]:
    """What a text stands for in JSON, so that parameters are read as bodies are."""
    if codec.holds_json(field):
        return _json
    if field.enum_type is None and field.cpp_type in _NUMBERS:
        return _number
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return lambda text: _BOOLEANS.get(text, text)
    return str


def _number(text: str) -> Any:
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if len(text) < 19 and text.removeprefix("-").isdigit() else Numeral(text)


def _json(text: str) -> Any:
    try:
        return read(text.encode())
    except NotJson:
        raise Misread("must be JSON") from None


async def body_of(receive: Receive, declared: bytes | None, most: int) -> bytes:
    """The body of a request, counted while it comes."""
    if declared is not None and int(declared) > most:
        raise TooLarge
    event = await receive()
    body: bytes = event.get("body", b"")
    if event["type"] == "http.request" and not event.get("more_body"):
        if len(body) > most:
            raise TooLarge
        return body
    parts, size = [body], len(body)
    while event["type"] == "http.request":
        if size > most:
            raise TooLarge
        if not event.get("more_body"):
            return b"".join(parts)
        event = await receive()
        parts.append(event.get("body", b""))
        size += len(parts[-1])
    raise Gone


def check_media(headers: Mapping[bytes, bytes]) -> None:
    """Refuses a body that is not JSON by its own account."""
    encoding = headers.get(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise WrongMedia(f"encoded as {_shown(encoding)}")
    given = headers.get(b"content-type")
    if given == b"application/json":
        return
    if given is None:
        raise WrongMedia("of a type that is not said")
    media, *parameters = (part.strip().lower() for part in given.split(b";"))
    charsets = [part.partition(b"=")[2].strip(b'"') for part in parameters if part.startswith(b"charset")]
    if media != b"application/json" or any(each not in (b"utf-8", b"utf8") for each in charsets):
        raise WrongMedia(_shown(given))


def _shown(header: bytes) -> str:
    """A header's value as it may stand in a message."""
    return "".join(each for each in header.decode("latin-1")[:100] if each.isprintable())
