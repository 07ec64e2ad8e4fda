"""Between records and rows: states are words in the file and numbers in Python, times are microseconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct, json

from runtime.model.lifecycles import Lifecycle
from runtime.stores.layouts.sqlite import KeptInSqlite
from runtime.stores.semantics.rules import EPOCH, to_moment
from runtime.stores.sqlite.statements import RECORD

Convert = Callable[[Any], Any]
_MICROSECOND = EPOCH.resolution


class RowCodec:
    """How the records of one kind are written to and read from their table."""

    def __init__(self, lifecycle: Lifecycle, record: type[Any]) -> None:
        self._record = record
        self.names: tuple[str, ...] = record.__struct_fields__
        # A field may be called as a type is, so the names in the class are no names of types.
        hints = get_type_hints(record, vars(sys.modules[record.__module__]), {})
        kept = lifecycle.stored_as(KeptInSqlite)
        words = kept.words if kept else lifecycle.states
        self.word: Mapping[int, str] = words
        self.number = {word: number for number, word in words.items()}
        encoders = {name: self._encoder(name, hints[name], lifecycle.status) for name in self.names}
        self._encoders = {name: encode for name, encode in encoders.items() if encode is not None}
        decoders = {name: self._decoder(name, hints[name], lifecycle.status) for name in self.names}
        self._decoders = [(name, decode) for name, decode in decoders.items() if decode is not None]
        self._parameters = {name: f"{RECORD}{name}" for name in self.names}

    def read(self, columns: Sequence[str], row: Sequence[Any]) -> Any:
        """Return the record of a row, by the names of its columns."""
        values = dict(zip(columns, row, strict=True))
        for name, decode in self._decoders:
            if (value := values[name]) is not None:
                values[name] = decode(value)
        return self._record(**values)

    def write(self, record: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
        """Return the parameters of a statement that writes a record, or some of its fields."""
        parameters = self._parameters
        return {parameters[name]: self.encode(name, getattr(record, name)) for name in names or self.names}

    def changes(self, old: Any, new: Any) -> list[str]:
        """Return the fields in which two records differ."""
        return [name for name in self.names if getattr(old, name) != getattr(new, name)]

    def encode(self, name: str, value: Any) -> Any:
        """Return a value of a field as SQLite keeps it."""
        encode = self._encoders.get(name)
        return value if encode is None or value is None else encode(value)

    def _encoder(self, name: str, hint: Any, status: str) -> Convert | None:
        if name == status:
            return self.word.__getitem__
        if _is_of(hint, datetime):
            return to_moment
        return _to_json if _structured(hint) is not None else None

    def _decoder(self, name: str, hint: Any, status: str) -> Convert | None:
        if name == status:
            return self.number.__getitem__
        if _is_of(hint, datetime):
            return to_time
        if (kind := _structured(hint)) is not None:
            return partial(json.decode, type=kind)
        return bool if _is_of(hint, bool) else None


def to_time(microseconds: int) -> datetime:
    """Return a time as Python has it."""
    return EPOCH + microseconds * _MICROSECOND


def _to_json(value: Any) -> str:
    return json.encode(value).decode()


def _is_of(hint: Any, kind: type) -> bool:
    return kind in (get_args(hint) or (hint,))


def _structured(hint: Any) -> Any | None:
    """Return the type of a field that is kept as JSON; None for one that is a column by itself."""
    for each in (hint, *get_args(hint)):
        if get_origin(each) is tuple or (isinstance(each, type) and issubclass(each, Struct)):
            return each
    origin = get_origin(hint)
    return hint if isinstance(origin, type) and issubclass(origin, Mapping) else None
