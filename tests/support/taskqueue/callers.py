"""Callers of every sort: authenticated, anonymous, forged and foreign, each with its own connections."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

import grpc
import grpc.aio

from runtime.certs import Authority, Issued
from runtime.launch import Launched
from runtime.launch.planning.credentials import Certificates
from runtime.transport.tls import server_name
from tests.support.taskqueue.matrix_oracle import PRINCIPALS, Called

Metadata = Sequence[tuple[str, str]]
PATIENCE = 60.0
FORGED: Metadata = (
    ("x-caller", "gateway"),
    ("caller", "gateway"),
    ("x-spiffe-id", "spiffe://taskqueue/gateway"),
    ("x-forwarded-client-cert", "URI=spiffe://taskqueue/gateway"),
)


class Credentials(NamedTuple):
    """The credentials of a caller. `name` is its true principal; None if the credentials are not valid."""

    name: str | None
    certificate: Issued | None = None
    metadata: Metadata = ()
    trusted: bool = True
    """Whether the authority of the deployment signed the certificate."""


class Caller:
    """Makes single calls, without retries, to any node of a deployment."""

    def __init__(self, deployment: Launched, credentials_: Credentials, authority: bytes | None) -> None:
        self.credentials_ = credentials_
        self._deployment = deployment
        self._authority = authority
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for channel in self._channels.values():
            await channel.close()

    async def call(
        self, called: Called, request: Any, node: str | None = None, patience: float = PATIENCE
    ) -> Any:
        """The answer; raises AioRpcError for anything but OK."""
        stub: Any = self.channel(node or called.component).unary_unary(
            called.path,
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=called.answer.FromString,
        )
        return await stub(request, timeout=patience, metadata=tuple(self.credentials_.metadata))

    async def code(
        self, called: Called, request: Any, node: str | None = None, patience: float = PATIENCE
    ) -> str:
        """The name of the code that a call ends with."""
        try:
            await self.call(called, request, node, patience)
        except grpc.aio.AioRpcError as error:
            return error.code().name
        return "OK"

    def channel(self, node: str) -> grpc.aio.Channel:
        """The connection to a node."""
        if node not in self._channels:
            self._channels[node] = self._connect(node)
        return self._channels[node]

    def _connect(self, node: str) -> grpc.aio.Channel:
        address = self._deployment.endpoints[node]
        options = [("grpc.enable_retries", 0)]
        if self._authority is None:
            return grpc.aio.insecure_channel(address, options)
        own = self.credentials_.certificate
        credentials = grpc.ssl_channel_credentials(
            self._authority, own.key if own else None, own.certificate if own else None
        )
        name = ("grpc.ssl_target_name_override", server_name(self._deployment.system.name, node))
        return grpc.aio.secure_channel(address, credentials, [*options, name])


def caller(deployment: Launched, credentials_: Credentials) -> Caller:
    """A caller of a running deployment."""
    proof = deployment._credentials
    return Caller(
        deployment, credentials_, proof._authority.certificate if isinstance(proof, Certificates) else None
    )


def principal(deployment: Launched, name: str, *more: tuple[str, str]) -> Credentials:
    """The credentials of a principal, by certificate or by token as the deployment has it."""
    proof = deployment._credentials
    if isinstance(proof, Certificates):
        return Credentials(name, certificate=proof._authority.issue(name), metadata=more)
    return Credentials(name, metadata=(*bearer(token(deployment, name)), *more))


def token(deployment: Launched, name: str) -> str:
    """The token of a principal, where TLS is off."""
    assert deployment._credentials is not None
    found = deployment._credentials.for_caller(name)[1]
    assert found is not None
    return found


def bearer(text: str) -> Metadata:
    return (("authorization", f"Bearer {text}"),)


def foreign_certificates(deployment: Launched) -> Mapping[str, Credentials]:
    """Certificates that look like the gateway's and are not: of another system, of another authority."""
    proof = deployment._credentials
    assert isinstance(proof, Certificates)
    other_system = copy.copy(proof._authority)
    other_system._system = "other"
    return {
        "another system": Credentials(None, certificate=other_system.issue("gateway")),
        "unknown principal": Credentials(None, certificate=proof._authority.issue("stranger")),
        "client by certificate": Credentials(None, certificate=proof._authority.issue("client")),
        "another authority": Credentials(
            None, certificate=Authority("taskqueue").issue("gateway"), trusted=False
        ),
    }


def bad_tokens(deployment: Launched) -> Mapping[str, Credentials]:
    """Authorizations that are not valid."""
    good = token(deployment, "gateway")
    return {
        "unknown token": Credentials(None, metadata=bearer("let-me-in")),
        "empty token": Credentials(None, metadata=bearer("")),
        "cut token": Credentials(None, metadata=bearer(good[:-1])),
        "name as token": Credentials(None, metadata=bearer("gateway")),
        "other scheme": Credentials(None, metadata=(("authorization", f"Basic {good}"),)),
        "bare token": Credentials(None, metadata=(("authorization", good),)),
        "token in another header": Credentials("client", metadata=(("x-authorization", f"Bearer {good}"),)),
    }


def all_callers(deployment: Launched) -> Mapping[str, Credentials]:
    """Every sort of caller that a deployment may meet."""
    forging = {"anonymous with a header": Credentials("client", metadata=FORGED)}
    forging["worker with a header"] = principal(deployment, "worker", *FORGED)
    proven = {name: principal(deployment, name) for name in PRINCIPALS}
    if isinstance(deployment._credentials, Certificates):
        unproven = {
            **foreign_certificates(deployment),
            "unknown token": Credentials(None, metadata=bearer("x")),
        }
    else:
        unproven = dict(bad_tokens(deployment))
    return {**proven, "anonymous": Credentials("client"), **forging, **unproven}
