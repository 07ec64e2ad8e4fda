"""The scripts of an entity, each assembled from what its operation needs.

Redis runs the whole text of a script in each call, so whatever a call has no use for is left out of it:

- `L.name`, or `L.name.part`, is replaced by the constant that it stands for. Tables stay in a table `L`.
- A branch that begins with a constant which the lifecycle does not have is left out.
- Of the functions and locals at the left margin only those remain that the operation refers to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from runtime.stores.redis.connection.client import compute_digest
from runtime.stores.redis.lua_table import LuaTable
from runtime.stores.redis.lua_text import render_choice, to_lua

_TEXT = r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|--[^\n]*"""
"""A string or a comment, in which no name means anything."""
_CONSTANT = re.compile(_TEXT + r"|\bL\.(?P<path>\w+(?:\.\w+)*)")
_NAME = re.compile(_TEXT + r"|(?P<name>\b[A-Za-z_]\w*(?:\.\w+)?)")
_START = re.compile(r"(?:function (?P<function>[\w.]+)\(|local (?P<locals>[\w, ]+?)(?: =.*)?$)")
_RULED_OUT = re.compile(
    rf"(?P<indent> *)(?P<word>if|elseif) (?:nil|false|not true|not {_TEXT})(?: and (?!.* or ).*)? then"
)
_RULED_IN = re.compile(rf"(?P<indent> *)if (?:true|not nil|not false|{_TEXT}) then")


_LAZY_TABLES = """local L = setmetatable({}, {__index = function(tables, name)
  tables[name] = M.make_table(name)
  return tables[name]
end})

"""


_TEXTS = ("semantics", "entities", "due", "creation", "changes", "maintenance")
CREATE_AND_TAKE = "create_and_take"
"""The creation whose creator takes edges in the same step."""


class Scripts(dict[str, tuple[str, str]]):
    """By operation: its script, and the digest of that. Each is assembled when it is first needed."""

    def __init__(self, table: LuaTable) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, operation: str) -> tuple[str, str]:
        entry = "create" if operation == CREATE_AND_TAKE else operation
        text = assemble(
            [_read(name) for name in _TEXTS],
            self._table.constants_of(is_creation=operation == "create"),
            self._table.functions,
            f"local answer = M.run_{entry}()\n\n{_read('answer')}",
        )
        found = self[operation] = text, compute_digest(text)
        return found


@cache
def _read(name: str) -> str:
    return files("runtime.stores.redis").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")


class _Block(NamedTuple):
    """A function or a statement at the left margin, with the comment above it."""

    text: str
    names: tuple[str, ...]
    """What it defines."""
    needs: frozenset[str]


def assemble(texts: Sequence[str], constants: Mapping[str, Any], functions: str, end: str) -> str:
    """Return a script: what its end needs of some texts, and the end."""
    *placed, end = ("\n".join(_drop_ruled_out(_place_constants(text, constants))) for text in (*texts, end))
    blocks = [block for text in (*placed, functions) for block in _split(text)]
    needed = _follow(end, blocks)
    body = "\n".join((*(block.text for block in blocks if block in needed), end))
    return f"local M = {{}}\n{_render_tables(body, constants)}{body}"


def _place_constants(text: str, constants: Mapping[str, Any]) -> str:
    def place(match: re.Match[str]) -> str:
        if match["path"] is None:
            return match[0]
        value: Any = constants
        for name in match["path"].split("."):
            value = value[name] if value is not None else None
        if isinstance(value, Mapping | list | tuple):
            return match[0]
        # What is not there cannot be indexed without parentheses, not even where that is never reached.
        return "(nil)" if value is None and text[match.end() :].startswith("[") else to_lua(value)

    return _CONSTANT.sub(place, text)


def _render_tables(text: str, constants: Mapping[str, Any]) -> str:
    """Render the tables that a text refers to; each is made when it is first needed."""
    used = sorted({match["path"].split(".")[0] for match in _CONSTANT.finditer(text) if match["path"]})
    if not used:
        return ""
    choices = render_choice("make_table", {name: constants[name] for name in used})
    return f"{_LAZY_TABLES}{choices}\n"


def _drop_ruled_out(text: str) -> Iterator[str]:
    """Leave out branches that constants rule out, which are those of conditions that begin with one."""
    rest = text.split("\n")[::-1]
    while rest:
        line = rest.pop()
        if match := _RULED_OUT.fullmatch(line):
            _pop_branch(rest, match["indent"])
            if match["word"] == "if":
                _begin_with_next(rest, match["indent"])
        elif match := _RULED_IN.fullmatch(line):
            yield f"{match['indent']}do"
            branch = _pop_branch(rest, match["indent"])
            while rest[-1] != f"{match['indent']}end":
                rest.pop()
            rest += reversed(branch)
        else:
            yield line


def _pop_branch(rest: list[str], indent: str) -> list[str]:
    """Take the lines of a branch from the rest of a text."""
    found = []
    while not rest[-1].startswith((f"{indent}end", f"{indent}else")):
        found.append(rest.pop())
    return found


def _begin_with_next(rest: list[str], indent: str) -> None:
    """Make the branch after one that is left out the first, if there is another."""
    line = rest.pop()[len(indent) :]
    if line == "else":
        rest.append(f"{indent}do")
    elif line.startswith("elseif"):
        rest.append(f"{indent}{line.removeprefix('else')}")


def _split(text: str) -> Iterator[_Block]:
    """Split a text at its left margin."""
    above: list[str] = []
    block: list[str] = []
    for line in text.split("\n"):
        if _START.match(line):
            if any(map(_START.match, block)):
                yield _to_block(block)
                block = []
            block += [*above, line]
            above = []
        elif line.startswith("--") or not line:
            above.append(line)
        else:
            block += [*above, line]
            above = []
    if block:
        yield _to_block(block)


def _to_block(lines: Sequence[str]) -> _Block:
    text = "\n".join(lines)
    start = next(match for line in lines if (match := _START.match(line)))
    names = start["function"] or start["locals"]
    return _Block(text, tuple(names.split(", ")), _find_names(text))


def _find_names(text: str) -> frozenset[str]:
    names = {match["name"] for match in _NAME.finditer(text) if match["name"]}
    # A name of a table, such as `M` in `M.read`, is needed too.
    return frozenset(names | {name.partition(".")[0] for name in names})


def _follow(end: str, blocks: Iterable[_Block]) -> Collection[_Block]:
    """Return all blocks that the end of a script needs, and those that they need."""
    known = {name: block for block in blocks for name in block.names}
    found: set[_Block] = set()
    left = [_find_names(end)]
    while left:
        needed = {known[name] for name in left.pop() if name in known} - found
        found |= needed
        left += (block.needs for block in needed)
    return found
