"""Call context: the caller, the deadline, the trace and the log of one call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from runtime.call.streams import Content, ContentStream, iterate_once
from runtime.model.system import CallMode, Event, Method
from runtime.observe.log import Log
from runtime.observe.tracing import trace_id
from runtime.world import World

REQUEST_ID_HEADER = "x-request-id"
LONGEST_REQUEST_ID = 64
"""Max length of a request id: callers choose it, and it goes into every log line."""
Request = TypeVar("Request")
Response = TypeVar("Response")
Answering = Coroutine[Any, Any, Response]
"""The coroutine of a call, which gives its response."""
Invoke = Callable[[Request, "Call"], Answering[Response]]
Steps = dict[tuple[str, str], list[str]]
"""Completed methods of each entity, by its kind and key, in the order of their responses."""
_NOTHING: Mapping[str, object] = {}


class Call:
    """The context of a call, which is propagated to every call that it causes.

    `deadline` is a time on the world's monotonic clock, or None where there is none.
    """

    __slots__ = (
        "_fields",
        "_named",
        "_noted",
        "_request",
        "_request_id",
        "_steps",
        "caller",
        "component",
        "deadline",
        "gone",
        "log",
        "method",
        "mode",
        "stream",
        "trace",
        "world",
    )

    def __init__(
        self,
        world: World,
        log: Log,
        caller: str,
        method: str = "",
        deadline: float | None = None,
        request_id: str | None = None,
        trace: str | None = None,
        component: str = "",
        request: object = None,
        named: tuple[str, ...] = (),
        *,
        fields: Mapping[str, Any] | None = None,
        mode: CallMode | None = None,
        steps: Steps | None = None,
    ) -> None:
        """`named` are the request fields for its log lines."""
        self.world = world
        self.log = log
        self.caller = caller
        self.component = component or caller
        """The component whose handler runs the call; in background work, the component that it is of."""
        self.method = method
        self.deadline = deadline
        self._request_id = request_id
        self._fields = fields
        self._request = request
        self._named = named
        self._noted: Mapping[str, object] = _NOTHING
        self._steps = steps
        self.trace = trace
        self.mode = mode
        self.stream: ContentStream | None = None
        """Streamed content beside the messages, where the transport supports it."""
        self.gone = False
        """Whether the caller has cancelled the call; its response will be discarded."""

    @property
    def fields(self) -> Mapping[str, Any] | None:
        """Request fields in the log lines of the call; they are read when the first line is written."""
        if self._named:
            read = {name: getattr(self._request, name) or None for name in self._named}
            self._fields, self._named = {**read, **self._noted}, ()
        return self._fields

    @property
    def request_id(self) -> str:
        """The correlation id of this call and all that it causes in the logs; generated on first use.

        Background work is no call: each call that it makes has an id of its own.
        """
        if self._request_id is not None:
            return self._request_id
        generated = f"{int(self.world.uniform(0, 1 << 53)):014x}"
        if self.method:
            self._request_id = generated
        return generated

    @property
    def steps(self) -> Steps:
        """The steps completed by calls of this one, for the check of step order."""
        if self._steps is None:
            self._steps = {}
        return self._steps

    @property
    def trace_id(self) -> str | None:
        """The trace id that the caller sent; None where it sent none."""
        return trace_id(self.trace)

    def remaining(self) -> float | None:
        """Return the seconds left until the deadline; None if there is none."""
        return None if self.deadline is None else self.deadline - self.world.monotonic()

    @property
    def expired(self) -> bool:
        return self.deadline is not None and self.deadline <= self.world.monotonic()

    def under(self, mode: CallMode) -> Call:
        """Return the context for a step with another call mode, such as a compensation."""
        return Call(
            world=self.world,
            log=self.log,
            caller=self.caller,
            method=self.method,
            deadline=self.deadline,
            request_id=self.request_id,
            fields=self.fields,
            trace=self.trace,
            mode=mode,
            component=self.component,
            steps=self.steps,
        )

    def itself(self) -> Call:
        """Return the context with the component itself as the caller, for what it does on its own behalf."""
        return Call(
            world=self.world,
            log=self.log,
            caller=self.component,
            method=self.method,
            deadline=self.deadline,
            request_id=self._request_id,
            fields=self.fields,
            trace=self.trace,
            mode=self.mode,
            steps=self.steps,
        )

    def incoming(self, given: bytes) -> AsyncIterator[bytes]:
        """Iterate over the chunks of the streamed content, or over the content that came in the message."""
        if self.stream is not None and self.stream.incoming is not None:
            return self.stream.incoming
        return iterate_once(given)

    def send(self, content: Content) -> bool:
        """Respond with streamed content; False where the transport cannot: then it belongs in the message."""
        if self.stream is None:
            return False
        self.stream.outgoing = content
        return True

    def note(self, **fields: object) -> None:
        """Add fields to the later log lines of the call."""
        if self._named:
            self._noted = {**self._noted, **fields}
        else:
            self._fields = {**(self._fields or {}), **fields}

    def tell(self, event: Event, message: str, /, **fields: object) -> None:
        """Log an event with the fields of the call, and count it. Fields that are None are left out."""
        log = self.log
        if event.name in log.counts:
            log.counts[event.name] += 1
        if log.wants(event):
            self.write(event, message, fields)

    def write(self, event: Event, message: str, fields: Mapping[str, object]) -> None:
        """Log an event that is known to be wanted, without counting it."""
        line = self.begin_line(event, message)
        for name, value in fields.items():
            if value is not None:
                line[name] = value
        self.log.end_line(event, line)

    def begin_line(self, event: Event, message: str) -> dict[str, Any]:
        """Begin a log line with the fields of the call. `Log.end_line` writes it."""
        line = self.log.begin_line(event, message, self.method)
        line["request_id"] = self.request_id
        if self.caller:
            line["caller"] = self.caller
        if about := self.fields:
            for name, value in about.items():
                if value is not None:
                    line[name] = value
        return line

    def tell_all(
        self, event: Event, message: str, shared: Mapping[str, object], each: Sequence[Mapping[str, object]]
    ) -> None:
        """Log an event for each of a batch: the shared fields, and the fields of each, with its own id."""
        if event.name in self.log.counts:
            self.log.counts[event.name] += len(each)
        if self.log.wants(event):
            known = {"caller": self.caller or None, **(self.fields or {}), **shared}
            self.log.write_all(event, message, self.method, known, each)


class Channel(Protocol):
    """A channel to another component: over the network or within the process."""

    def bind(
        self, method: Method, request: type[Request], response: type[Response], /
    ) -> Invoke[Request, Response]:
        """Bind a method to a function. Deadlines, retries and failures are the same on every channel."""
        ...
