"""Metrics of a node: calls by method, code and caller, transitions, and entities in its stores."""

from __future__ import annotations

import urllib.request

import pytest

from generated.studio.lifecycle import FILM
from generated.studio.system import SYSTEM
from handlers.studio.ledger import FilmRecord
from runtime.call import Call
from runtime.model.system import Event
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.memory import MemoryStore
from tests.runtime.hand_world import HandWorld, make_call


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_calls_are_counted_by_method_code_and_caller() -> None:
    """Every call that is over is counted once, with the time it took."""
    metrics = Metrics()
    count = metrics.call_counter("S.M")
    for code, caller in (("OK", "desk"), ("OK", "desk"), ("NOT_FOUND", "")):
        count(code, caller, 0.25)
    assert value(metrics, "charter_calls_total", method="S.M", code="OK", caller="desk") == 2
    assert value(metrics, "charter_calls_total", method="S.M", code="NOT_FOUND", caller="") == 1
    assert value(metrics, "charter_call_seconds_sum", method="S.M") == 0.75
    assert metrics.served == 3


def test_events_are_counted_whatever_the_level() -> None:
    """An event of the spec is counted also where its line is below the level of the log."""
    metrics, world = Metrics(), HandWorld()
    log = Log("test", "ERROR", world)
    log.counts = metrics.event_counters(["rare", "never"])
    call = Call(world=world, log=log, caller="")
    for _ in range(2):
        call.tell(Event("rare", "INFO"), "it happened")
    call.tell(Event("other", "INFO"), "not one of them")
    assert value(metrics, "charter_events_total", event="rare") == 2
    assert value(metrics, "charter_events_total", event="never") == 0
    assert value(metrics, "charter_events_total", event="other") is None


async def test_a_store_is_counted_when_metrics_are_read() -> None:
    """The number in each state and the age of the oldest come from the store itself."""
    metrics, world = Metrics(), HandWorld()
    store: MemoryStore[FilmRecord] = MemoryStore(SYSTEM, FILM, FilmRecord, world, metrics)
    for key in "abc":
        await store.create(FilmRecord(key), make_call(world))
        world.wall_ms += 1000
    await store.transition("a", "begin", make_call(world, caller="foreman"))
    counts = {
        name: value(metrics, "charter_entities", entity="film", state=name) for name in FILM.states.values()
    }
    assert counts == {"WAITING": 2, "DEVELOPING": 1, "DEVELOPED": 0, "SPOILED": 0, "WITHDRAWN": 0}
    assert value(metrics, "charter_oldest_age_seconds", entity="film", state="WAITING") == 2.0
    assert value(metrics, "charter_oldest_age_seconds", entity="film", state="DEVELOPED") == 0.0
    moved = {"entity": "film", "transition": "begin", "actor": "foreman"}
    assert value(metrics, "charter_transitions_total", **moved) == 1


async def test_an_age_is_never_negative() -> None:
    """A clock that steps back does not make an entity younger than nothing."""
    metrics, world = Metrics(), HandWorld()
    store: MemoryStore[FilmRecord] = MemoryStore(SYSTEM, FILM, FilmRecord, world, metrics)
    await store.create(FilmRecord("a"), make_call(world))
    world.wall_ms -= 5000
    assert value(metrics, "charter_oldest_age_seconds", entity="film", state="WAITING") == 0.0


def test_metrics_are_served_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port, once asked for, offers the metrics as text until it is stopped."""
    metrics = Metrics()
    metrics.count_transition("film", "begin", "foreman")
    ports: list[int] = []
    from prometheus_client import start_http_server

    def on_any_port(port: int, **options: object) -> object:
        server, thread = start_http_server(port, addr="127.0.0.1", **options)  # type: ignore[arg-type]
        ports.append(server.server_port)
        return server, thread

    monkeypatch.setattr("prometheus_client.start_http_server", on_any_port)
    stop = metrics.serve(0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/metrics", timeout=30) as answer:
            assert b'charter_transitions_total{actor="foreman"' in answer.read()
    finally:
        stop()
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/metrics", timeout=30)
