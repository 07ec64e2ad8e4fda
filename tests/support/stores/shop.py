"""A place where the contract suite meets an engine: its stores, a clock that is moved by hand, and calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from runtime.call import Call
from runtime.call.conditions import Condition
from runtime.model.lifecycles import Lifecycle
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.contract import LeaseProof, LeaseSettlement
from runtime.stores.semantics.rules import EPOCH
from tests.runtime.hand_world import HandWorld, Lines, make_call
from tests.support.stores.engines import ENGINES
from tests.support.stores.records import VARIABLES


class Shop:
    """The stores of one engine."""

    def __init__(
        self, engine: str, variables: Mapping[str, Any] = VARIABLES, *, max_terminal: int = 0
    ) -> None:
        self.engine = engine
        self.world = HandWorld()
        self.lines = Lines()
        self.metrics = Metrics()
        self._open = ENGINES[engine](self.world, self.metrics, variables, max_terminal)

    def store(self, lifecycle: Lifecycle) -> Any:
        """The store of an entity, an `EntityStore` of any records."""
        return self._open(lifecycle)

    async def open(self, lifecycle: Lifecycle) -> Any:
        """The store of an entity, which has begun to listen where its engine has to."""
        store = self._open(lifecycle)
        if hasattr(store, "open"):
            await store.open(Log("test", "ERROR", self.world, self.lines))
        return store

    def call(self, caller: str) -> Call:
        return make_call(self.world, caller=caller, lines=self.lines)

    def pass_s(self, seconds: float) -> None:
        self.world.wall_ms += int(seconds * 1000)

    def now(self, plus_s: float = 0.0) -> Any:
        """This moment, or one some seconds away, as a record has it."""
        return EPOCH + timedelta(milliseconds=self.world.wall_ms, seconds=plus_s)


def proof(record: Any, fence: str = "fence") -> LeaseProof:
    """The proof of the lease that a record has."""
    return LeaseProof(record.owner, getattr(record, fence))


def settlement(record: Any, edge: str, *, is_final: bool = False, **given: Any) -> LeaseSettlement:
    """A settlement of the lease that a record has."""
    fence = "fence" if hasattr(record, "fence") else "tries"
    return LeaseSettlement(record.key, proof(record, fence), edge, given, is_final)


@contextmanager
def refused(role: str) -> Iterator[None]:
    """Expect the condition of a role."""
    with pytest.raises(Condition) as found:
        yield
    assert found.value.code == role
