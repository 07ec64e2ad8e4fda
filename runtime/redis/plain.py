"""One new entity that nothing can stand in the way of: from its record straight to the command for it.

Whoever submits one entity after the other pays for every step in between, so that they are compiled for each
kind of entity, into one function without a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from runtime.redis.entities import Entities
from runtime.redis.filling import packed, parted_by, special_fields, written_fields
from runtime.redis.given import is_packed
from runtime.redis.rows import signature
from runtime.redis.scripts import Script, placed

Command = tuple[Any, ...]
_TEXTS = ("string", "json")
_OWN = {"signature": "_parts", "owner": "_idle"}
"""What stands for that which is no field of the record."""
Make = Callable[[Any, str, str], Command | None]


class Plain:
    """The commands for entities of one kind, of the script that creates one by itself, or for a holder."""

    def __init__(self, entities: Entities[Any], script: str) -> None:
        self._entities = entities
        self._script = entities.scripts[script]
        self.text = self._script.text
        self.command: Make = self._first
        """The command for a record, an actor, and whoever may wait for it; None where the shorter script does
        not do."""

    def _first(self, record: Any, actor: str, idle: str) -> Command | None:
        """Compiles what is called from now on; a process that creates nothing never does."""
        self.command = _Compiling(self._entities, self._script).compiled()
        return self.command(record, actor, idle)


class _Compiling:
    """The text of the function, and all that it knows."""

    def __init__(self, entities: Entities[Any], script: Script) -> None:
        self._entities = entities
        self._script = script
        self._known: dict[str, Any] = {"_packed": packed, "_signature": signature}

    def compiled(self) -> Make:
        """The function for a record, an actor, and whoever may wait for it."""
        body = "\n    ".join(["return None"] if self._needs_more() else self._lines())
        exec(f"def command(_record, _actor, _idle):\n    {body}", self._known)
        made: Make = self._known["command"]
        return made

    def _needs_more(self) -> bool:
        """Whether every entity is counted first, or waited for."""
        ceiling, variables = self._entities.lifecycle.refuses, self._entities.variables
        names = (ceiling.most if ceiling else "", self._entities.kept.replicas or "")
        return any(int(variables.get(name) or 0) for name in names)

    def _lines(self) -> Iterator[str]:
        entities, kept, lifecycle = self._entities, self._entities.kept, self._entities.lifecycle
        special, written = special_fields(entities), written_fields(entities)
        names = [name for name in entities.rows.names if name not in written]
        for name in (*names, *sorted(special & written)):
            yield f"{name} = _record.{name}"
        for name, fill in lifecycle.fills.items():
            variables = entities.variables
            by = {value: variables[each] for value, each in fill.of.items() if each in variables}
            yield f"if {name} is None: {name} = {self._constant(f'_by_{name}', by)}[{fill.by}]"
        for name, other in lifecycle.copies.items():
            yield f"{name} = {other}"
        if special:
            there = " or ".join(f"{name} is not None" for name in sorted(special))
            yield f"if {there}: return None"
        if parted := parted_by(entities):
            yield f"_parts = _signature({parted}) if {parted} else {signature(())!r}"
        given = [name for name in names if name not in special]
        always = [name for name in given if name not in kept.optional]
        for name in always:
            if (text := self._written(name)) != name:
                yield f"_text_{name} = {text}"
        yield f"_fields = {{{', '.join(f'{name!r}: {self._text(name)}' for name in always)}}}"
        for name in given:
            if name in kept.optional:
                yield f"if {name} is not None: _fields[{name!r}] = {self._written(name)}"
        yield f"return ({', '.join(self._command())},)"

    def _command(self) -> Iterator[str]:
        script = self._script
        keys = [pattern for _, pattern in (*script.once_keys, *script.each_keys)]
        yield from ("'EVALSHA'", repr(script.digest), str(len(keys)))
        for number, pattern in enumerate(keys):
            yield self._key(number, pattern)
        for name in script.once_arguments:
            yield "_actor" if name == "actor" else repr(self._entities.variables[name])
        for name in script.each_arguments:
            yield self._argument(name)

    def _key(self, number: int, pattern: str) -> str:
        """A key: its texts are known by name, for there may be anything in them."""
        texts, names = placed(pattern)
        pieces = [f"{{{self._constant(f'_key_{number}_0', self._script.prefix + texts[0])}}}"]
        for place, name in enumerate(names, 1):
            pieces.append(f"{{{_OWN.get(name) or self._text(name)}}}")
            if texts[place]:
                pieces.append(f"{{{self._constant(f'_key_{number}_{place}', texts[place])}}}")
        return f'f"{"".join(pieces)}"' if names else f"_key_{number}_0"

    def _argument(self, name: str) -> str:
        if name == "key":
            return self._entities.lifecycle.key
        if name == "fields":
            # Names and values in turn, where they become fields of the hash.
            pairs = "[_each for _pair in _fields.items() for _each in _pair]"
            is_whole = is_packed(self._entities.system, self._entities.lifecycle)
            return f"_packed({'_fields' if is_whole else pairs})"
        if own := _OWN.get(name.removeprefix("believed.")):
            return own
        return self._text(name.removeprefix("new."))

    def _text(self, name: str) -> str:
        """A field as it stands in a hash, and as the function knows it; empty if it is unset."""
        written = self._written(name)
        if name in self._entities.kept.optional:
            return f"('' if {name} is None else {written})"
        return name if written == name else f"_text_{name}"

    def _written(self, name: str) -> str:
        """A field that is set, as it stands in a hash."""
        entities, kind = self._entities, self._entities.kept.types[name]
        if kind == "enum":
            return f"{self._constant(f'_words_{name}', entities.kept.words[name])}[{name}]"
        if (write := entities.rows.writers[name]) is not None:
            return f"str({self._constant(f'_write_{name}', write)}({name}))"
        return name if kind in _TEXTS else f"str({name})"

    def _constant(self, name: str, value: Any) -> str:
        self._known[name] = value
        return name
