"""One new entity that nothing can stand in the way of: from its record straight to the command for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from runtime.stores.redis.entities import Entities

Command = tuple[Any, ...]


class Plain:
    """The commands for entities of one kind, of the script that creates one by itself, or for a holder."""

    def __init__(self, entities: Entities[Any], script: str) -> None:
        found, lifecycle, variables = entities.scripts[script], entities.lifecycle, entities.variables
        generated = import_module(f"generated.{entities.system.name}.creation")
        self._encode = generated.ENCODERS[lifecycle.entity][script]
        self._prefix, self._variables = entities.prefix, variables
        keys = [entities.prefix + pattern for _, pattern in found.once_keys]
        self._head = ("EVALSHA", found.digest, len(keys) + len(found.each_keys), *keys)
        self._shared = [name for name in found.once_arguments if name != "actor"]
        self.text = found.text
        ceiling = lifecycle.refuses.most if lifecycle.refuses else ""
        bounds = [variables.get(name) for name in (ceiling, entities.kept.replicas or "")]
        self._is_bounded = any(int(each or 0) for each in bounds)
        """Whether every entity is counted first, or waited for until replicas have it."""

    def command(self, record: Any, actor: str, idle: str) -> Command | None:
        """The command for a record, with a holder that may wait for it; None if the script does not do."""
        if self._is_bounded or (handed := self._encode(record, idle, self._prefix, self._variables)) is None:
            return None
        keys, arguments = handed
        shared = [self._variables[name] for name in self._shared]
        return (*self._head, *keys, actor, *shared, *arguments)
