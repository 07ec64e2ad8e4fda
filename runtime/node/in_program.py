"""A component within a program that is no node: its guard, handler and stores, and nothing around them.

No call is counted or told of and none has a deadline: what is called is over as soon as the store is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from runtime.call.context import Answering, Call, Channel, Invoke, Request, Response
from runtime.call.guard import Guard
from runtime.model.system import Method, Node, System
from runtime.node.settings import read
from runtime.node.wiring import Wiring
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.stores.node_stores import Stores
from runtime.world import RealWorld, World


class Inside:
    """The channel to what a node hosts, made from the same variables. To be closed at the end.

    Whoever has what the stores need can do all that a principal may; every call is checked as if it were one.
    Where all stores are in Redis it can be `blocking`: calls are over when they have begun, for programs
    without an event loop (see `runtime.call.blocking`).
    """

    def __init__(
        self,
        system: System,
        node: Node,
        environ: Mapping[str, str],
        principal: str,
        world: World | None = None,
        *,
        blocking: bool = False,
    ) -> None:
        self._world = world = world or RealWorld()
        values = read(
            [system.variables[each] for each in node.variables],
            system.variable_rules,
            environ,
            node.defaults,
        )
        self._log = Log(principal, "WARNING", world, sys.stderr)
        self._stores = Stores(system, world, Metrics(), values, principal, blocking=blocking)
        wiring = Wiring(system, world, values, _nobody, self._stores.of)
        self._handlers = {each: wiring.make(each) for each in node.hosts}
        self._guard = Guard(system)
        self._components = {each.name: each.component for each in system.services.values()}
        self._principal = principal

    async def close(self) -> None:
        """Gives all connections back."""
        await self._stores.close()

    def call(self) -> Call:
        """A call of whoever is outside."""
        return Call(self._world, self._log, self._principal)

    def bind(
        self, method: Method, _request: type[Request], _response: type[Response], /
    ) -> Invoke[Request, Response]:
        """The method as a function."""
        admit, component, name = self._guard.admit(method), self._components[method.service], str(method)
        handle = getattr(self._handlers[component], method.attribute)
        world, log, principal = self._world, self._log, self._principal

        def invoke(request: Request, call: Call) -> Answering[Response]:
            admit(principal, request)
            answering: Answering[Response] = handle(
                request, Call(world, log, principal, name, trace=call.trace, component=component)
            )
            return answering

        return invoke


def _nobody(component: str, service: str) -> Channel:
    raise LookupError(f"{component} wants {service} of another node")
