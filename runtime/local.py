"""The channel within a process: the same guard, deadlines and failures, and nothing serialised."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from types import CoroutineType
from typing import Any

from runtime.call import Call, Invoke, Request, Response
from runtime.conditions import CallFailed, Condition, Failure
from runtime.dispatch import Endpoint
from runtime.eager import TimedOut, within
from runtime.outbound import governed
from runtime.tables import Method, System


class LocalChannel:
    """Calls the endpoints of the same process as one principal."""

    def __init__(self, system: System, endpoints: Mapping[str, Endpoint], principal: str) -> None:
        self._system = system
        self._endpoints = endpoints
        self._principal = principal

    def bind(
        self, method: Method, _request: type[Request], _response: type[Response], /
    ) -> Invoke[Request, Response]:
        """The method as a function."""
        permission = self._system.matrix.get(method.path, {}).get(self._principal)
        service = method.service.rpartition(".")[2]
        principal, path, endpoints = self._principal, method.path, self._endpoints

        def attempt(message: Any, call: Call, patience: float) -> Any:
            # Looked up at the call, because the components of a node may refer to each other.
            begin, deadline = endpoints[path].begin, call.world.monotonic() + patience
            try:
                answered = begin(principal, message, deadline, call.request_id, call.trace)
            except Failure as failure:
                raise received(failure, service) from failure
            return waited(answered, patience) if type(answered) is CoroutineType else answered

        async def waited(answering: Coroutine[Any, Any, Any], patience: float) -> Any:
            # Only a call that waits needs a timer, and most within a process are answered at once.
            try:
                return await within(answering, patience)
            except TimedOut:
                raise CallFailed("DEADLINE_EXCEEDED", f"{method} took too long", service) from None
            except Failure as failure:
                raise received(failure, service) from failure

        return governed(method, attempt, principal, permission.mode if permission else None)


def received(failure: Failure, service: str) -> Failure:
    """The failure as it would look after a journey over the network."""
    if isinstance(failure, Condition):
        return type(failure).received(failure.message, service)
    return CallFailed(failure.grpc, failure.message, service)
