"""A method behind its guard: admits the caller, runs the handler, and settles how it ended.

Every transport ends here, so a call is checked, counted and logged the same way however it came.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from runtime import log as events
from runtime.call import Call
from runtime.conditions import Condition, Failure
from runtime.eager import detached
from runtime.guard import Guard
from runtime.identity import Unproven
from runtime.log import Log
from runtime.metrics import Metrics
from runtime.streams import Stream
from runtime.tables import Method, System
from runtime.tracing import Span, Tracer, is_plain
from runtime.world import World

Handle = Callable[[Any, Call], Coroutine[Any, Any, Any]]
_DENIALS = ("UNAUTHENTICATED", "PERMISSION_DENIED")


class Endpoint:
    """One method of one handler, ready to be called through any transport."""

    def __init__(
        self,
        system: System,
        method: Method,
        handler: object,
        world: World,
        log: Log,
        metrics: Metrics,
        tracer: Tracer | None = None,
    ) -> None:
        self.method = method
        self._name = str(method)
        self._system = system
        self._handle: Handle = getattr(handler, method.attribute)
        self._component = component_of(system, method)
        self._respond: Handle = self._carry if method.detached else self._handle
        self._log_fields = method.log_fields
        self._admit = Guard(system).admit(method)
        self._world = world
        self._log = log
        self._count = metrics.calls(self._name)
        self._tracer = tracer
        self._carried_through: set[asyncio.Task[Any]] = set()

    async def answer(
        self,
        caller: str | Unproven,
        request: Any,
        deadline: float | None,
        request_id: str | None = None,
        trace: str | None = None,
        stream: Stream | None = None,
    ) -> Any:
        """Answers a call, or raises the failure that its caller is told."""
        started = self._world.monotonic()
        fields: dict[str, Any] = {}
        for name in self._log_fields:
            fields[name] = getattr(request, name) or None
        call = Call(
            world=self._world,
            log=self._log,
            caller="" if isinstance(caller, Unproven) else caller,
            method=self._name,
            deadline=deadline,
            request_id=request_id,
            fields=fields,
            trace=trace,
            component=self._component,
        )
        call.stream = stream
        span = None
        if self._tracer is not None:
            span = self._tracer.begin(self._name, call.caller, trace, fields)
            if not is_plain(trace):
                call.trace = span.traceparent
        try:
            if isinstance(caller, Unproven):
                raise self._role("unauthenticated", method=self._name, problem=str(caller))
            self._admit(caller, request)
            response = await self._respond(request, call)
        except Exception as error:
            failure = self._settled(error, call)
            self._finish(call, failure.grpc, started, span)
            self._report(call, failure)
            raise failure from (None if failure is error else error)
        except asyncio.CancelledError:
            code = "DEADLINE_EXCEEDED" if call.expired else "CANCELLED"
            self._finish(call, code, started, span)
            call.tell(events.RPC_ERROR, "its caller stopped waiting", grpc_code=code)
            raise
        self._finish(call, "OK", started, span)
        if self._log.wants(events.RPC):
            call.tell(events.RPC, "answered", latency_ms=self._latency_ms(started))
        return response

    def refuse(
        self, caller: str | Unproven, condition: Condition, request_id: str | None, trace: str | None
    ) -> None:
        """Counts and reports a call whose request could not be read, so that there was nothing to answer."""
        started = self._world.monotonic()
        call = Call(
            world=self._world,
            log=self._log,
            caller="" if isinstance(caller, Unproven) else caller,
            method=self._name,
            request_id=request_id,
            trace=trace,
        )
        self._finish(call, condition.grpc, started, None)
        self._report(call, condition)

    async def drained(self) -> None:
        """Returns when every call that outlived its caller is through."""
        while self._carried_through:
            await asyncio.wait(self._carried_through)

    async def _carry(self, request: Any, call: Call) -> Any:
        """Runs the handler so that it goes on to its end even when its caller is gone."""
        task = detached(self._handle(request, call))
        if not isinstance(task, asyncio.Task):
            return task
        self._carried_through.add(task)
        task.add_done_callback(self._carried_through.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            call.gone = True
            task.add_done_callback(lambda done: self._report_late(done, call))
            raise

    def _report_late(self, task: asyncio.Task[Any], call: Call) -> None:
        """Tells how a call ended that nobody waits for. That it failed was told when its caller went."""
        if not task.cancelled() and (error := task.exception()) is not None:
            failure = self._settled(error, call)
            call.tell(events.RPC, f"ended late: {failure.message}", grpc_code=failure.grpc)

    def _settled(self, error: BaseException, call: Call) -> Failure:
        """The failure to tell the caller. Another component's failure is not passed on as it stands."""
        if isinstance(error, Failure):
            if error.origin is None or error.grpc in self._system.upstream.pass_through:
                return error
            if call.expired:
                return self._role("deadline_exceeded", method=self._name)
            if error.grpc in self._system.upstream.unavailable:
                return self._role("upstream_unavailable", service=error.origin)
        if isinstance(error, TimeoutError) and call.expired:
            return self._role("deadline_exceeded", method=self._name)
        return self._unexpected(error, call)

    def _unexpected(self, error: BaseException, call: Call) -> Failure:
        correlation = call.request_id
        detail = "".join(traceback.format_exception(error))
        call.tell(
            events.RPC_FAULT, f"{type(error).__name__}: {error}", correlation_id=correlation, detail=detail
        )
        return self._role("unexpected", correlation_id=correlation)

    def _report(self, call: Call, failure: Failure) -> None:
        code = failure.code if isinstance(failure, Condition) else None
        if failure.origin is None and code == self._system.roles["illegal_transition"].code:
            call.tell(events.INVALID_TRANSITION, failure.message)
        if failure.origin is None and failure.grpc in _DENIALS:
            call.tell(events.CALL_DENIED, failure.message)
        call.tell(events.RPC_ERROR, failure.message, grpc_code=failure.grpc, condition=code)

    def _finish(self, call: Call, code: str, started: float, span: Span | None) -> None:
        if span is not None:
            span.end(code)
        self._count(code, call.caller, self._world.monotonic() - started)

    def _latency_ms(self, started: float) -> float:
        return round((self._world.monotonic() - started) * 1000, 3)

    def _role(self, role: str, **fields: str) -> Condition:
        make: Callable[..., Condition] = self._system.roles[role]
        return make(**fields)


def component_of(system: System, method: Method) -> str:
    """The component whose handler answers a method."""
    return next(each.component for each in system.services.values() if each.name == method.service)


def endpoints(
    system: System,
    services: Mapping[str, object],
    world: World,
    log: Log,
    metrics: Metrics,
    tracer: Tracer | None = None,
) -> dict[str, Endpoint]:
    """The endpoints of some services, by path; `services` has the handler of each."""
    return {
        method.path: Endpoint(
            system, method, handler, world, log.of(system.services[name].component), metrics, tracer
        )
        for name, handler in services.items()
        for method in system.services[name].methods
    }
