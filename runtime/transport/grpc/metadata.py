"""The metadata of a call that the engine reads."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.call.context import LONGEST_REQUEST_ID, REQUEST_ID_HEADER
from runtime.call.identity import TOKEN_HEADER, TWO_TOKENS, AuthenticationError
from runtime.observe.tracing import TRACE_HEADER, TRACE_ID_HEADER

_NAMES: dict[str | bytes, str] = {
    spelling: name
    for name in (TOKEN_HEADER, REQUEST_ID_HEADER, TRACE_HEADER, TRACE_ID_HEADER)
    for spelling in (name, name.encode())
}


class CallMetadata:
    """The proof of a caller by token, the id of its request and its trace."""

    __slots__ = ("authorization", "request_id", "trace")

    def __init__(self) -> None:
        self.authorization: str | AuthenticationError | None = None
        self.request_id: str | None = None
        self.trace: str | None = None


def read_metadata(pairs: Iterable[tuple[str | bytes, str | bytes]]) -> CallMetadata:
    """Read the metadata of a call; names and values are text or bytes, as the carrier has them."""
    found = CallMetadata()
    for key, given in pairs:
        if (name := _NAMES.get(key)) is None:
            continue
        value = given if isinstance(given, str) else given.decode(errors="replace")
        if name == REQUEST_ID_HEADER:
            found.request_id = value[:LONGEST_REQUEST_ID]
        elif name == TRACE_HEADER:
            found.trace = value
        elif name == TRACE_ID_HEADER:
            found.trace = found.trace or value
        else:
            found.authorization = TWO_TOKENS if found.authorization is not None else value
    return found
