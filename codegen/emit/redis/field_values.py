"""What fields have, before and after a change, as expressions of Lua."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from codegen.emit.redis.redis_entity import RedisEntity
from codegen.emit.redis.script_arguments import identifier


@dataclass(frozen=True)
class Value:
    """What a field has: an expression of Lua, or nothing; `maybe` where only the script knows."""

    text: str
    is_set: bool = True
    maybe: bool = False


UNSET = Value("nil", is_set=False)
Get = Callable[[str], Value]
"""The value of a field at some moment."""


@dataclass
class Reading:
    """The fields of a hash that a script reads, each under a name of its own."""

    entity: RedisEntity
    names: dict[str, str] = field(default_factory=dict)

    def __call__(self, name: str) -> str:
        # The dot of a field that only scripts know becomes a second underscore, which no field's name has.
        return self.names.setdefault(name, "was_" + identifier(name))

    @property
    def given(self) -> dict[str, str]:
        """Those which the entity may have been created with and nobody has written since."""
        return {name: local for name, local in self.names.items() if self.entity.in_given(name)}

    def value(self, name: str) -> Value:
        """A field as it was."""
        return Value(self(name), maybe=name.startswith(".") or self.entity.optional(name))
