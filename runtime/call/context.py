"""One call as a handler sees it: who asks, until when, and a way to tell the log about it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from runtime.call.streams import Content, Stream, whole
from runtime.model.system import CallMode, Event, Method
from runtime.observe.log import Log
from runtime.observe.tracing import trace_id
from runtime.world import World

REQUEST_ID_HEADER = "x-request-id"
LONGEST_REQUEST_ID = 64
"""A caller names its calls as it likes, but not at any length: the name goes into every log line."""
Request = TypeVar("Request")
Response = TypeVar("Response")
Answering = Coroutine[Any, Any, Response]
"""What a call is until it is awaited."""
Invoke = Callable[[Request, "Call"], Answering[Response]]
Steps = dict[tuple[str, str], list[str]]
"""The methods that were completed for an entity, by its kind and key, in the order of their answers."""
_NOTHING: Mapping[str, object] = {}


class Call:
    """The circumstances of a call. It is passed on with every call that it causes.

    `deadline` is a time on the world's monotonic clock, or None where nobody waits.
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
        """`named` are the fields of the request that its log lines show."""
        self.world = world
        self.log = log
        self.caller = caller
        self.component = component or caller
        """Whose handler has the call in hand; in background work, whose work it is."""
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
        self.stream: Stream | None = None
        """Content that comes or goes beside the messages, where the transport can carry it."""
        self.gone = False
        """Whether whoever asked has stopped waiting; the answer will reach nobody."""

    @property
    def fields(self) -> Mapping[str, Any] | None:
        """What its log lines show of it. It is read from the request when the first line is written."""
        if self._named:
            read = {name: getattr(self._request, name) or None for name in self._named}
            self._fields, self._named = {**read, **self._noted}, ()
        return self._fields

    @property
    def request_id(self) -> str:
        """What tells this call and all that it causes apart in the logs; made up when first asked for.

        Background work is no call: each call that it makes has an id of its own.
        """
        if self._request_id is not None:
            return self._request_id
        made_up = f"{int(self.world.uniform(0, 1 << 53)):014x}"
        if self.method:
            self._request_id = made_up
        return made_up

    @property
    def steps(self) -> Steps:
        """The calls that were completed because of this one, where an order of steps needs them."""
        if self._steps is None:
            self._steps = {}
        return self._steps

    @property
    def trace_id(self) -> str | None:
        """The id of the trace that the caller named; None where it named none."""
        return trace_id(self.trace)

    def remaining(self) -> float | None:
        """Seconds until nobody waits for the answer any more; None if there is no such time."""
        return None if self.deadline is None else self.deadline - self.world.monotonic()

    @property
    def expired(self) -> bool:
        return self.deadline is not None and self.deadline <= self.world.monotonic()

    def under(self, mode: CallMode) -> Call:
        """The same call for a step that goes by other rules, such as a compensation."""
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
        """The call for what the component does of its own accord, as the principal that it is."""
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
        """The content of the call piece by piece, or what came in the message where that has all of it."""
        if self.stream is not None and self.stream.incoming is not None:
            return self.stream.incoming
        return whole(given)

    def send(self, content: Content) -> bool:
        """Answers with content; False where the transport cannot, and it has to be in the message."""
        if self.stream is None:
            return False
        self.stream.outgoing = content
        return True

    def note(self, **fields: object) -> None:
        """Adds what has become known of the call to its later log lines."""
        if self._named:
            self._noted = {**self._noted, **fields}
        else:
            self._fields = {**(self._fields or {}), **fields}

    def tell(self, event: Event, message: str, /, **fields: object) -> None:
        """Writes an event to the log, together with what is known of the call; what is None is left out."""
        log = self.log
        if event.name in log.counts:
            log.counts[event.name] += 1
        if log.wants(event):
            self.write(event, message, fields)

    def write(self, event: Event, message: str, fields: Mapping[str, object]) -> None:
        """Writes an event that is known to be wanted and is not counted."""
        line = self.line(event, message)
        for name, value in fields.items():
            if value is not None:
                line[name] = value
        self.log.end(event, line)

    def line(self, event: Event, message: str) -> dict[str, Any]:
        """The beginning of a line of the log: what is known of the call. `Log.end` writes it."""
        line = self.log.begun(event, message, self.method)
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
        """Writes an event of many at once: what they share, and what is known of each, which names itself."""
        if event.name in self.log.counts:
            self.log.counts[event.name] += len(each)
        if self.log.wants(event):
            known = {"caller": self.caller or None, **(self.fields or {}), **shared}
            self.log.write_all(event, message, self.method, known, each)


class Channel(Protocol):
    """A way to another component: over the network or within the process."""

    def bind(
        self, method: Method, request: type[Request], response: type[Response], /
    ) -> Invoke[Request, Response]:
        """The method as a function. Deadlines, retries and failures are the same on every channel."""
        ...
