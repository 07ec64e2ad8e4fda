"""In-process channel: the same guard, deadlines and failures, without serialisation.

A call is awaited in the task of its caller, so the handler that is called shares the context variables of the
one that calls it, as a function would. Calls that came over the network share none with each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from runtime.call.call_policy import apply_call_policy
from runtime.call.conditions import CallFailed, Condition, Failure
from runtime.call.context import Call, Invoke, Request, Response
from runtime.call.endpoint import Endpoint
from runtime.model.system import Method, System


class LocalChannel:
    """A channel to endpoints of the same process, as one principal."""

    def __init__(self, system: System, endpoints: Mapping[str, Endpoint], principal: str) -> None:
        self._system = system
        self._endpoints = endpoints
        self._principal = principal

    def bind(
        self, method: Method, _request: type[Request], _response: type[Response], /
    ) -> Invoke[Request, Response]:
        """Bind a method to a function."""
        permission = self._system.matrix.get(method.path, {}).get(self._principal)
        service = method.service.rpartition(".")[2]
        principal, path, endpoints = self._principal, method.path, self._endpoints

        async def attempt(message: Any, call: Call, patience: float) -> Any:
            # Looked up at the call, because the components of a node may refer to each other.
            answer, deadline = endpoints[path].answer, call.world.monotonic() + patience
            try:
                async with asyncio.timeout(patience) as limit:
                    return await answer(principal, message, deadline, call.request_id, call.trace)
            except TimeoutError:
                if not limit.expired():
                    raise
                raise CallFailed("DEADLINE_EXCEEDED", f"{method} took too long", service) from None
            except Failure as failure:
                raise to_remote_failure(failure, service) from failure

        return apply_call_policy(method, attempt, principal, permission.mode if permission else None)


def to_remote_failure(failure: Failure, service: str) -> Failure:
    """Convert a failure to what a caller over the network would get."""
    if isinstance(failure, Condition):
        return type(failure).from_remote(failure.message, service)
    return CallFailed(failure.grpc, failure.message, service)
