"""OpenTelemetry collector: receives every span of the nodes that are configured to export to it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import grpc.aio
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

_SEND_EVERY_MS = 100


@dataclass(frozen=True, slots=True)
class CallSpan:
    """One call that a node answered, on the wall clock."""

    trace: str
    name: str
    start_ns: int
    end_ns: int


@asynccontextmanager
async def collect_spans() -> AsyncIterator[list[CallSpan]]:
    """Collect the spans of all nodes that are started within the context."""
    spans: list[CallSpan] = []
    server = grpc.aio.server()
    add: Any = trace_service_pb2_grpc.add_TraceServiceServicer_to_server
    add(_Receiver(spans), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        with _export_spans_to(port):
            yield spans
    finally:
        await server.stop(1.0)


class _Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, spans: list[CallSpan]) -> None:
        self._spans = spans

    async def Export(self, request: Any, _context: Any) -> Any:  # noqa: N802
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self._spans.extend(
                    CallSpan(
                        each.trace_id.hex(), each.name, each.start_time_unix_nano, each.end_time_unix_nano
                    )
                    for each in scope.spans
                )
        return trace_service_pb2.ExportTraceServiceResponse()


@contextmanager
def _export_spans_to(port: int) -> Iterator[None]:
    """Set the variables by which OpenTelemetry finds the collector; nodes inherit them."""
    wanted = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{port}",
        "OTEL_EXPORTER_OTLP_INSECURE": "true",
        "OTEL_BSP_SCHEDULE_DELAY": str(_SEND_EVERY_MS),
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
