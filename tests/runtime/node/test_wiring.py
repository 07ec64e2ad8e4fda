"""Dependency injection: the arguments that constructors of handlers get, and those that they cannot have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from generated.studio.clients import LedgerServiceClient
from generated.studio.services import LedgerService
from generated.studio.settings import DeskSettings, LedgerSettings, RackSettings
from generated.studio.system import SYSTEM
from handlers.studio.desk import Desk
from handlers.studio.ledger import FilmRecord, Ledger
from handlers.studio.printer import Printer
from runtime.call import Channel
from runtime.model.system import System
from runtime.node.wiring import Wiring, WiringError, handler_class
from runtime.observe.metrics import Metrics
from runtime.stores.contract import EntityStore
from runtime.stores.memory import MemoryStore
from runtime.stores.node_stores import Stores
from runtime.world import World
from tests.runtime.hand_world import HandWorld

VALUES = {
    "KNOWN_ORDERS": 5,
    "KEPT_FILMS": 2,
    "PRINTER_ID": "p1",
    "PRINTER_PAUSE_MS": 100,
    "LETTER_BYTES": 4096,
}


class Recorded:
    """Writes down who asks for a channel to what."""

    def __init__(self, system: System = SYSTEM) -> None:
        self.asked: list[tuple[str, str]] = []
        self.world = HandWorld()
        self.wiring = Wiring(
            system,
            self.world,
            VALUES,
            self.channel_for,
            Stores(SYSTEM, self.world, Metrics(), VALUES, "node"),
        )

    def channel_for(self, component: str, service: str) -> Channel:
        self.asked.append((component, service))
        return _Dead()


class _Dead:
    """A channel that is bound and never used."""

    def bind(self, *_: Any) -> Any:
        return None


@pytest.fixture
def odd() -> Iterator[type[Any]]:
    """A component's module whose class a test can change."""
    module = ModuleType("handlers.studio.rack")

    class Rack:
        """Takes whatever the test gives it as constructor."""

    module.Rack = Rack  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        yield Rack


def refusal(component: str = "rack") -> str:
    with pytest.raises(WiringError) as refused:
        Recorded().wiring.make(component)
    return str(refused.value)


@pytest.mark.req("TQ-018", "TQ-012")
def test_a_handler_gets_its_arguments_by_type() -> None:
    """The desk has the world and one typed client for each service that it names, as itself."""
    recorded = Recorded()
    desk = recorded.wiring.make("desk")
    assert isinstance(desk, Desk)
    assert recorded.asked == [
        ("desk", "LedgerService"),
        ("desk", "RackService"),
        ("desk", "ArchiveService"),
    ]
    attributes = vars(desk)
    assert attributes["_world"] is recorded.world
    assert isinstance(attributes["_ledger"], LedgerServiceClient)


@pytest.mark.req("TQ-012", "TQ-013", "CH-72")
def test_a_holder_gets_the_store_of_its_entity() -> None:
    """The ledger has a store for its own records, bounded by its setting, and no client."""
    recorded = Recorded()
    ledger = recorded.wiring.make("ledger")
    assert isinstance(ledger, Ledger)
    assert recorded.asked == []
    store = vars(ledger)["_records"]
    assert isinstance(store, MemoryStore)
    assert vars(vars(store)["_table"])["_max_terminal"] == 2


@pytest.mark.req("TQ-016", "TQ-144")
def test_a_component_has_the_clients_of_its_own_alone() -> None:
    """The printer asks for one service, and its settings are its own."""
    recorded = Recorded()
    assert isinstance(recorded.wiring.make("printer"), Printer)
    assert recorded.asked == [("printer", "ForemanService")]


@pytest.mark.req("TQ-022", "TQ-023")
def test_a_service_outside_the_matrix_is_not_to_be_had(odd: type[Any]) -> None:
    """A handler that asks for a service it may not call is not made at all."""

    def init(self: object, ledger: LedgerService) -> None: ...

    odd.__init__ = init
    assert refusal() == "rack asks for LedgerService, which the caller matrix does not let it call."


@pytest.mark.req("TQ-018")
def test_a_store_belongs_to_its_holder(odd: type[Any]) -> None:
    """A handler without an entity gets no store."""

    def init(self: object, records: EntityStore[FilmRecord]) -> None: ...

    odd.__init__ = init
    assert refusal() == "rack asks for a store and holds 0 kinds of entity; it must be one."


def test_the_settings_of_another_component_are_not_to_be_had(odd: type[Any]) -> None:
    """An argument that is not available is named, with the available ones."""

    def init(self: object, world: World, own: RackSettings, settings: DeskSettings) -> None: ...

    odd.__init__ = init
    message = refusal()
    assert "rack asks for settings" in message and "RackSettings and the services" in message


def test_a_component_without_its_class_is_reported(odd: type[Any]) -> None:
    """A module that lacks the class of its component is named."""
    del sys.modules["handlers.studio.rack"].Rack
    with pytest.raises(WiringError, match=r"handlers/studio/rack\.py has no class Rack\."):
        handler_class("studio", "rack")


def test_settings_are_typed_values_of_the_variables() -> None:
    """A component's settings have the values of its own variables."""
    assert SYSTEM.settings["ledger"].of(VALUES) == LedgerSettings(known_orders=5, kept_films=2)
