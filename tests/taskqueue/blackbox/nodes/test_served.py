"""The services of each node as the node itself reports them: its own, health and reflection only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, ServiceDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from runtime.launch import Launched
from tests.support.taskqueue.callers import Credentials, caller
from tests.support.taskqueue.matrix_oracle import METHODS

pytestmark = pytest.mark.asyncio(loop_scope="session")

PUBLIC = "taskqueue.v1.TaskQueuePublicService"
EXTRAS = {
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
}
SERVING = health_pb2.HealthCheckResponse.SERVING


@pytest.mark.req("TQ-009", "TQ-176", "CH-82")
async def test_each_node_serves_its_own_service_and_two_extras(deployment: Launched) -> None:
    """Reflection lists the services of the node's components beside health and reflection itself."""
    for name, address in deployment.endpoints.items():
        async with grpc.aio.insecure_channel(address) as channel:
            assert set(await list_services(channel)) == list_business_services(deployment, name) | EXTRAS


@pytest.mark.req("TQ-001")
async def test_the_public_service_has_five_unary_methods(deployment: Launched) -> None:
    """The descriptor that an ingress node serves has the five methods and no other."""
    for name in list_ingress_nodes(deployment):
        async with grpc.aio.insecure_channel(deployment.endpoints[name]) as channel:
            service = await read_descriptor(channel, PUBLIC)
        assert {each.name for each in service.method} == {
            "SubmitJob",
            "GetJobStatus",
            "GetJobResult",
            "CancelJob",
            "ListJobs",
        }
        assert not any(each.client_streaming or each.server_streaming for each in service.method)


@pytest.mark.req("CH-82", "TQ-178")
async def test_a_ready_node_is_serving(deployment: Launched) -> None:
    """Health is SERVING for the node and for its service, and knows no other."""
    for name, address in deployment.endpoints.items():
        async with grpc.aio.insecure_channel(address) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            for service in ("", *list_business_services(deployment, name)):
                answer = await health.Check(health_pb2.HealthCheckRequest(service=service), timeout=30)
                assert answer.status == SERVING
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await health.Check(health_pb2.HealthCheckRequest(service="other"), timeout=30)
            assert caught.value.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.req("TQ-008", "TQ-009")
async def test_a_node_does_not_have_the_methods_of_others(deployment: Launched) -> None:
    """Internal methods do not exist on the public port, nor any method where its component is not."""
    async with caller(deployment, Credentials("client")) as anyone:
        for name in deployment.endpoints:
            for called in METHODS:
                own = called.path[1:].partition("/")[0] in list_business_services(deployment, name)
                code = await anyone.code(called, called.request(), name)
                assert (code == "UNIMPLEMENTED") != own, (name, called)


def list_business_services(deployment: Launched, name: str) -> set[str]:
    """The services of a node's components."""
    node = deployment.deployment.nodes[deployment.processes[name].plan.node]
    return {deployment.system.services[service].name for service in node.serves}


def list_ingress_nodes(deployment: Launched) -> list[str]:
    """The processes that clients reach."""
    return [
        name for name, each in deployment.processes.items() if each.plan.node in deployment.deployment.ingress
    ]


async def list_services(channel: grpc.aio.Channel) -> list[str]:
    answer = await reflect(channel, reflection_pb2.ServerReflectionRequest(list_services=""))
    return [each.name for each in answer.list_services_response.service]


async def read_descriptor(channel: grpc.aio.Channel, service: str) -> ServiceDescriptorProto:
    answer = await reflect(channel, reflection_pb2.ServerReflectionRequest(file_containing_symbol=service))
    files = [
        FileDescriptorProto.FromString(each) for each in answer.file_descriptor_response.file_descriptor_proto
    ]
    return next(each for file in files for each in file.service if f"{file.package}.{each.name}" == service)


async def reflect(
    channel: grpc.aio.Channel, request: reflection_pb2.ServerReflectionRequest
) -> reflection_pb2.ServerReflectionResponse:
    async def once() -> AsyncIterator[reflection_pb2.ServerReflectionRequest]:
        yield request

    connect: Any = reflection_pb2_grpc.ServerReflectionStub
    async for answer in connect(channel).ServerReflectionInfo(once(), timeout=30):
        found: reflection_pb2.ServerReflectionResponse = answer
        return found
    raise AssertionError("reflection gave no answer")
