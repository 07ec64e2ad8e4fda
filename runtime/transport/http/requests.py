"""Decode HTTP requests: path, query and body to a message, within their limits."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from runtime.model.json_text import NotJson, Numeral, decode_json
from runtime.model.system import Method, Route
from runtime.transport.http.codec import Codec, Field, descriptor_of
from runtime.transport.http.values import InvalidValue

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
WITH_BODY = frozenset(("POST", "PUT", "PATCH"))
_MAX_PARAMETERS = 100
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_BOOLEANS = {"true": True, "false": False}
_NUMBERS = frozenset(
    (
        *(FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64),
        *(FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64),
        *(FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT),
    )
)


class BodyTooLarge(Exception):
    """The body exceeds the limit."""


class ClientDisconnected(Exception):
    """The client disconnected before its request was complete."""


class UnsupportedMedia(Exception):
    """The media type of the body is not supported; the message has it."""


class RequestReader:
    """Decoder of the requests of one method."""

    def __init__(self, method: Method, route: Route, codec: Codec) -> None:
        descriptor = descriptor_of(method.request)
        self.has_body = route.method in WITH_BODY
        in_path = [field.name for field in descriptor.fields if f"{{{field.name}}}" in route.path]
        self._in_path = {name: _Parameter(descriptor.fields_by_name[name], codec) for name in in_path}
        elsewhere = (*in_path, route.body)
        others = [field for field in descriptor.fields if field.name not in elsewhere]
        # The body is optional where all its fields are.
        self.needs_body = self.has_body and any(field.containing_oneof is None for field in others)
        self._read = codec.reader(method.request, without=in_path)
        self._in_query = {codec.name(field): _Parameter(field, codec) for field in others}
        self._make = method.request

    def from_body(self, body: bytes, path: Mapping[str, str]) -> Message:
        """Decode a JSON body. Raises NotJson or InvalidValue."""
        if not body:
            if self.needs_body:
                raise NotJson("it is empty")
            return self._with_path(self._make(), path)
        return self._with_path(self._read(decode_json(body)), path)

    def from_query(self, query: bytes, path: Mapping[str, str]) -> Message:
        """Decode a query. Raises InvalidValue."""
        given: dict[str, list[str]] = {}
        if query:
            try:
                pairs = parse_qsl(
                    query.decode("ascii"),
                    keep_blank_values=True,
                    errors="strict",
                    max_num_fields=_MAX_PARAMETERS,
                )
            except UnicodeError:
                raise InvalidValue("must be UTF-8 behind its percent signs", "query") from None
            except ValueError:
                raise InvalidValue(f"must have at most {_MAX_PARAMETERS} parameters", "query") from None
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
    """A field in the path or in the query; in the query it is repeated for each element."""

    def __init__(self, field: FieldDescriptor, codec: Codec) -> None:
        self.attribute = field.name
        self.shown = codec.name(field)
        self._field: Field = codec.field(field)
        self._repeated = field.is_repeated
        self._parse_text = _make_text_parser(field, codec)

    def read(self, name: str, texts: list[str]) -> Any:
        if not self._repeated and len(texts) > 1:
            raise InvalidValue("must be given once", name)
        try:
            values = [self._parse_text(text) for text in texts]
            return self._field.read(values if self._repeated else values[0])
        except InvalidValue as error:
            raise error.within(name) from None


def _make_text_parser(field: FieldDescriptor, codec: Codec) -> Callable[[str], Any]:
    """Make the function that parses a parameter to a JSON value, so that it is read as a body is."""
    if codec.has_json(field):
        return _parse_json
    if field.enum_type is None and field.cpp_type in _NUMBERS:
        return _parse_number
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return lambda text: _BOOLEANS.get(text, text)
    return str


def _parse_number(text: str) -> Any:
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if len(text) < 19 and text.removeprefix("-").isdigit() else Numeral(text)


def _parse_json(text: str) -> Any:
    try:
        return decode_json(text.encode())
    except NotJson:
        raise InvalidValue("must be JSON") from None


async def read_body(receive: Receive, declared: bytes | None, most: int) -> bytes:
    """Read the body of a request, with its limit checked as it arrives."""
    if declared is not None and int(declared) > most:
        raise BodyTooLarge
    event = await receive()
    body: bytes = event.get("body", b"")
    if event["type"] == "http.request" and not event.get("more_body"):
        if len(body) > most:
            raise BodyTooLarge
        return body
    parts, size = [body], len(body)
    while event["type"] == "http.request":
        if size > most:
            raise BodyTooLarge
        if not event.get("more_body"):
            return b"".join(parts)
        event = await receive()
        parts.append(event.get("body", b""))
        size += len(parts[-1])
    raise ClientDisconnected


def check_media(headers: Mapping[bytes, bytes]) -> None:
    """Refuse a body whose headers declare another type than JSON."""
    encoding = headers.get(b"content-encoding")
    if encoding is not None and encoding.strip().lower() != b"identity":
        raise UnsupportedMedia(f"encoded as {_printable(encoding)}")
    given = headers.get(b"content-type")
    if given == b"application/json":
        return
    if given is None:
        raise UnsupportedMedia("of a type that is not said")
    media, *parameters = (part.strip().lower() for part in given.split(b";"))
    charsets = [part.partition(b"=")[2].strip(b'"') for part in parameters if part.startswith(b"charset")]
    if media != b"application/json" or any(each not in (b"utf-8", b"utf8") for each in charsets):
        raise UnsupportedMedia(_printable(given))


def _printable(header: bytes) -> str:
    """Return the printable characters of a header, for a message."""
    return "".join(each for each in header.decode("latin-1")[:100] if each.isprintable())
