"""Callers of every sort: proven, unproven, lying and foreign, each with connections of its own."""

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


class Shown(NamedTuple):
    """What a caller shows. `name` is who it is by right; None is nobody whose proof is good."""

    name: str | None
    certificate: Issued | None = None
    metadata: Metadata = ()
    trusted: bool = True
    """Whether the authority of the deployment signed the certificate."""


class Caller:
    """Makes single calls, without retries, to any node of a deployment."""

    def __init__(self, deployment: Launched, shown: Shown, authority: bytes | None) -> None:
        self.shown = shown
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
        return await stub(request, timeout=patience, metadata=tuple(self.shown.metadata))

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
            self._channels[node] = self._connected(node)
        return self._channels[node]

    def _connected(self, node: str) -> grpc.aio.Channel:
        address = self._deployment.endpoints[node]
        options = [("grpc.enable_retries", 0)]
        if self._authority is None:
            return grpc.aio.insecure_channel(address, options)
        own = self.shown.certificate
        credentials = grpc.ssl_channel_credentials(
            self._authority, own.key if own else None, own.certificate if own else None
        )
        name = ("grpc.ssl_target_name_override", server_name(self._deployment.system.name, node))
        return grpc.aio.secure_channel(address, credentials, [*options, name])


def caller(deployment: Launched, shown: Shown) -> Caller:
    """A caller of a running deployment."""
    proof = deployment._credentials
    return Caller(
        deployment, shown, proof._authority.certificate if isinstance(proof, Certificates) else None
    )


def principal(deployment: Launched, name: str, *more: tuple[str, str]) -> Shown:
    """The proof of a principal, by certificate or by token as the deployment has it."""
    proof = deployment._credentials
    if isinstance(proof, Certificates):
        return Shown(name, certificate=proof._authority.issue(name), metadata=more)
    return Shown(name, metadata=(*bearer(token(deployment, name)), *more))


def token(deployment: Launched, name: str) -> str:
    """The token of a principal, where TLS is off."""
    assert deployment._credentials is not None
    found = deployment._credentials.for_caller(name)[1]
    assert found is not None
    return found


def bearer(text: str) -> Metadata:
    return (("authorization", f"Bearer {text}"),)


def foreign_certificates(deployment: Launched) -> Mapping[str, Shown]:
    """Certificates that look like the gateway's and are not: of another system, of another authority."""
    proof = deployment._credentials
    assert isinstance(proof, Certificates)
    other_system = copy.copy(proof._authority)
    other_system._system = "other"
    return {
        "another system": Shown(None, certificate=other_system.issue("gateway")),
        "nobody's principal": Shown(None, certificate=proof._authority.issue("stranger")),
        "client by certificate": Shown(None, certificate=proof._authority.issue("client")),
        "another authority": Shown(None, certificate=Authority("taskqueue").issue("gateway"), trusted=False),
    }


def bad_tokens(deployment: Launched) -> Mapping[str, Shown]:
    """Authorizations that prove nothing."""
    good = token(deployment, "gateway")
    return {
        "unknown token": Shown(None, metadata=bearer("let-me-in")),
        "empty token": Shown(None, metadata=bearer("")),
        "cut token": Shown(None, metadata=bearer(good[:-1])),
        "name as token": Shown(None, metadata=bearer("gateway")),
        "other scheme": Shown(None, metadata=(("authorization", f"Basic {good}"),)),
        "bare token": Shown(None, metadata=(("authorization", good),)),
        "token in another header": Shown("client", metadata=(("x-authorization", f"Bearer {good}"),)),
    }


def everybody(deployment: Launched) -> Mapping[str, Shown]:
    """Every sort of caller that a deployment may meet."""
    forging = {"nobody with a header": Shown("client", metadata=FORGED)}
    forging["worker with a header"] = principal(deployment, "worker", *FORGED)
    proven = {name: principal(deployment, name) for name in PRINCIPALS}
    if isinstance(deployment._credentials, Certificates):
        unproven = {**foreign_certificates(deployment), "unknown token": Shown(None, metadata=bearer("x"))}
    else:
        unproven = dict(bad_tokens(deployment))
    return {**proven, "nobody": Shown("client"), **forging, **unproven}
