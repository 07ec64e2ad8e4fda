"""Each served call has a task and context variables of its own, so that libraries that ask for both work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest

from generated.studio.clients import ArchiveServiceClient
from generated.studio.messages import Film, GetPrintRequest, GetPrintResponse, WithdrawFilmRequest
from generated.studio.system import SYSTEM
from runtime.call import Call
from runtime.call.endpoint import Endpoint, make_endpoints
from runtime.call.identity import Authenticator
from runtime.observe.log import Log
from runtime.observe.metrics import Metrics
from runtime.transport.http.server import HttpServer
from runtime.transport.in_process import LocalChannel
from runtime.world import RealWorld
from tests.runtime.hand_world import Lines
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import get_print, grpc_channel, serve_system
from tests.support.plain_http import NO_TLS

WORLD = RealWorld()
WITHDRAW = next(
    each for service in SYSTEM.services.values() for each in service.methods if each.name == "WithdrawFilm"
)
Wait = Callable[[str], Awaitable[None]]
seen: ContextVar[str] = ContextVar("seen", default="nothing")


class Setting:
    """A handler that sets a context variable, and records its value at the start of the call."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.tasks: set[asyncio.Task[Any] | None] = set()

    async def answer(self, _request: GetPrintRequest, _call: Call) -> GetPrintResponse:
        self._note()
        return GetPrintResponse(found=True)

    async def withdraw(self, request: WithdrawFilmRequest, _call: Call) -> Film:
        self._note()
        return Film(film_id=request.film_id)

    def _note(self) -> None:
        self.found.append(seen.get())
        self.tasks.add(asyncio.current_task())
        seen.set("a call")


@asynccontextmanager
async def listen(handle: Any) -> AsyncIterator[int]:
    """The port of an HTTP listener that has one method."""
    log, metrics = Log("test", "INFO", WORLD, Lines()), Metrics()
    handler = SimpleNamespace(**{WITHDRAW.attribute: handle})
    endpoint = Endpoint(SYSTEM, WITHDRAW, handler, WORLD, log, metrics)
    authenticator = Authenticator(SYSTEM, None, "visitor", has_certificates=False)
    server = HttpServer(SYSTEM, [endpoint], authenticator, WORLD, log, metrics)
    port = await server.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await server.stop(0)


def client(port: int) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60, verify=NO_TLS)


async def test_a_grpc_call_sees_nothing_of_the_one_before_on_its_connection() -> None:
    handler = Setting()
    async with serve_system(handler.answer) as (port, server), grpc_channel(port) as asking:
        for _ in range(3):
            await get_print(asking)(GetPrintRequest(film_id="x"), timeout=60)
        assert len(server._calls.connections) == 1
    assert handler.found == ["nothing"] * 3
    assert len(handler.tasks) == 3


async def test_an_http_request_sees_nothing_of_the_one_before_on_its_connection() -> None:
    handler = Setting()
    async with listen(handler.withdraw) as port, client(port) as asking:
        for number in range(3):
            answer = await asking.post(f"/films/{number}/withdraw", json={})
            assert (answer.status_code, answer.json()["filmId"]) == (200, str(number))
    assert handler.found == ["nothing"] * 3
    assert len(handler.tasks) == 3


async def test_an_http_request_that_comes_early_sees_nothing_of_the_one_before() -> None:
    """The end of one request begins the next that has already come on the connection."""
    handler = Setting()
    request = b"POST /films/1/withdraw HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n"
    async with listen(handler.withdraw) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write((request + b"\r\n") * 2 + request + b"connection: close\r\n\r\n")
        async with asyncio.timeout(60):
            answers = await reader.read()
        writer.close()
    assert answers.count(b"HTTP/1.1 200") == 3
    assert handler.found == ["nothing"] * 3


async def test_a_call_within_a_process_is_a_function_call_within_its_callers_call() -> None:
    """It shares the variables of its caller, and the next call from outside sees none of them."""
    inner = Setting()
    log = Log("test", "INFO", WORLD, Lines())
    hosted = SimpleNamespace(get_print=inner.answer, store_print=inner.answer)
    within = make_endpoints(SYSTEM, {"ArchiveService": hosted}, WORLD, log, Metrics())
    archive = ArchiveServiceClient(LocalChannel(SYSTEM, within, "desk"))
    after: list[str] = []

    async def outer(request: GetPrintRequest, call: Call) -> GetPrintResponse:
        answer = await archive.get_print(request, call)
        after.append(seen.get())
        return answer

    async with serve_system(outer) as (port, _), grpc_channel(port) as asking:
        for _ in range(2):
            await get_print(asking)(GetPrintRequest(film_id="x"), timeout=60)
    assert inner.found == ["nothing"] * 2
    assert after == ["a call"] * 2


async def wait_in_a_scope(_url: str) -> None:
    with anyio.CancelScope() as scope:
        await anyio.sleep(0)
    assert not scope.cancel_called


async def wait_until_a_scope_ends(_url: str) -> None:
    with anyio.move_on_after(0.001) as scope:
        await anyio.sleep_forever()
    assert scope.cancelled_caught


async def wait_for_a_group(_url: str) -> None:
    done = []

    async def child() -> None:
        await anyio.sleep(0)
        done.append(1)

    async with anyio.create_task_group() as group:
        group.start_soon(child)
        group.start_soon(child)
    assert done == [1, 1]


async def wait_for_http(url: str) -> None:
    async with httpx.AsyncClient(verify=NO_TLS, timeout=60) as asking:
        assert (await asking.get(url)).status_code == 404


WAITS = [wait_in_a_scope, wait_until_a_scope_ends, wait_for_a_group, wait_for_http]


@asynccontextmanager
async def somewhere() -> AsyncIterator[str]:
    """An address that answers."""
    async with listen(Setting().withdraw) as port:
        yield f"http://127.0.0.1:{port}/nowhere"


@pytest.mark.parametrize("wait", WAITS)
async def test_a_handler_called_by_grpc_may_await_anything_first(wait: Wait) -> None:
    async with somewhere() as url:

        async def handle(_request: GetPrintRequest, _call: Call) -> GetPrintResponse:
            await wait(url)
            return GetPrintResponse(found=True)

        async with serve_system(handle) as (port, _), grpc_channel(port) as asking:
            assert (await get_print(asking)(GetPrintRequest(film_id="x"), timeout=60)).found


@pytest.mark.parametrize("wait", WAITS)
async def test_a_handler_called_by_http_may_await_anything_first(wait: Wait) -> None:
    async with somewhere() as url:

        async def handle(request: WithdrawFilmRequest, _call: Call) -> Film:
            await wait(url)
            return Film(film_id=request.film_id)

        async with listen(handle) as port, client(port) as asking:
            answer = await asking.post("/films/7/withdraw", json={})
        assert (answer.status_code, answer.json()["filmId"]) == (200, "7")
