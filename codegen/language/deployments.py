"""`deployments.yaml`: nodes and their components, discovery, start commands and healthchecks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, RootModel, StringConstraints

from codegen.language.base import Doc, LowerName, MethodRef, Part, Positive, UpperName

ServiceName = Annotated[str, StringConstraints(pattern=r"^_[A-Za-z0-9:-]{1,62}\._(tcp|udp)\.local\.$")]
Carrier = Literal["grpcio", "direct"]
Engine = Literal["memory", "postgres", "redis", "s3", "sqlite"]
Duration = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]*(ms|s|m)$")]


class Timing(Part):
    """Interval and patience of healthchecks, with durations as in a compose file."""

    interval: Duration = Field(description="Time between two checks, such as `5s` or `500ms`.")
    timeout: Duration = Field(description="Time after which the container engine ends a check as failed.")
    retries: Positive = Field(description="Failed checks in a row after which a node is unhealthy.")
    start_period: Duration = Field(description="Time after the start in which failed checks do not count.")
    timeout_ms: Positive = Field(
        default=1000,
        description="Milliseconds in which the node must answer a check; at most `timeout`.",
    )


class Healthcheck(Part):
    """The healthcheck of a node."""

    mode: Literal["tcp", "worker", "http"] = Field(
        description="`tcp`: its own port accepts connections. `worker`: the upstream that it works for "
        "does. `http`: a GET is answered with a status of success."
    )
    target: str = Field(
        description="`host:port`, for `http` with a path behind it; `${NAME}` is the value of a variable "
        "of the node."
    )


LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Hosts that only processes on the same machine can reach."""


class Announced(Part):
    """Announcement of a node on the local network by multicast DNS, with its ports as properties."""

    service: ServiceName = Field(description="Service type, as `_<name>._tcp.local.`.")
    alias: ServiceName | None = Field(
        default=None, description="Second service type, for tools that refuse the first."
    )
    if_: UpperName = Field(alias="if", description="Variable of type bool that turns the announcement on.")
    name: UpperName | None = Field(
        default=None,
        description="Variable with the name of the deployment, so that several on one network can be "
        "distinguished; `<system>.<deployment>` where it is unset.",
    )


class Listen(Part):
    """A listening socket of a node."""

    host: str = Field(
        default="0.0.0.0", description="Address to bind to, or `${NAME}` for the value of a variable."
    )
    port: UpperName = Field(description="Variable of type port with the port.")
    anonymous: LowerName | None = Field(
        default=None,
        description="Principal of callers without proof; only on a loopback host. Without it they are "
        "refused, unless a principal is anonymous anyway.",
    )
    carrier: Carrier | None = Field(
        default=None,
        description="Implementation of gRPC at this listener: `grpcio`, or `direct` (HTTP/2 of the "
        "engine). By default grpcio on an ingress node, and on the others that of `transport`.",
    )
    optional: bool = Field(
        default=False, description="Whether nothing is opened where the variable of the port is unset."
    )

    @property
    def is_local(self) -> bool:
        """Whether only processes on the same machine can reach it."""
        return self.host in LOOPBACK or self.host.startswith("${")


class Slots(Part):
    """The worker slots of a whole deployment, so that two deployments can be compared at equal capacity."""

    variable: UpperName = Field(description="Variable with the slots of one node.")
    total: Positive = Field(
        description="Slots of all nodes and replicas together; the defaults have to add up to it."
    )


class LoadGenerator(Part):
    """A client that puts load on the deployment and measures it, as the compose service `load-generator`."""

    command: str = Field(
        description="Its command. `{addresses}` are those of the ingress nodes, `{ca_file}` is the "
        "authority of their certificates, `{results}` the folder for its report."
    )


class Node(Part):
    """One kind of process."""

    hosts: Annotated[tuple[LowerName, ...], Field(min_length=1)] = Field(
        description="Components that run in it; components of one process call each other directly."
    )
    replicas: Positive = Field(default=1, description="How many processes of it are started.")
    listen: Listen | None = Field(default=None, description="Listener for gRPC; without it there is none.")
    http: Listen | None = Field(
        default=None,
        description="Listener for HTTP: routes, `/healthz`, `/readyz`, `/metrics`, `/openapi.json` and "
        "`/docs`. Without it there is none.",
    )
    upstreams: dict[UpperName, LowerName] = Field(
        default={},
        description="Variables of type address and the node that each points to, one for every node that "
        "it calls by gRPC.",
    )
    defaults: dict[UpperName, str] = Field(
        default={}, description="Defaults of this node that differ from `environment.yaml`, as text."
    )
    finds: dict[UpperName, LowerName] = Field(
        default={},
        description="Variables of type url and the announced node that each points to; where one is unset, "
        "the node is discovered on the network.",
    )
    announced: Announced | None = Field(
        default=None, description="Announcement by multicast DNS; without it the node is not announced."
    )
    on_demand: bool = Field(
        default=False,
        description="Whether it is no process of the deployment, but assembled inside a program that needs "
        "it, such as a command line.",
    )
    unless: dict[LowerName, UpperName] = Field(
        default={},
        description="Hosted components, and the variable of type bool that excludes each where it is true.",
    )
    healthcheck: Healthcheck | None = Field(
        default=None, description="Its healthcheck; only a node on demand has none."
    )
    doc: Doc | None = Field(default=None, description="What it is for; for the reference page.")

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
    """Routing of clients to the one of several equal nodes that owns a key."""

    hash: Literal["sha256"] = Field(description="Hash of the key.")
    input: Literal["utf8"] = Field(description="Encoding of the key before it is hashed.")
    take: Literal["first_8_bytes_big_endian"] = Field(description="Part of the hash that is the number.")
    owner: Literal["modulo_node_count"] = Field(description="How the number selects the node.")
    order: UpperName = Field(
        description="Variable of type addresses with all nodes, in the order that every client has, too."
    )
    index: UpperName = Field(description="Variable with the position of a node in that order, from 0.")
    mints: LowerName = Field(
        description="Id that a node generates, again until it owns the new id itself; the key of an entity."
    )
    unkeyed: Literal["round_robin"] = Field(description="How a call with an empty key is routed.")
    keys: dict[MethodRef, LowerName] = Field(
        description="Methods, and the request field of each that is the key."
    )
    per_node: tuple[MethodRef, ...] = Field(
        default=(),
        description="Methods that every node answers for itself alone; a client calls the first of its "
        "nodes.",
    )


class Deployment(Part):
    """One way to run the system: nodes, and how they reach each other."""

    title: Doc = Field(description="Its name on the reference page.")
    doc: Doc = Field(description="What it is for; for the reference page.")
    transport: Literal["grpc", "direct", "in_process"] = Field(
        description="How components of different nodes call each other: `grpc` (by grpcio), `direct` (gRPC "
        "by the engine's own HTTP/2), or `in_process`, where each node has all that it calls."
    )
    ingress: tuple[LowerName, ...] = Field(
        description="Nodes that clients outside may reach; compose publishes their ports."
    )
    command: str = Field(description="Start command of every node; `{node}` is its name.")
    healthcheck: Timing = Field(description="Timing of all healthchecks.")
    slots: Slots | None = Field(
        default=None, description="Worker slots of the deployment; without it they are not added up."
    )
    engine: Engine = Field(
        default="memory",
        description="Storage engine of all entities in this deployment. `memory` keeps them in one process "
        "and loses them with it; `sqlite` keeps them in a file that one process owns; `postgres`, `redis` "
        "and `s3` keep them on a server, which is started with the deployment unless its variable has the "
        "URL of one. `storage.yaml` names variables, tables, keys and objects; all have defaults.",
    )
    nodes: Annotated[dict[LowerName, Node], Field(min_length=1)] = Field(
        description="Nodes by name; together they host every component."
    )
    routing: Routing | None = Field(
        default=None, description="Routing by key; without it all calls of a client go to its first address."
    )
    load_generator: LoadGenerator | None = Field(
        default=None, description="Load generator, which compose starts only by its name."
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
    """Deployments: nodes and their components, listeners, discovery, start commands and healthchecks."""

    model_config = {"frozen": True, "strict": True}
