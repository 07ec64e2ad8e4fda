"""Traces: spans of calls hang together, and without an exporter nothing is traced."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from generated.studio.messages import HangFilmRequest, HangFilmResponse
from generated.studio.system import SYSTEM
from runtime.call import Call
from runtime.call.conditions import Failure
from runtime.call.endpoint import Endpoint, make_endpoints
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.observe.tracing import Tracer, make_tracer, trace_id
from runtime.world import RealWorld

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class FixedRack:
    """Remembers the trace context that its handler was given."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []

    async def hang_film(self, request: HangFilmRequest, call: Call) -> HangFilmResponse:
        self.seen.append(call.trace)
        return HangFilmResponse(accepted=True)

    async def take_film(self, request: object, call: Call) -> None:
        raise AssertionError

    async def remove_film(self, request: object, call: Call) -> None:
        raise AssertionError


def make_traced_endpoint() -> tuple[Endpoint, FixedRack, InMemorySpanExporter]:
    exporter, world, rack = InMemorySpanExporter(), RealWorld(), FixedRack()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    log = Log("rack", "ERROR", world)
    made = make_endpoints(SYSTEM, {"RackService": rack}, world, log, Metrics(), Tracer(provider))
    return made["/studio.lab.v1.RackService/HangFilm"], rack, exporter


async def test_a_call_is_a_span_below_that_of_its_caller() -> None:
    """The span has the caller's trace, and the handler passes on the span's own context."""
    endpoint, rack, exporter = make_traced_endpoint()
    await endpoint.answer("desk", HangFilmRequest(film_id="j"), None, trace=PARENT)
    (span,) = exporter.get_finished_spans()
    assert span.name == "RackService.HangFilm"
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
    assert rack.seen == [f"00-0af7651916cd43dd8448eb211c80319c-{span.context.span_id:016x}-01"]
    assert span.attributes is not None
    assert span.attributes["film_id"] == "j"


async def test_a_refused_call_ends_its_span_with_the_code() -> None:
    """A denial is a span with an error status and the code that was answered."""
    endpoint, _, exporter = make_traced_endpoint()
    try:
        await endpoint.answer("printer", HangFilmRequest(film_id="j"), None)
    except Failure as failure:
        assert failure.grpc == "PERMISSION_DENIED"
    (span,) = exporter.get_finished_spans()
    assert span.attributes is not None
    assert span.attributes["rpc.grpc.status_code"] == "PERMISSION_DENIED"
    assert not span.status.is_ok


def test_nothing_is_traced_unless_an_exporter_is_configured() -> None:
    """Without an endpoint to send spans to there is no tracer."""
    assert make_tracer("any", {}) is None


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (PARENT, "0af7651916cd43dd8448eb211c80319c"),
        ("order-17", "order-17"),
        ("00-zz-zz-01", "00-zz-zz-01"),
        ("a b", None),
        ("", None),
        ("x" * 129, None),
        (None, None),
    ],
)
def test_the_id_of_a_trace(given: str | None, found: str | None) -> None:
    """That of a W3C context, or a plain one; anything odd is none."""
    assert trace_id(given) == found


async def test_a_plain_id_is_passed_on_as_it_is() -> None:
    """It can be no parent of a span, but it is the trace of the call."""
    endpoint, rack, exporter = make_traced_endpoint()
    await endpoint.answer("desk", HangFilmRequest(film_id="j"), None, trace="order-17")
    assert rack.seen == ["order-17"]
    assert len(exporter.get_finished_spans()) == 1
