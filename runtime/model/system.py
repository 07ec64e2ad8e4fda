"""What the generator tells the engine: frozen records, filled in by the modules under `generated/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message
from msgspec import Struct, field
from msgspec.structs import replace

from runtime.model.lifecycles import Lifecycle
from runtime.model.measuring import Measured

if TYPE_CHECKING:
    from runtime.call.conditions import Condition


class Violation(Struct, frozen=True):
    """A request field that breaks a rule."""

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


class RetryProfile(Struct, frozen=True):
    """When and how often a caller tries again; attempts count the first call."""

    name: str
    codes: frozenset[str]
    attempts: int
    initial_ms: int
    multiplier: float
    max_ms: int
    full_jitter: bool


class CallMode(Struct, frozen=True):
    """How a handler makes a call that must not follow the ordinary rules."""

    name: str
    fresh_deadline: bool = False
    attempts: int | None = None


class CallPolicy(Struct, frozen=True):
    """What a caller holds to: the deadline of one attempt, and whether it may try again."""

    deadline_ms: int
    idempotency: str
    key: tuple[str, ...] = ()
    retry: RetryProfile | None = None
    retry_when_set: str | None = None


class Drive(Struct, frozen=True):
    """Says that a method moves an entity, and which request fields name the states."""

    entity: str
    source_field: str
    target_field: str


class Instead(Struct, frozen=True):
    """The status of answers in which a field is set, or in which it is not."""

    status: int
    field: str
    is_set: bool


class Route(Struct, frozen=True):
    """Where a method is found over HTTP; each {name} of the path is a field of the request."""

    method: str
    path: str
    status: int = 200
    body: str | None = None
    """The bytes field of the request that the body is."""
    answer: str | None = None
    """The bytes field of the answer that its body is."""
    any_value: bool = False
    """Whether it also takes paths that another route has, for methods which that one lacks."""
    instead: tuple[Instead, ...] = ()


class Method(Struct, frozen=True):
    """One unary call."""

    service: str
    name: str
    attribute: str
    request: type[Message]
    response: type[Message]
    policy: CallPolicy
    check: Callable[[Any], Sequence[Violation]] | None = None
    settle: Callable[[Any], None] | None = None
    max_request_bytes: int | None = None
    """Its largest request, whatever carries it."""
    max_request_variable: str | None = None
    """The variable that says so instead, where the node has it."""
    drive: Drive | None = None
    names_caller: str | None = None
    log_fields: tuple[str, ...] = ()
    detached: bool = False
    """Whether it has steps that must be carried through even if its caller goes away."""
    route: Route | None = None

    def bounded(self, values: Mapping[str, Any]) -> Method:
        """The method with the largest request that the variables of a node say."""
        most = values.get(self.max_request_variable or "")
        return self if most is None else replace(self, max_request_bytes=most)

    @property
    def path(self) -> str:
        """Its name on the wire."""
        return f"/{self.service}/{self.name}"

    def __str__(self) -> str:
        return f"{self.service.rpartition('.')[2]}.{self.name}"


class Service(Struct, frozen=True):
    """A set of methods that one component offers."""

    name: str
    component: str
    methods: tuple[Method, ...]


class Permission(Struct, frozen=True):
    """That a principal may call a method, and the only values that request fields may have then."""

    only: Mapping[str, object] = field(default_factory=dict)
    mode: CallMode | None = None


CallerMatrix = Mapping[str, Mapping[str, Permission]]
"""Path of a method -> principal -> permission. What is not in it is denied."""


class Principal(Struct, frozen=True):
    """Someone who calls, and the ways in which it may prove itself."""

    name: str
    proofs: frozenset[str]
    without_tokens: bool = False
    """Whether it is let in without proof only where there are no tokens and no certificates."""

    @property
    def anonymous(self) -> bool:
        return "anonymous" in self.proofs


class Event(Struct, frozen=True):
    """Something worth a log line."""

    name: str
    level: str
    always: bool = False
    first_always: bool = False


class Variable(Struct, frozen=True):
    """One environment variable."""

    name: str
    type: str
    meaning: str
    default: str | None = None
    default_from: str | None = None
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    clamp: tuple[int, int] | None = None
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    """What the whole of a text must match."""
    role: str | None = None
    also_named: tuple[str, ...] = ()
    """Other names of it, which count where it is unset."""


class VariableRule(Struct, frozen=True):
    """Something that must hold between variables."""

    meaning: str
    variable: str | None = None
    greater_than: str | None = None
    less_than_count_of: str | None = None
    together: tuple[str, ...] = ()


class Healthcheck(Struct, frozen=True):
    """What is checked of a node, and how patiently."""

    mode: str
    target: str
    timeout_ms: int


class Announced(Struct, frozen=True):
    """How a node is found on its network, and the variable that says whether it is."""

    service: str
    alias: str | None
    variable: str
    name_variable: str | None = None
    """The variable with the name of the deployment, which tells several on one network apart."""


class Listener(Struct, frozen=True):
    """Where a node takes HTTP requests, and who calls there without proof."""

    host: str
    """An address, or `${NAME}` for the variable that has it."""
    port_variable: str
    anonymous: str | None = None
    optional: bool = False
    """Whether nothing is opened where the variable has no value."""


class Node(Struct, frozen=True):
    """One kind of process of a deployment."""

    name: str
    hosts: tuple[str, ...]
    serves: tuple[str, ...]
    variables: tuple[str, ...]
    command: str
    healthcheck: Healthcheck | None = None
    """None where nobody starts it but whoever needs it."""
    on_demand: bool = False
    unless: Mapping[str, str] = field(default_factory=dict)
    """Hosted components, and the variable that leaves each out where it is true."""
    replicas: int = 1
    bind_host: str | None = None
    port_variable: str | None = None
    anonymous: str | None = None
    """Who calls over gRPC without proof."""
    carrier: str = "grpcio"
    """What carries gRPC at its listener."""
    http: Listener | None = None
    announced: Announced | None = None
    finds: Mapping[str, str] = field(default_factory=dict)
    """Variables with the URL of another node, which is found on the network where they are unset."""
    upstreams: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


class Routing(Struct, frozen=True):
    """How a client finds the node that owns a key."""

    order_variable: str
    index_variable: str
    mints: str
    keys: Mapping[str, str]
    per_node: frozenset[str]


class Deployment(Struct, frozen=True):
    """One design of a system."""

    name: str
    in_process: bool
    ingress: tuple[str, ...]
    nodes: Mapping[str, Node]
    carrier: str = "grpcio"
    """What carries gRPC between its own nodes."""
    slots_variable: str | None = None
    slots_total: int | None = None
    routing: Routing | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    """Servers that are started with it, unless the variable of each says where one is."""


class Keepalive(Struct, frozen=True):
    """Connection pings of both sides."""

    ping_every_ms: int
    ping_timeout_ms: int
    shortest_ping_accepted_ms: int
    idle_pings: bool
    connection_age_ms: int


class Upstream(Struct, frozen=True):
    """How a failed call to another component looks to our own caller."""

    pass_through: frozenset[str]
    unavailable: frozenset[str]


class JsonStyle(Struct, frozen=True):
    """How messages look as JSON."""

    snake: bool = False
    """Whether fields have their names of the spec; else those that protobuf has for JSON."""
    shows_unset: bool = False
    milliseconds: bool = False
    details: bool = False


class System(Struct, frozen=True):
    """Everything the engine has to know of a system."""

    name: str
    digest: str
    services: Mapping[str, Service]
    matrix: CallerMatrix
    principals: Mapping[str, Principal]
    lifecycles: Mapping[str, Lifecycle]
    conditions: Mapping[str, type[Condition]]
    roles: Mapping[str, type[Condition]]
    upstream: Upstream
    events: Mapping[str, Event]
    variables: Mapping[str, Variable]
    variable_rules: tuple[VariableRule, ...]
    deployments: Mapping[str, Deployment]
    keepalive: Keepalive
    message_bytes: int
    concurrent_streams: int
    connections: int
    shutdown_grace_ms: int
    log_fields: tuple[str, ...]
    settings: Mapping[str, type[Any]] = field(default_factory=dict)
    clients: Mapping[str, type[Any]] = field(default_factory=dict)
    measured: tuple[Measured, ...] = ()
    """What is told of all processes together."""
    json_fields: frozenset[str] = frozenset()
    """Fields that hold JSON text, by their full names."""
    enum_prefixes: Mapping[str, str] = field(default_factory=dict)
    """What is left out of the values of an enum in JSON, by its full name."""
    json_style: JsonStyle = JsonStyle()
    enum_spelling: Mapping[str, str] = field(default_factory=dict)
    """Enums whose values are not in upper case in JSON, by their full names: `lower` or `title`."""
    variable_prefix: str | None = None
    """What the names of variables begin with that are nobody else's."""

    def word(self, enum: str, value: str) -> str:
        """What JSON calls a value of an enum, which is given by its full name."""
        short = value.removeprefix(self.enum_prefixes.get(enum, ""))
        spelled = {"lower": str.lower, "title": str.capitalize}.get(self.enum_spelling.get(enum, ""))
        return spelled(short) if spelled else short
