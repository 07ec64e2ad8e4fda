"""The registry of storage engines: found by name, from this package, by registration or by an entry point."""

from __future__ import annotations

from typing import Any

import pytest

from generated.bakery.lifecycle import CAKE
from generated.bakery.records import CakeRecord
from generated.bakery.system import SYSTEM as BAKERY
from generated.studio.system import SYSTEM
from runtime.model.lifecycles import Lifecycle
from runtime.observe.metrics import Metrics
from runtime.stores import engine as registry
from runtime.stores.engine import Engine, EngineContext, make_engine, register_engine
from runtime.stores.memory import MemoryStore
from runtime.stores.node_stores import Stores
from tests.runtime.hand_world import HandWorld

CONTEXT = EngineContext(SYSTEM, HandWorld(), Metrics(), {}, "a node")


class Drawer(Engine):
    """An engine from outside."""

    def make_store(self, lifecycle: Lifecycle, record: type[Any]) -> Any:
        return object()


@pytest.mark.parametrize("name", ["memory", "postgres", "redis", "s3", "sqlite"])
def test_own_engines_are_found_by_name(name: str) -> None:
    assert name in type(make_engine(name, CONTEXT)).__name__.lower()


def test_an_engine_from_outside_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    register_engine("drawer", Drawer)
    engine = make_engine("drawer", CONTEXT)
    lifecycle = next(iter(SYSTEM.lifecycles.values()))
    assert isinstance(engine, Drawer)
    assert engine.store(lifecycle, object) is engine.store(lifecycle, object)


def test_an_engine_of_another_package_is_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        def load(self) -> type[Engine]:
            return Drawer

    asked: list[dict[str, str]] = []

    def find(**given: str) -> list[Entry]:
        asked.append(given)
        return [Entry()]

    monkeypatch.setattr(registry, "entry_points", find)
    assert isinstance(make_engine("drawer", CONTEXT), Drawer)
    assert asked == [{"group": "charter.engines", "name": "drawer"}]


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"no storage engine 'drawer'; there are .*memory, postgres, redis"):
        make_engine("drawer", CONTEXT)


def test_a_deployment_names_the_engine_of_all_entities() -> None:
    """An entity that a database keeps by default is in memory where the deployment says so."""
    stores = Stores(BAKERY, HandWorld(), Metrics(), {}, "stall", engine="memory")
    assert (CAKE.engine, stores.engine_of(CAKE)) == ("postgres", "memory")
    assert isinstance(stores.of(CAKE, CakeRecord), MemoryStore)
    assert stores.of(CAKE, CakeRecord) is stores.of(CAKE, CakeRecord)
