"""The generated scripts of an entity, and how a call of one is laid out: its header says what it takes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

_LINE = re.compile(r"^-- (once|part|each) (key|argument) (\S+)(?: +(\S+))?$")
_CUT = re.compile(r"^-- cut (\S+) (\d+)$")
_PLACE = re.compile(r"\{(\w+)\}")
PAIRS = "pairs"
"""Under this name an entity has the arguments that its own come before."""

_READING = ("due",)

Given = Mapping[str, Any]
_Key = Callable[[Given], str]


class ScriptCall(NamedTuple):
    """One call: the script, how many keys it has, and the keys and arguments."""

    text: str
    digest: str
    keys: int
    handed: list[Any]
    reads: bool = False
    """Whether it changes nothing."""
    in_json: bool = False
    """Whether what it answers is one text."""

    def by_digest(self) -> tuple[Any, ...]:
        """The command that takes the script from the cache of the server."""
        return ("EVALSHA", self.digest, self.keys, *self.handed)

    def in_full(self) -> tuple[Any, ...]:
        """The command that brings the script along."""
        return ("EVAL", self.text, self.keys, *self.handed)


@dataclass
class Script:
    """One script, ready to be called under a prefix."""

    name: str
    text: str
    prefix: str
    key_field: str
    once_keys: list[tuple[str, str]] = field(default_factory=list)
    part_keys: list[tuple[str, str]] = field(default_factory=list)
    each_keys: list[tuple[str, str]] = field(default_factory=list)
    once_arguments: list[str] = field(default_factory=list)
    each_arguments: list[str] = field(default_factory=list)
    has_pairs: bool = False
    in_json: bool = False
    cuts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.digest = _digest(self.text)
        self._read_header()
        self._once = [self._key(pattern) for _, pattern in self.once_keys]
        self._fixed = (
            [self.prefix + pattern for _, pattern in self.once_keys]
            if not any("{" in pattern for _, pattern in self.once_keys)
            else None
        )
        self.taken = [
            (name, name.removeprefix("take."), self.cuts.get(name))
            for name in self.each_arguments
            if name.startswith("take.")
        ]
        """The arguments that a change takes along, what they are called elsewhere, and where they are cut."""
        self._arguments = _picking(self.each_arguments)
        self._parts = [self._key(pattern) for _, pattern in self.part_keys]
        self._each = [self._key(pattern) for _, pattern in self.each_keys]

    def call(
        self, variables: Given, once: Given, each: Sequence[Given], parts: Sequence[str] = ()
    ) -> ScriptCall:
        """A call for some entities, and for the parts of some signatures.

        Names in capitals are variables of the environment.
        """
        handed: list[Any] = (
            list(self._fixed) if self._fixed is not None else [key(once) for key in self._once]
        )
        for entity in each:
            for key in self._each:
                handed.append(key(entity))
        for signature in parts:
            part = {"signature": signature}
            handed += [key(part) for key in self._parts]
        keys = len(handed)
        for name in self.once_arguments:
            handed.append(variables[name] if name.isupper() else once[name])
        arguments = self._arguments
        for entity in each:
            handed += arguments(entity)
            if self.has_pairs:
                pairs = entity[PAIRS]
                handed.append(len(pairs))
                handed += pairs
        handed += parts
        return ScriptCall(self.text, self.digest, keys, handed, self.name in _READING, self.in_json)

    def _read_header(self) -> None:
        for line in self.text.splitlines():
            if not line.startswith("--"):
                return
            if match := _LINE.match(line):
                times, kind, name, pattern = match.groups()
                if kind == "key":
                    keys = {"once": self.once_keys, "part": self.part_keys, "each": self.each_keys}
                    keys[times].append((name, pattern))
                else:
                    (self.once_arguments if times == "once" else self.each_arguments).append(name)
            elif match := _CUT.match(line):
                self.cuts[match[1]] = int(match[2])
            elif line == "-- each pairs":
                self.has_pairs = True
            elif line == "-- answers JSON":
                self.in_json = True

    def _key(self, pattern: str) -> _Key:
        """A key as a function of what an entity has under the names of its placeholders."""
        pieces = _PLACE.split(pattern)
        if len(pieces) == 1:
            whole = self.prefix + pattern
            return lambda _: whole
        names = [self._place(name) for name in pieces[1::2]]
        if len(names) == 1:
            head, name, tail = self.prefix + pieces[0], names[0], pieces[2]
            if not tail:
                return lambda given: f"{head}{given[name]}"
            return lambda given: f"{head}{given[name]}{tail}"
        prefix, texts = self.prefix, pieces[0::2]

        def make(given: Given) -> str:
            filled = [prefix + texts[0]]
            for name, text in zip(names, texts[1:], strict=True):
                filled += (given[name], text)
            return "".join(filled)

        return make

    def _place(self, name: str) -> str:
        """The name under which an entity has what stands in a placeholder."""
        if name == self.key_field:
            return "key"
        for argument in (f"believed.{name}", f"believed..{name}", f"new.{name}"):
            if argument in self.each_arguments:
                return argument
        return name


def _picking(names: Sequence[str]) -> Callable[[Given], Sequence[Any]]:
    """What an entity has under some names."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda given: [given[name] for name in names]


def decoded(text: str) -> Any:
    """What a script has written as JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text, strict=False)  # In it is what somebody else wrote, and what is no text.


def reading_at_once(commands: Sequence[Sequence[Any]]) -> ScriptCall:
    """A call that reads what commands read, the key of each of which is its second word."""
    text = _at_once()
    keys = [command[1] for command in commands if len(command) > 1]
    words = [word for command in commands for word in (len(command), *command)]
    return ScriptCall(text, _digest(text), len(keys), [*keys, *words], reads=True)


@cache
def _at_once() -> str:
    return files("runtime.stores.redis").joinpath("at_once.lua").read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def scripts(system: str, entity: str, key_field: str, prefix: str) -> dict[str, Script]:
    """Every script of an entity by its name."""
    folder = files(f"generated.{system}").joinpath("lua", entity)
    found = {}
    for path in folder.iterdir():
        name, _, kind = path.name.rpartition(".")
        if kind == "lua":
            found[name] = Script(name, path.read_text(encoding="utf-8"), prefix, key_field)
    return found
