"""`deployments.yaml`: nodes and their components, discovery, start commands and healthchecks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel, StringConstraints

from codegen.language.base import Doc, LowerName, MethodRef, Part, Positive, UpperName

ServiceName = Annotated[
    str,
    StringConstraints(pattern=r"^_[A-Za-z0-9:-]{1,62}\._(tcp|udp)\.local\.$"),
    Field(description="Name of a service as DNS has it.", examples=["_printer._tcp.local."]),
]
Carrier = Literal["grpcio", "direct"]
Duration = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*(ms|s|m)$")]


class Timing(Part):
    """How often and how patiently a node is checked."""

    interval: Duration
    timeout: Duration
    retries: Positive
    start_period: Duration
    timeout_ms: Positive = Field(default=1000, description="Time a single check may take.")


class Healthcheck(Part):
    """What is checked of a node. `${NAME}` stands for a variable of the node."""

    mode: Literal["tcp", "worker", "http"]
    target: str


LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Hosts that only processes on the same machine can reach."""


class Announced(Part):
    """How a node is found on its network by multicast DNS; its ports are in the properties."""

    service: ServiceName
    alias: ServiceName | None = Field(
        default=None, description="A second name, for tools that refuse the first."
    )
    if_: UpperName = Field(alias="if", description="The variable that says whether it is announced.")
    name: UpperName | None = Field(
        default=None,
        description="The variable with the name of the deployment, which tells several on one network apart; "
        "`<system>.<deployment>` where it is unset.",
    )


class Listen(Part):
    """Where a node takes calls."""

    host: str = Field(default="0.0.0.0", description="An address, or `${NAME}` for a variable that has it.")
    port: UpperName
    anonymous: LowerName | None = Field(
        default=None, description="Who calls without proof; only on a loopback host."
    )
    carrier: Carrier | None = Field(
        default=None,
        description="What carries gRPC at this listener; by default grpcio on an ingress node, and on the "
        "others what the transport of the deployment says.",
    )
    optional: bool = Field(
        default=False, description="Whether nothing is opened where the variable of the port has no value."
    )

    @property
    def is_local(self) -> bool:
        """Whether only processes on the same machine can reach it."""
        return self.host in LOOPBACK or self.host.startswith("${")


class Slots(Part):
    """The worker slots of a whole deployment, so that designs can be compared fairly."""

    variable: UpperName
    total: Positive


class LoadGenerator(Part):
    """A client that puts load on the deployment and measures the answers; it runs only when asked for."""

    command: str = Field(
        description="Its command. {addresses} are those of the ingress nodes in their order, {ca_file} is "
        "the authority of their certificates, {results} a folder for what it writes."
    )


class Node(Part):
    """One kind of process."""

    hosts: Annotated[tuple[LowerName, ...], Field(min_length=1)]
    replicas: Positive = 1
    listen: Listen | None = Field(default=None, description="Where it takes gRPC calls.")
    http: Listen | None = Field(default=None, description="Where it takes HTTP requests.")
    upstreams: dict[UpperName, LowerName] = Field(
        default={}, description="Variables that hold the address of another node."
    )
    defaults: dict[UpperName, str] = Field(
        default={}, description="Defaults that differ from environment.yaml."
    )
    finds: dict[UpperName, LowerName] = Field(
        default={},
        description="Variables with the URL of another node, found on the network where they are unset.",
    )
    announced: Announced | None = None
    on_demand: bool = Field(
        default=False,
        description="Whether it is no process of its own, but assembled in that of whoever needs it.",
    )
    unless: dict[LowerName, UpperName] = Field(
        default={},
        description="Hosted components, and for each the variable that leaves it out where it is true.",
    )
    healthcheck: Healthcheck | None = Field(
        default=None, description="What is checked of it; a node on demand has none."
    )
    doc: Doc | None = None

    @property
    def listeners(self) -> dict[Literal["listen", "http"], Listen]:
        """Its listeners, by their keys."""
        found: dict[Literal["listen", "http"], Listen] = {}
        if self.listen:
            found["listen"] = self.listen
        if self.http:
            found["http"] = self.http
        return found


class Routing(Part):
    """How a client finds the node that owns a key."""

    hash: Literal["sha256"]
    input: Literal["utf8"]
    take: Literal["first_8_bytes_big_endian"]
    owner: Literal["modulo_node_count"]
    order: UpperName = Field(description="The variable that lists all nodes in their fixed order.")
    index: UpperName = Field(description="The variable that says which of them a node is.")
    mints: LowerName = Field(description="The id that a node draws until it owns it.")
    unkeyed: Literal["round_robin"]
    keys: dict[MethodRef, LowerName]
    per_node: tuple[MethodRef, ...] = ()


class Deployment(Part):
    """One design of the system."""

    title: Doc
    doc: Doc
    transport: Literal["grpc", "direct", "in_process"] = Field(
        description="How components talk to each other: over gRPC by grpcio, over gRPC by the engine's own "
        "carrier, or within one process. Listeners of ingress nodes stay with grpcio unless `carrier` says "
        "otherwise."
    )
    ingress: tuple[LowerName, ...] = Field(description="Nodes that clients outside may reach.")
    command: str = Field(description="The one start command of each node; {node} is its name.")
    healthcheck: Timing
    slots: Slots | None = None
    servers: dict[Literal["postgres", "redis", "s3"], UpperName] = Field(
        default={}, description="Servers that are started with it unless the variable says where one is."
    )
    nodes: Annotated[dict[LowerName, Node], Field(min_length=1)]
    routing: Routing | None = None
    load_generator: LoadGenerator | None = Field(
        default=None, description="A service of the compose file that is started by its name alone."
    )

    @property
    def carrier(self) -> Carrier:
        """The carrier of gRPC between its own nodes."""
        return "direct" if self.transport == "direct" else "grpcio"

    def carrier_at(self, name: str) -> Carrier:
        """Find the carrier of gRPC at the listener of a node."""
        listen = self.nodes[name].listen
        if listen is not None and listen.carrier is not None:
            return listen.carrier
        return "grpcio" if name in self.ingress else self.carrier

    @property
    def in_containers(self) -> bool:
        """Whether its nodes can run in containers: no listener is limited to the local machine."""
        return not any(each.is_local for node in self.processes.values() for each in node.listeners.values())

    @property
    def processes(self) -> dict[str, Node]:
        """The nodes that are started with it."""
        return {name: node for name, node in self.nodes.items() if not node.on_demand}


class DeploymentsFile(RootModel[dict[LowerName, Deployment]]):
    """Every deployment of the system."""

    model_config = {"frozen": True, "strict": True}
