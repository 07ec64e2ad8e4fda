"""The HTTP listener of a node: the methods with routes, and the routes of every listener."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable

from uvicorn.config import Config
from uvicorn.server import ServerState

from runtime.call.endpoint import Endpoint
from runtime.call.identity import Authenticator
from runtime.model.system import System
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.transport.http.answers import Refusals
from runtime.transport.http.app import App, Respond
from runtime.transport.http.codec import Codec
from runtime.transport.http.operation import Operation
from runtime.transport.http.pages import Problem, Readiness, document_routes, monitoring_routes
from runtime.transport.http.protocol import Connection, HttpLimits
from runtime.transport.http.streaming import StreamingOperation
from runtime.transport.listening import bind_socket
from runtime.transport.tls_listener import TlsListener
from runtime.world import World

_PAUSE = 0.02


class HttpServer:
    """HTTP server on one port. It responds from the start, but is not ready before `ready` is called."""

    def __init__(
        self,
        system: System,
        endpoints: Iterable[Endpoint],
        authenticator: Authenticator,
        world: World,
        log: Log,
        metrics: Metrics,
        *,
        problem: Problem | None = None,
        tls: ssl.SSLContext | None = None,
        limits: HttpLimits | None = None,
    ) -> None:
        self._secured = None if tls is None else TlsListener(tls, self._connection, log, self._has_room)
        self._log = log
        self._limits = limits or HttpLimits(system.connections)
        self._readiness = Readiness(problem)
        refusals, codec = Refusals(system), Codec(system)
        self._refusals = refusals
        routes: list[tuple[str, str, Respond]] = []
        any_value: list[tuple[str, str]] = []
        for endpoint in endpoints:
            if (route := endpoint.method.route) is not None:
                streams = route.body is not None or route.answer is not None
                operation = (StreamingOperation if streams else Operation)(
                    system,
                    endpoint,
                    route,
                    authenticator,
                    world,
                    codec,
                    refusals,
                    body_seconds=self._limits.body_seconds,
                )
                routes.append((route.method, route.path, operation.respond))
                if route.any_value:
                    any_value.append((route.method, route.path))
        if routes:
            routes += document_routes(system.name, {(method, path) for method, path, _ in routes})
        routes += monitoring_routes(self._readiness, metrics)
        self._config = _config(App(routes, refusals, log, any_value), self._limits)
        self._state = ServerState()
        self._server: asyncio.AbstractServer | TlsListener | None = None

    async def start(self, host: str, port: int) -> int:
        """Bind and listen; return the port. Raises OSError when the port is not available."""
        listener = bind_socket(host, port)
        number: int = listener.getsockname()[1]
        waiting = min(self._limits.connections, 2048)
        if self._secured is not None:
            self._secured.start(listener, waiting)
            self._server = self._secured
        else:
            self._server = await asyncio.get_running_loop().create_server(
                self._connection, sock=listener, backlog=waiting
            )
        return number

    def _connection(self) -> asyncio.Protocol:
        return Connection(self._config, self._state, self._limits, self._refusals, self._log)

    def _has_room(self, handshakes: int) -> bool:
        # One at a time may get the response that there are too many.
        return not handshakes or len(self._state.connections) + handshakes < self._limits.connections

    def ready(self) -> None:
        """Report ready."""
        self._readiness.not_ready_reason = None

    async def stop(self, grace: float) -> None:
        """Drain: accept no new connections, let requests in flight end, close the rest after the grace."""
        self._readiness.not_ready_reason = "the node is stopping"
        if self._server is None:
            return
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(grace):
                while self._state.tasks:
                    await asyncio.sleep(_PAUSE)
        except TimeoutError:
            for task in list(self._state.tasks):
                task.cancel()
        for connection in list(self._state.connections):
            connection.transport.close()


def _config(app: App, limits: HttpLimits) -> Config:
    """Make the configuration of uvicorn: deterministic headers, and no log of its own."""
    config = Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=logging.CRITICAL,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=int(limits.idle_seconds),
    )
    config.load()
    return config
