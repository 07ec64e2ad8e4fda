"""Tracing with OpenTelemetry, where the `tracing` extra is installed and an exporter is configured.

Without them the trace context of a caller is propagated unchanged, and no spans are made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OpenSpan

TRACE_HEADER = "traceparent"
TRACE_ID_HEADER = "x-trace-id"
"""The header with a plain trace id, of a caller without W3C trace context."""
_CONTEXT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_SWITCHES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def trace_id(trace: str | None) -> str | None:
    """Parse the trace id that a caller sent: of a W3C trace context, or a plain one; else None."""
    if trace is None:
        return None
    if (found := _CONTEXT.fullmatch(trace)) is not None:
        return found[1]
    return trace if _PLAIN.fullmatch(trace) else None


def is_plain(trace: str | None) -> bool:
    """Whether a caller sent a plain trace id, below which there can be no span."""
    return trace is not None and _CONTEXT.fullmatch(trace) is None and _PLAIN.fullmatch(trace) is not None


class Span:
    """The span of one call."""

    def __init__(self, span: OpenSpan) -> None:
        self._span = span

    @property
    def traceparent(self) -> str:
        """The W3C trace context for calls made within this one."""
        context = self._span.get_span_context()
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def end(self, code: str) -> None:
        """End the span with the gRPC code of the call."""
        from opentelemetry.trace import Status, StatusCode

        self._span.set_attribute("rpc.grpc.status_code", code)
        if code != "OK":
            self._span.set_status(Status(StatusCode.ERROR, code))
        self._span.end()


class Tracer:
    """Makes the spans of one node."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("charter")

    def begin(self, method: str, caller: str, parent: str | None, fields: Mapping[str, Any]) -> Span:
        """Begin the span of a call, below that of its caller if there is one."""
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        context = TraceContextTextMapPropagator().extract({"traceparent": parent}) if parent else None
        known = {name: str(value) for name, value in fields.items() if value is not None}
        service, _, name = method.partition(".")
        attributes = {
            "rpc.system": "grpc",
            "rpc.service": service,
            "rpc.method": name,
            "caller": caller,
            **known,
        }
        return Span(
            self._tracer.start_span(method, context=context, kind=SpanKind.SERVER, attributes=attributes)
        )

    def close(self) -> None:
        """Export the spans that are left, and shut down."""
        self._provider.shutdown()


def make_tracer(service: str, environ: Mapping[str, str]) -> Tracer | None:
    """Make the tracer of a node; None where no exporter is configured."""
    if not any(environ.get(name) for name in _SWITCHES):
        return None
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Tracer(provider)
