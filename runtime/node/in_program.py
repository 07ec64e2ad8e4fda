"""The components of a node within another program: guard, handlers and stores, without a listener.

Calls are neither counted nor logged, and have no deadline: a call takes as long as its store does.
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


class InProcessNode:
    """A channel to the components of a node, made from the variables of the node. To be closed at the end.

    A program with access to the stores has the permissions of `principal`; the guard checks every call.
    Where the engine of all stores is able to, it can be `blocking`: calls never wait for an event loop, for
    programs without one (see `runtime.call.blocking`).
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
        wiring = Wiring(system, world, values, _refuse_upstream, self._stores)
        self._handlers = {each: wiring.make(each) for each in node.hosts}
        self._guard = Guard(system)
        self._components = {each.name: each.component for each in system.services.values()}
        self._principal = principal

    async def close(self) -> None:
        """Close all connections."""
        await self._stores.close()

    def call(self) -> Call:
        """Make a call context for a call of the program."""
        return Call(self._world, self._log, self._principal)

    def bind(
        self, method: Method, _request: type[Request], _response: type[Response], /
    ) -> Invoke[Request, Response]:
        """Bind a method to a function."""
        admit, component, name = self._guard.compile(method), self._components[method.service], str(method)
        handle = getattr(self._handlers[component], method.attribute)
        world, log, principal = self._world, self._log, self._principal

        def invoke(request: Request, call: Call) -> Answering[Response]:
            admit(principal, request)
            answering: Answering[Response] = handle(
                request, Call(world, log, principal, name, trace=call.trace, component=component)
            )
            return answering

        return invoke


def _refuse_upstream(component: str, service: str) -> Channel:
    raise LookupError(f"{component} wants {service} of another node")
