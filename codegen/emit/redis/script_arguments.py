"""What a script is handed: names for its keys and arguments, in the order in which they are passed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    """and break do else elseif end false for function if in local nil not or repeat return then true
    until while""".split()  # noqa: SIM905
)


@dataclass
class Layout:
    """Keys and arguments that come once, and those that come again for each entity.

    A name with a dot, such as `index_waiting.high`, is one entry of a table in the script. Patterns of keys
    have the names of fields in braces; whoever calls the script fills them in.
    """

    once_keys: dict[str, str] = field(default_factory=dict)
    each_keys: dict[str, str] = field(default_factory=dict)
    part_keys: dict[str, str] = field(default_factory=dict)
    """Keys that come again for each part of an index that is looked at, behind those of the entities; the
    last arguments are the signatures of these parts."""
    once_arguments: dict[str, str] = field(default_factory=dict)
    each_arguments: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    open_ended: bool = False
    """Whether the arguments of each entity end with a number of pairs."""
    in_json: bool = False
    """Whether what is answered is one text."""

    def copy(self) -> Layout:
        """All of it as it is now."""
        return Layout(
            once_keys=dict(self.once_keys),
            each_keys=dict(self.each_keys),
            once_arguments=dict(self.once_arguments),
            each_arguments=dict(self.each_arguments),
        )

    def restore(self, earlier: Layout) -> None:
        """Forgets what was added since."""
        self.once_keys, self.each_keys = earlier.once_keys, earlier.each_keys
        self.once_arguments, self.each_arguments = earlier.once_arguments, earlier.each_arguments

    def key(self, name: str, pattern: str) -> str:
        """A key that the whole call shares."""
        self.once_keys[name] = pattern
        return name

    def key_table(self, name: str, patterns: dict[str, str]) -> str:
        """Keys that the whole call shares, by the value of an enum."""
        for word, pattern in patterns.items():
            self.once_keys[f"{name}.{word}"] = pattern
        return name

    def part_key(self, name: str, pattern: str) -> str:
        """A key of each part."""
        self.part_keys[name] = pattern
        return name

    def each_key(self, name: str, pattern: str) -> str:
        """A key of each entity."""
        self.each_keys[name] = pattern
        return name

    def each_key_table(self, name: str, patterns: dict[str, str]) -> str:
        """Keys of each entity, by the value of an enum; the table in the script has their places."""
        for word, pattern in patterns.items():
            self.each_keys[f"{name}.{word}"] = pattern
        return name

    def argument(self, name: str) -> str:
        """An argument that the whole call shares; names in capitals are variables of the environment."""
        return self.once_arguments.setdefault(name, identifier(name))

    def each_argument(self, name: str) -> str:
        """An argument of each entity."""
        return self.each_arguments.setdefault(name, identifier(name))

    def constant(self, name: str, expression: str) -> str:
        """Something that is the same in every call."""
        self.constants[name] = expression
        return name

    def header(self) -> Iterator[str]:
        """What the engine reads to lay out a call."""
        names = [*self.once_keys, *self.each_keys, *self.part_keys]
        width = max(map(len, names), default=0)
        all_keys = (("once", self.once_keys), ("each", self.each_keys), ("part", self.part_keys))
        for times, keys in all_keys:
            for name, pattern in keys.items():
                yield f"-- {times} key {name:<{width}} {pattern}"
        for times, arguments in (("once", self.once_arguments), ("each", self.each_arguments)):
            for name in arguments:
                yield f"-- {times} argument {name}"
        if self.open_ended:
            yield "-- each pairs"
        if self.in_json:
            yield "-- answers JSON"
        for name, most in self.cuts.items():
            yield f"-- cut {name} {most}"

    def prologue(self) -> Iterator[str]:
        """Names for all that comes once."""
        yield f"local KEYS_ONCE, KEYS_EACH = {len(self.once_keys)}, {len(self.each_keys)}"
        if self.part_keys:
            yield f"local KEYS_PART = {len(self.part_keys)}"
        if not self.open_ended:
            yield f"local ARGV_ONCE, ARGV_EACH = {len(self.once_arguments)}, {len(self.each_arguments)}"
        yield from _named(self.once_keys, "KEYS[{}]")
        yield from _named({name: "" for name in self.each_keys if "." in name}, "{}", [*self.each_keys])
        yield from (f"local {name} = {expression}" for name, expression in self.constants.items())
        for number, (name, local) in enumerate(self.once_arguments.items(), 1):
            yield f"local {local} = {f'tonumber(ARGV[{number}])' if name.isupper() else f'ARGV[{number}]'}"

    def each_names(self) -> Iterator[str]:
        """Names for all that comes again for each entity."""
        for number, name in enumerate(self.each_keys, 1):
            if "." not in name:
                yield f"local {name} = KEYS[k + {number}]"
        for number, local in enumerate(self.each_arguments.values(), 1):
            yield f"local {local} = ARGV[a + {number}]"


def _named(names: dict[str, str], form: str, places: list[str] | None = None) -> Iterator[str]:
    order = places or [*names]
    tables: dict[str, list[str]] = {}
    for name in names:
        table, dot, word = name.partition(".")
        value = form.format(order.index(name) + 1)
        if dot:
            tables.setdefault(table, []).append(f"{entry(word)} = {value}")
        else:
            yield f"local {name} = {value}"
    for table, entries in tables.items():
        yield f"local {table} = {{{', '.join(entries)}}}"


def identifier(name: str) -> str:
    """A name as a local variable of Lua."""
    found = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"{found}_" if found in _RESERVED else found


def entry(word: str) -> str:
    """A word as the key of an entry in a table of Lua."""
    return word if _NAME.fullmatch(word) and word not in _RESERVED else f"[{quoted(word)}]"


def quoted(text: str) -> str:
    """A text as a literal of Lua."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return "'" + escaped.replace("\0", "\\0") + "'"


def listed(texts: Iterable[str]) -> str:
    """Texts as arguments of a call."""
    return ", ".join(map(quoted, texts))
