"""How handlers get what their constructors ask for, and what they cannot have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from msgspec.structs import replace

from generated.taskqueue.clients import JobInternalServiceClient
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.services import JobInternalService
from generated.taskqueue.settings import GatewaySettings, JobSettings, QueueSettings
from generated.taskqueue.system import SYSTEM
from handlers.taskqueue.gateway import Gateway
from handlers.taskqueue.job import Job, JobRecord
from handlers.taskqueue.worker import Worker
from runtime.call import Channel
from runtime.model.lifecycles import Kept
from runtime.model.system import System
from runtime.node.wiring import Wiring, WiringError, handler_class, make_memory_stores
from runtime.observe.metrics import Metrics
from runtime.stores.contract import EntityStore
from runtime.stores.memory import MemoryStore
from runtime.world import World
from tests.runtime.hand_world import HandWorld

VALUES = {
    "MAX_DEDUP_KEYS": 5,
    "MAX_RETAINED_JOBS": 2,
    "MAX_OUTPUT_BYTES": 10,
    "HEARTBEAT_INTERVAL_MS": 1000,
    "WORKER_ID": "w1",
    "WORKER_SLOTS": 3,
    "JOB_HANDLERS": None,
}


class Recorded:
    """Writes down who asks for a channel to what."""

    def __init__(self, system: System = SYSTEM) -> None:
        self.asked: list[tuple[str, str]] = []
        self.world = HandWorld()
        metrics = Metrics()
        self.wiring = Wiring(
            system,
            self.world,
            VALUES,
            self.channel_for,
            make_memory_stores(SYSTEM, self.world, metrics, VALUES),
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
    module = ModuleType("handlers.taskqueue.queue")

    class Queue:
        """Takes whatever the test gives it as constructor."""

    module.Queue = Queue  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        yield Queue


def refusal(component: str = "queue") -> str:
    with pytest.raises(WiringError) as refused:
        Recorded().wiring.make(component)
    return str(refused.value)


@pytest.mark.req("TQ-018", "TQ-012")
def test_a_handler_gets_what_it_asks_for_by_type() -> None:
    """The gateway has the world and one typed client for each service that it names, as itself."""
    recorded = Recorded()
    gateway = recorded.wiring.make("gateway")
    assert isinstance(gateway, Gateway)
    assert recorded.asked == [
        ("gateway", "JobInternalService"),
        ("gateway", "QueueInternalService"),
        ("gateway", "ResultInternalService"),
    ]
    held = vars(gateway)
    assert held["_world"] is recorded.world
    assert isinstance(held["_jobs"], JobInternalServiceClient)


@pytest.mark.req("TQ-012", "TQ-013", "CH-72")
def test_a_holder_gets_the_store_of_its_entity() -> None:
    """The job service has a store for its own records, bounded by its setting, and no client of anybody."""
    recorded = Recorded()
    job = recorded.wiring.make("job")
    assert isinstance(job, Job)
    assert recorded.asked == []
    store = vars(job)["_records"]
    assert isinstance(store, MemoryStore)
    assert vars(vars(store)["_table"])["_max_terminal"] == 2


@pytest.mark.req("TQ-016", "TQ-144")
def test_a_worker_knows_the_coordinator_only() -> None:
    """The worker asks for one service, and its settings are its own."""
    recorded = Recorded()
    assert isinstance(recorded.wiring.make("worker"), Worker)
    assert recorded.asked == [("worker", "CoordinatorInternalService")]


@pytest.mark.req("TQ-022", "TQ-023")
def test_a_service_outside_the_matrix_is_not_to_be_had(odd: type[Any]) -> None:
    """A handler that asks for a service it may not call is not made at all."""

    def init(self: object, jobs: JobInternalService) -> None: ...

    odd.__init__ = init
    assert refusal() == "queue asks for JobInternalService, which the caller matrix does not let it call."


@pytest.mark.req("TQ-018")
def test_a_store_belongs_to_its_holder(odd: type[Any]) -> None:
    """A handler that holds no entity gets no store."""

    def init(self: object, records: EntityStore[JobRecord]) -> None: ...

    odd.__init__ = init
    assert refusal() == "queue asks for a store and holds 0 kinds of entity; it must be one."


def test_what_a_server_keeps_is_not_in_memory() -> None:
    """The store of the one contract is that in memory; others have protocols of their own."""
    kept = replace(JOB, kept=Kept(store="postgres", url="", table="", history=""))
    with pytest.raises(WiringError, match="job asks for an EntityStore of what is not kept in memory"):
        Recorded(replace(SYSTEM, lifecycles={"job": kept})).wiring.make("job")


def test_the_settings_of_another_component_are_not_to_be_had(odd: type[Any]) -> None:
    """What is asked for and not offered is named, with what could be had instead."""

    def init(self: object, world: World, own: QueueSettings, settings: GatewaySettings) -> None: ...

    odd.__init__ = init
    message = refusal()
    assert "queue asks for settings" in message and "QueueSettings and the services" in message


def test_a_component_without_its_class_is_told(odd: type[Any]) -> None:
    """A module that lacks the class of its component is named."""
    del sys.modules["handlers.taskqueue.queue"].Queue
    with pytest.raises(WiringError, match=r"handlers/taskqueue/queue\.py has no class Queue\."):
        handler_class("taskqueue", "queue")


def test_settings_are_typed_and_taken_from_what_was_read() -> None:
    """A component's settings hold the values of its own variables."""
    assert SYSTEM.settings["job"].of(VALUES) == JobSettings(max_dedup_keys=5, max_retained_jobs=2)
