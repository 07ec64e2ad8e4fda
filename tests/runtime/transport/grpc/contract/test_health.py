"""Health and reflection: what load balancers and tools ask a listener, over both carriers alike."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from tests.runtime.transport.grpc.contract.support.carriers import (
    METHOD,
    PATIENCE_S,
    Gate,
    plain_channel,
    plain_code,
    start_server,
)
from tests.support.eventually import eventually

CheckRequest, CheckResponse = health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse
SERVICES = ("", METHOD.service)
VERSIONS = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
Question = reflection_pb2.ServerReflectionRequest


async def test_a_check_says_whether_the_node_is_ready(carrier: str) -> None:
    """NOT_SERVING until it is, for the whole server and for each service of it."""
    async with start_server(carrier, is_ready=False) as served, plain_channel(served.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        for service in SERVICES:
            assert (await health.Check(CheckRequest(service=service))).status == CheckResponse.NOT_SERVING
        await served.server.ready()
        for service in SERVICES:
            assert (await health.Check(CheckRequest(service=service))).status == CheckResponse.SERVING


async def test_the_health_of_a_missing_service_is_unknown(carrier: str) -> None:
    """A check of it fails, and a watch says so and goes on, as the protocol has it."""
    async with start_server(carrier) as served, plain_channel(served.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        assert await plain_code(health.Check(CheckRequest(service="no.such.Service"))) == "NOT_FOUND"
        watch = health.Watch(CheckRequest(service="no.such.Service"))
        assert (await watch.read()).status == CheckResponse.SERVICE_UNKNOWN
        watch.cancel()


@pytest.mark.parametrize("service", SERVICES)
async def test_a_watch_hears_of_every_change(carrier: str, service: str) -> None:
    """NOT_SERVING, SERVING, NOT_SERVING when the server stops, and then the end; the stop does not wait."""
    async with start_server(carrier, is_ready=False) as served, plain_channel(served.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(CheckRequest(service=service))
        assert (await watch.read()).status == CheckResponse.NOT_SERVING
        await served.server.ready()
        assert (await watch.read()).status == CheckResponse.SERVING
        # The library gives nothing more of a call that is over, even if more has come.
        last = asyncio.ensure_future(watch.read())
        async with asyncio.timeout(PATIENCE_S):
            await served.server.stop(100 * PATIENCE_S)
        assert (await last).status == CheckResponse.NOT_SERVING
        assert await watch.code() is grpc.StatusCode.UNAVAILABLE


async def test_many_watchers_do_not_delay_a_stop(carrier: str) -> None:
    """A call in flight has the grace; a watch has not."""
    gate = Gate()
    async with start_server(carrier, gate) as served, plain_channel(served.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watches = [health.Watch(CheckRequest()) for _ in range(20)]
        for watch in watches:
            assert (await watch.read()).status == CheckResponse.SERVING
        call = asyncio.ensure_future(as_future(channel.unary_unary(METHOD.path)(b"")))
        await eventually(lambda: gate.begun == 1)
        last = [asyncio.ensure_future(watch.read()) for watch in watches]
        stopping = asyncio.ensure_future(served.server.stop(100 * PATIENCE_S))
        for each in last:
            assert (await each).status == CheckResponse.NOT_SERVING
        assert not stopping.done()
        gate.open()
        await call
        async with asyncio.timeout(PATIENCE_S):
            await stopping


async def as_future(call: Any) -> Any:
    """A call of gRPC's own library as a coroutine."""
    return await call


async def test_a_watcher_that_goes_leaves_nothing_behind(carrier: str) -> None:
    """The server goes on and stops as if it had not been there."""
    async with start_server(carrier) as served, plain_channel(served.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(CheckRequest())
        assert (await watch.read()).status == CheckResponse.SERVING
        watch.cancel()
        assert (await health.Check(CheckRequest())).status == CheckResponse.SERVING


async def test_a_question_that_cannot_be_read_is_the_askers_fault(carrier: str) -> None:
    """Of health and of reflection; nothing is logged as a fault of the node."""
    async with start_server(carrier) as served, plain_channel(served.address) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert await plain_code(check(b"\x0a\x05ab")) == "INVALID_ARGUMENT"
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"\x0a\x05ab")
        assert await plain_code(watch.read()) == "INVALID_ARGUMENT"
        for version in VERSIONS:
            ask = channel.stream_stream(f"/{version}/ServerReflectionInfo")
            assert await plain_code(ask(iter([b"\x0a\x05ab"])).read()) == "INVALID_ARGUMENT"


async def reflect(channel: Any, version: str, *questions: Any) -> list[bytes]:
    """The answer of a server, as bytes."""
    ask = channel.stream_stream(f"/{version}/ServerReflectionInfo")
    return [answer async for answer in ask(iter([each.SerializeToString() for each in questions]))]


async def test_both_versions_of_reflection_answer_alike(carrier: str) -> None:
    """The services of the node, health and reflection itself, and their files."""
    asked = [
        Question(list_services="*"),
        Question(file_containing_symbol=METHOD.service),
        Question(file_by_filename="studio_lab.proto"),
        Question(file_containing_symbol="no.such.Symbol"),
    ]
    async with start_server(carrier) as served, plain_channel(served.address) as channel:
        newer, older = [await reflect(channel, version, *asked) for version in VERSIONS]
    assert newer == older
    listed, by_symbol, by_name, unknown = map(reflection_pb2.ServerReflectionResponse.FromString, newer)
    names = {each.name for each in listed.list_services_response.service}
    assert names == {METHOD.service, "grpc.health.v1.Health", *VERSIONS}
    for found in (by_symbol, by_name):
        assert METHOD.name.encode() in b"".join(found.file_descriptor_response.file_descriptor_proto)
    assert unknown.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


async def test_reflection_is_the_same_over_both_carriers() -> None:
    """A tool gets the same answer from both."""
    answers = []
    for carrier in ("grpcio", "direct"):
        async with start_server(carrier) as served, plain_channel(served.address) as channel:
            answers.append(await reflect(channel, VERSIONS[0], Question(list_services="*")))
    assert answers[0] == answers[1]
