"""Services of a server beside its own methods: health and reflection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from generated.studio import messages as m
from runtime.call import Call
from runtime.transport.grpc.direct.services import REFLECTION
from tests.runtime.transport.grpc.direct.support.echo_application import PATIENCE_S
from tests.runtime.transport.grpc.direct.support.grpc_fixtures import (
    METHOD,
    get_print,
    grpc_channel,
    method,
    serve_system,
)

Question, Health = health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse


async def find_print(_request: m.GetPrintRequest, _call: Call) -> m.GetPrintResponse:
    return m.GetPrintResponse(found=True)


async def soon(reading: Any) -> Any:
    async with asyncio.timeout(PATIENCE_S):
        return await reading


async def test_a_method_of_a_system_is_served() -> None:
    """The same server has the methods of the spec."""
    async with serve_system(find_print) as (port, _), grpc_channel(port) as client:
        assert (await get_print(client)(m.GetPrintRequest(film_id="x"))).found


async def test_a_message_that_is_none_of_the_method_is_refused() -> None:
    """It reaches no handler."""
    async with serve_system(find_print) as (port, _), grpc_channel(port) as client:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(client, METHOD.path)(b"\xff\xff")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "GetPrintRequest" in (caught.value.details() or "")


async def test_health_can_be_asked() -> None:
    """Of all, or of one service; another is unknown."""
    async with serve_system(find_print) as (port, server), grpc_channel(port) as client:
        stub: Any = health_pb2_grpc.HealthStub(client)
        for service in ("", METHOD.service):
            assert (await stub.Check(Question(service=service))).status == Health.SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Check(Question(service="other"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        server._health.set_serving(False)
        assert (await stub.Check(Question())).status == Health.NOT_SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(client, "/grpc.health.v1.Health/Check")(b"\xff")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_watcher_gets_each_change() -> None:
    """At once how it is, and then whenever it changes, until the server stops."""
    async with serve_system(find_print) as (port, server), grpc_channel(port) as client:
        stub: Any = health_pb2_grpc.HealthStub(client)
        watches = [stub.Watch(Question(service=service)) for service in ("", METHOD.service)]
        unknown = stub.Watch(Question(service="other"))
        assert (await soon(unknown.read())).status == Health.SERVICE_UNKNOWN
        for serving_now in (True, False, True):
            server._health.set_serving(serving_now)
            for watch in watches:
                # It may have begun before or after the first of them.
                expected = Health.SERVING if serving_now else Health.NOT_SERVING
                while (await soon(watch.read())).status != expected:
                    pass
        await server.stop(5)
        for watch in watches:
            while (said := await soon(read_or_end(watch))) is not None:
                assert said.status in (Health.SERVING, Health.NOT_SERVING)
            assert await watch.code() is grpc.StatusCode.UNAVAILABLE


async def read_or_end(watch: Any) -> Any:
    try:
        said = await watch.read()
    except grpc.aio.AioRpcError:
        return None
    return None if said is grpc.aio.EOF else said


async def test_a_watch_that_is_given_up_is_over() -> None:
    """No task waits for a change without a watcher."""
    async with serve_system(find_print) as (port, server), grpc_channel(port) as client:
        stub: Any = health_pb2_grpc.HealthStub(client)
        watch = stub.Watch(Question())
        assert (await soon(watch.read())).status == Health.SERVING
        (task,) = server._calls.streaming_tasks
        watch.cancel()
        await asyncio.wait([task], timeout=PATIENCE_S)
        assert task.cancelled()


async def test_tools_can_list_services() -> None:
    """The services, and the file of each, one question after the other on one stream."""
    async with serve_system(find_print) as (port, _), grpc_channel(port) as client:
        aio: Any = client
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(aio)

        async def questions() -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
            yield reflection_pb2.ServerReflectionRequest(list_services="")
            yield reflection_pb2.ServerReflectionRequest(file_containing_symbol=METHOD.service)
            yield reflection_pb2.ServerReflectionRequest(file_containing_symbol="no.such.Thing")

        services, file, nothing = [answer async for answer in stub.ServerReflectionInfo(questions())]
        names = {each.name for each in services.list_services_response.service}
        assert names == {METHOD.service, "grpc.health.v1.Health", *REFLECTION}
        described = descriptor_pb2.FileDescriptorProto.FromString(
            file.file_descriptor_response.file_descriptor_proto[0]
        )
        assert METHOD.service.rpartition(".")[2] in [each.name for each in described.service]
        assert nothing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


async def test_a_question_that_is_none_is_refused() -> None:
    """In a conversation as in a call."""
    async with serve_system(find_print) as (port, _), grpc_channel(port) as client:
        for path in (
            "/grpc.health.v1.Health/Watch",
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        ):
            talk: Any = client.stream_stream(path)
            call = talk(iter([b"\xff"]))
            assert await soon(call.code()) is grpc.StatusCode.INVALID_ARGUMENT
