"""The scripts of an entity, one for each operation, and calls of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import orjson

from runtime.stores.redis.lua_assembly import assemble
from runtime.stores.redis.lua_table import LuaTable
from runtime.stores.store import Unstorable

_TEXTS = ("semantics", "entities", "due", "creation", "changes", "maintenance")
CREATE_AND_TAKE = "create_and_take"
"""The creation whose creator takes edges in the same step."""


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


class Scripts:
    """The scripts of one kind of entity, each assembled when it is first called."""

    def __init__(self, table: LuaTable) -> None:
        self._table = table
        self._texts: dict[str, tuple[str, str]] = {}

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
        text, digest = self._texts.get(operation) or self._assemble(operation)
        return ScriptCall(text, digest, len(keys), (*keys, encoded, *more))

    def _assemble(self, operation: str) -> tuple[str, str]:
        entry = "create" if operation == CREATE_AND_TAKE else operation
        text = assemble(
            [_read(f"{name}.lua") for name in _TEXTS],
            self._table.constants_of(is_creation=operation == "create"),
            self._table.functions,
            f"local answer = M.run_{entry}()\n\n{_read('answer.lua')}",
        )
        found = self._texts[operation] = text, _digest(text)
        return found


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
