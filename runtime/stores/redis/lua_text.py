"""Values of Python as Lua text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Code(str):
    """An expression of Lua."""


def to_lua(value: Any) -> str:
    """Render a value as Lua; a mapping leaves out what is None."""
    if isinstance(value, Code):
        return str(value)
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_escape(each) for each in value.encode("utf-8")) + '"'
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        items = (f"[{to_lua(key)}] = {to_lua(each)}" for key, each in value.items() if each is not None)
        return "{" + ", ".join(items) + "}"
    return "{" + ", ".join(map(to_lua, value)) + "}"


def render_choice(name: str, values: Mapping[Any, Any]) -> str:
    """Render a function from a name to its value, so that a call makes only what it needs."""
    choices = (f"  if name == {to_lua(key)} then return {to_lua(value)} end" for key, value in values.items())
    return "\n".join((f"function M.{name}(name)", *choices, "end"))


def concatenate(*parts: str) -> str:
    """Render the concatenation of some expressions, without those that are empty."""
    return " .. ".join(part for part in parts if part)


def _escape(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 and byte not in (34, 92) else f"\\{byte:03d}"
