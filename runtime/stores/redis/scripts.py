"""The script of an entity, which is all of its operations, and calls of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import orjson

from runtime.stores.redis.lua_table import LuaTable
from runtime.stores.store import Unstorable

_MAINTENANCE = "maintenance"
_PARTS = {
    "create": ("creation",),
    "change": ("due", "changes"),
    _MAINTENANCE: ("due", "maintenance"),
}
"""By operation: the files of its script, and no others: a script makes its functions anew in each call."""


class ScriptCall(NamedTuple):
    """One call: the script, how many keys it has, and the keys and arguments."""

    text: str
    digest: str
    keys: int
    handed: Sequence[Any]
    reads: bool = False
    """Whether it changes nothing."""

    def by_digest(self) -> tuple[Any, ...]:
        """Return the command that takes the script from the cache of the server."""
        return ("EVALSHA", self.digest, self.keys, *self.handed)

    def in_full(self) -> tuple[Any, ...]:
        """Return the command that brings the script along."""
        return ("EVAL", self.text, self.keys, *self.handed)


class Script:
    """The scripts of one kind of entity: its table, and the functions that all kinds share."""

    def __init__(self, table: LuaTable) -> None:
        constants, functions = table.render()
        shared = (constants, _read("semantics.lua"), functions, _read("entities.lua"))
        texts = {
            name: "\n".join((*shared, *(_read(f"{part}.lua") for part in parts), _read("answer.lua")))
            for name, parts in _PARTS.items()
        }
        self.texts = {name: (text, _digest(text)) for name, text in texts.items()}

    def call(
        self, operation: str, arguments: Mapping[str, Any], keys: Sequence[str], more: Sequence[Any] = ()
    ) -> ScriptCall:
        """Make a call of an operation. The script knows all other keys by the prefix, and needs none of them.

        Those that are given tell a cluster where it belongs, and that all of them are in one slot.
        """
        try:
            encoded = orjson.dumps(arguments)
        except TypeError:
            raise Unstorable("a text has half a surrogate pair, which the store cannot hold") from None
        text, digest = self.texts.get(operation) or self.texts[_MAINTENANCE]
        return ScriptCall(text, digest, len(keys), (*keys, operation, encoded, *more))


def make_reading_call(commands: Sequence[Sequence[Any]]) -> ScriptCall:
    """Make a call that reads what commands read, the key of each of which is its second word."""
    text = _read("read_at_once.lua")
    keys = [command[1] for command in commands if len(command) > 1]
    words = [word for command in commands for word in (len(command), *command)]
    return ScriptCall(text, _digest(text), len(keys), [*keys, *words], reads=True)


@cache
def _read(name: str) -> str:
    return files("runtime.stores.redis").joinpath("lua", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
