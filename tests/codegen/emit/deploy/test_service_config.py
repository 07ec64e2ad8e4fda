"""The gRPC service config: its content, and that gRPC follows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from codegen.emit.deploy import service_config
from tests.support.codegen.specs import spec, texts

PUBLIC = "/taskqueue.v1.TaskQueuePublicService"


def read_text() -> str:
    return texts(service_config.emit, spec("spec/taskqueue"))[
        "generated/taskqueue/deploy/service_config.json"
    ]


def find_method(name: str) -> Any:
    (found,) = [row for row in json.loads(read_text())["methodConfig"] if row["name"][0]["method"] == name]
    return found


def test_every_method_is_in_the_config_once() -> None:
    """Each method of the spec has its deadline, under its full name."""
    names = [
        f"{row['name'][0]['service']}/{row['name'][0]['method']}"
        for row in json.loads(read_text())["methodConfig"]
    ]
    assert len(names) == len(set(names)) == len(spec("spec/taskqueue").methods)
    assert "taskqueue.v1.TaskQueuePublicService/SubmitJob" in names
    assert find_method("SubmitJob")["timeout"] == "3s"
    assert find_method("FetchWork")["timeout"] == "1.5s"


def test_a_retry_is_the_profile_of_the_spec() -> None:
    """Codes, attempts and backoff are those of the method's retry profile."""
    assert find_method("GetJobStatus")["retryPolicy"] == {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2.0,
        "retryableStatusCodes": ["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"],
    }


@pytest.mark.parametrize("name", ["SubmitJob", "CreateJob", "DequeueJob", "TransitionJobStatus"])
def test_calls_that_are_not_idempotent_are_not_retried(name: str) -> None:
    """No retry where the spec has none, nor where it depends on the request, which it cannot express."""
    assert "retryPolicy" not in find_method(name)


class Flaky(grpc.GenericRpcHandler):
    """Answers every third call; the others find it unavailable."""

    def __init__(self) -> None:
        self.calls = 0

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
            self.calls += 1
            if self.calls % 3:
                context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
            return request

        return grpc.unary_unary_rpc_method_handler(answer)


def read_retries() -> str:
    """The config without its deadlines, which gRPC's C core lets pass too early (grpc/grpc#40633)."""
    config = json.loads(read_text())
    for row in config["methodConfig"]:
        del row["timeout"]
    return json.dumps(config)


@pytest.fixture
def flaky() -> Iterator[tuple[Flaky, grpc.Channel]]:
    handler = Flaky()
    server = grpc.server(ThreadPoolExecutor(max_workers=1), handlers=[handler])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(
        f"127.0.0.1:{port}", options=[("grpc.service_config", read_retries())]
    ) as channel:
        yield handler, channel
    server.stop(None)


def test_grpc_retries_idempotent_calls(flaky: tuple[Flaky, grpc.Channel]) -> None:
    """A client that knows only the config gets its answer on the third attempt of an idempotent call."""
    handler, channel = flaky
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"{PUBLIC}/GetJobStatus")
    assert call(b"hello") == b"hello"
    assert handler.calls == 3


def test_grpc_does_not_retry_other_calls(flaky: tuple[Flaky, grpc.Channel]) -> None:
    """The same client makes one attempt at a call whose repeat might be a second job."""
    handler, channel = flaky
    call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"{PUBLIC}/SubmitJob")
    with pytest.raises(grpc.RpcError):
        call(b"hello")
    assert handler.calls == 1
