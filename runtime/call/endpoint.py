"""Endpoint: a method behind its guard. It checks the call, runs the handler and maps its failures.

Every transport ends here, so a call is checked, counted and logged the same way on each of them.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from runtime.call.conditions import Condition, Failure
from runtime.call.context import Call
from runtime.call.guard import Guard
from runtime.call.identity import AuthenticationError
from runtime.call.streams import ContentStream
from runtime.model.system import Method, System
from runtime.observe import log as events
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.observe.tracing import Span, Tracer, is_plain
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
        self._detached = method.detached
        self._log_fields = method.log_fields
        self._admit = Guard(system).compile(method)
        self._world = world
        self._monotonic = world.monotonic
        self._log = log
        self._logs_answers = log.wants(events.RPC)
        self._only_counts = tracer is None and not self._logs_answers
        self._count = metrics.call_counter(self._name)
        self._tracer = tracer
        self._detached_tasks: set[asyncio.Task[Any]] = set()

    async def answer(
        self,
        caller: str | AuthenticationError,
        request: Any,
        deadline: float | None,
        request_id: str | None = None,
        trace: str | None = None,
        stream: ContentStream | None = None,
        write: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Answer a call in the task of its caller, or raise the failure that the caller gets.

        `write` encodes the response. One that cannot be encoded is counted as the failure that its caller
        gets, and not as an answer.
        """
        started = self._monotonic()
        proven = caller if isinstance(caller, str) else ""
        call = Call(
            self._world,
            self._log,
            proven,
            self._name,
            deadline,
            request_id,
            trace,
            self._component,
            request,
            self._log_fields,
        )
        if stream is not None:
            call.stream = stream
        span = None
        if self._tracer is not None:
            span = self._tracer.begin(self._name, proven, trace, call.fields or {})
            if not is_plain(trace):
                call.trace = span.traceparent
        try:
            if isinstance(caller, AuthenticationError):
                raise self._make_condition("unauthenticated", method=self._name, problem=str(caller))
            self._admit(proven, request)
            handling = self._handle(request, call)
            response = await (self._run_detached(handling, call) if self._detached else handling)
            if write is not None:
                response = write(response)
        except (Exception, asyncio.CancelledError) as error:
            failure = self._record_failure(error, call, started, span)
            raise failure from (None if failure is error else error)
        if self._only_counts:
            self._count("OK", proven, self._monotonic() - started)
        else:
            self._finish(call, "OK", started, span)
        return response

    def refuse(
        self, caller: str | AuthenticationError, failure: Failure, request_id: str | None, trace: str | None
    ) -> None:
        """Count and log a call whose request could not be decoded."""
        started = self._monotonic()
        call = Call(
            world=self._world,
            log=self._log,
            caller="" if isinstance(caller, AuthenticationError) else caller,
            method=self._name,
            request_id=request_id,
            trace=trace,
        )
        self._finish(call, failure.grpc, started, None)
        self._report(call, failure)

    async def drain(self) -> None:
        """Wait for the detached calls: those that outlive their callers."""
        while self._detached_tasks:
            await asyncio.wait(self._detached_tasks)

    async def _run_detached(self, handling: Coroutine[Any, Any, Any], call: Call) -> Any:
        """Run a handler in a task of its own, which is not cancelled with its caller."""
        task = asyncio.get_running_loop().create_task(handling)
        # The cancellation of the caller cancels this future, and not the task.
        completed = task.get_loop().create_future()

        def on_done(done: asyncio.Task[Any]) -> None:
            self._detached_tasks.discard(done)
            if not completed.done():
                completed.set_result(None)
            elif call.gone:
                self._report_late(done, call)

        self._detached_tasks.add(task)
        task.add_done_callback(on_done)
        try:
            await completed
        except asyncio.CancelledError:
            call.gone = True
            if task not in self._detached_tasks:
                self._report_late(task, call)
            raise
        return task.result()

    def _record_failure(
        self, error: BaseException, call: Call, started: float, span: Span | None
    ) -> BaseException:
        """Count and log a failed call; return the exception to raise."""
        if isinstance(error, asyncio.CancelledError):
            code = "DEADLINE_EXCEEDED" if call.expired else "CANCELLED"
            self._finish(call, code, started, span)
            call.tell(events.RPC_ERROR, "its caller stopped waiting", grpc_code=code)
            return error
        failure = self._map_failure(error, call)
        self._finish(call, failure.grpc, started, span)
        self._report(call, failure)
        return failure

    def _report_late(self, task: asyncio.Task[Any], call: Call) -> None:
        """Log the failure of a detached call. Its cancellation by the caller is in the log already."""
        if not task.cancelled() and (error := task.exception()) is not None:
            failure = self._map_failure(error, call)
            call.tell(events.RPC, f"ended late: {failure.message}", grpc_code=failure.grpc)

    def _map_failure(self, error: BaseException, call: Call) -> Failure:
        """Map an error to the failure for the caller. That of another component is not passed on."""
        if isinstance(error, Failure):
            if error.origin is None or error.grpc in self._system.upstream.pass_through:
                return error
            if call.expired:
                return self._make_condition("deadline_exceeded", method=self._name)
            if error.grpc in self._system.upstream.unavailable:
                return self._make_condition("upstream_unavailable", service=error.origin)
        if isinstance(error, TimeoutError) and call.expired:
            return self._make_condition("deadline_exceeded", method=self._name)
        return self._report_fault(error, call)

    def _report_fault(self, error: BaseException, call: Call) -> Failure:
        correlation = call.request_id
        detail = "".join(traceback.format_exception(error))
        call.tell(
            events.RPC_FAULT, f"{type(error).__name__}: {error}", correlation_id=correlation, detail=detail
        )
        return self._make_condition("unexpected", correlation_id=correlation)

    def _report(self, call: Call, failure: Failure) -> None:
        code = failure.code if isinstance(failure, Condition) else None
        if failure.origin is None and code == self._system.roles["illegal_transition"].code:
            call.tell(events.INVALID_TRANSITION, failure.message)
        if failure.origin is None and failure.grpc in _DENIALS:
            call.tell(events.CALL_DENIED, failure.message)
        call.tell(events.RPC_ERROR, failure.message, grpc_code=failure.grpc, condition=code)

    def _finish(self, call: Call, code: str, started: float, span: Span | None) -> None:
        took = self._monotonic() - started
        self._count(code, call.caller, took)
        if span is not None:
            span.end(code)
        if self._logs_answers and code == "OK":
            call.tell(events.RPC, "answered", latency_ms=round(took * 1000, 3))

    def _make_condition(self, role: str, **fields: str) -> Condition:
        make: Callable[..., Condition] = self._system.roles[role]
        return make(**fields)


def component_of(system: System, method: Method) -> str:
    """Return the component whose handler answers a method."""
    return next(each.component for each in system.services.values() if each.name == method.service)


def make_endpoints(
    system: System,
    services: Mapping[str, object],
    world: World,
    log: Log,
    metrics: Metrics,
    tracer: Tracer | None = None,
    values: Mapping[str, Any] | None = None,
) -> dict[str, Endpoint]:
    """Make the endpoints of services, by path; `services` has the handler of each.

    `values` are the settings of their node, which may limit the requests of a method.
    """
    return {
        method.path: Endpoint(
            system,
            method if values is None else method.with_request_limit(values),
            handler,
            world,
            log.of(system.services[name].component),
            metrics,
            tracer,
        )
        for name, handler in services.items()
        for method in system.services[name].methods
    }
