"""What the generator tells the engine: frozen records, filled in by the modules under `generated/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from google.protobuf.message import Message

from runtime.conditions import Condition
from runtime.frozen import dataclass
from runtime.lifecycles import Lifecycle
from runtime.measuring import Measured


@dataclass(frozen=True, slots=True)
class Violation:
    """A request field that breaks a rule."""

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


@dataclass(frozen=True, slots=True)
class RetryProfile:
    """When and how often a caller tries again; attempts count the first call."""

    name: str
    codes: frozenset[str]
    attempts: int
    initial_ms: int
    multiplier: float
    max_ms: int
    full_jitter: bool


@dataclass(frozen=True, slots=True)
class CallMode:
    """How a handler makes a call that must not follow the ordinary rules."""

    name: str
    fresh_deadline: bool = False
    attempts: int | None = None


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """What a caller holds to: the deadline of one attempt, and whether it may try again."""

    deadline_ms: int
    idempotency: str
    key: tuple[str, ...] = ()
    retry: RetryProfile | None = None
    retry_when_set: str | None = None


@dataclass(frozen=True, slots=True)
class Drive:
    """Says that a method moves an entity, and which request fields name the states."""

    entity: str
    source_field: str
    target_field: str


@dataclass(frozen=True, slots=True)
class Instead:
    """The status of answers in which a field is set, or in which it is not."""

    status: int
    field: str
    is_set: bool


@dataclass(frozen=True, slots=True)
class Route:
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


@dataclass(frozen=True, slots=True)
class Method:
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
    drive: Drive | None = None
    names_caller: str | None = None
    log_fields: tuple[str, ...] = ()
    detached: bool = False
    """Whether it has steps that must be carried through even if its caller goes away."""
    route: Route | None = None

    @property
    def path(self) -> str:
        """Its name on the wire."""
        return f"/{self.service}/{self.name}"

    def __str__(self) -> str:
        return f"{self.service.rpartition('.')[2]}.{self.name}"


@dataclass(frozen=True, slots=True)
class Service:
    """A set of methods that one component offers."""

    name: str
    component: str
    methods: tuple[Method, ...]


@dataclass(frozen=True, slots=True)
class Permission:
    """That a principal may call a method, and the only values that request fields may have then."""

    only: Mapping[str, object] = field(default_factory=dict)
    mode: CallMode | None = None


CallerMatrix = Mapping[str, Mapping[str, Permission]]
"""Path of a method -> principal -> permission. What is not in it is denied."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Someone who calls, and the ways in which it may prove itself."""

    name: str
    proofs: frozenset[str]
    without_tokens: bool = False
    """Whether it is let in without proof only where there are no tokens and no certificates."""

    @property
    def anonymous(self) -> bool:
        return "anonymous" in self.proofs


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth a log line."""

    name: str
    level: str
    always: bool = False
    first_always: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
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
    role: str | None = None
    also_named: tuple[str, ...] = ()
    """Other names of it, which count where it is unset."""


@dataclass(frozen=True, slots=True)
class VariableRule:
    """Something that must hold between variables."""

    meaning: str
    variable: str | None = None
    greater_than: str | None = None
    less_than_count_of: str | None = None
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Healthcheck:
    """What is checked of a node, and how patiently."""

    mode: str
    target: str
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Announced:
    """How a node is found on its network, and the variable that says whether it is."""

    service: str
    alias: str | None
    variable: str


@dataclass(frozen=True, slots=True)
class Listener:
    """Where a node takes HTTP requests, and who calls there without proof."""

    host: str
    """An address, or `${NAME}` for the variable that has it."""
    port_variable: str
    anonymous: str | None = None
    optional: bool = False
    """Whether nothing is opened where the variable has no value."""


@dataclass(frozen=True, slots=True)
class Node:
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
    http: Listener | None = None
    announced: Announced | None = None
    finds: Mapping[str, str] = field(default_factory=dict)
    """Variables with the URL of another node, which is found on the network where they are unset."""
    upstreams: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Routing:
    """How a client finds the node that owns a key."""

    order_variable: str
    index_variable: str
    mints: str
    keys: Mapping[str, str]
    per_node: frozenset[str]


@dataclass(frozen=True, slots=True)
class Deployment:
    """One design of a system."""

    name: str
    in_process: bool
    ingress: tuple[str, ...]
    nodes: Mapping[str, Node]
    slots_variable: str | None = None
    slots_total: int | None = None
    routing: Routing | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    """Servers that are started with it, unless the variable of each says where one is."""


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Connection pings of both sides."""

    ping_every_ms: int
    ping_timeout_ms: int
    shortest_ping_accepted_ms: int
    idle_pings: bool


@dataclass(frozen=True, slots=True)
class Upstream:
    """How a failed call to another component looks to our own caller."""

    pass_through: frozenset[str]
    unavailable: frozenset[str]


@dataclass(frozen=True, slots=True)
class JsonStyle:
    """How messages look as JSON."""

    snake: bool = False
    """Whether fields have their names of the spec; else those that protobuf has for JSON."""
    shows_unset: bool = False
    milliseconds: bool = False
    details: bool = False


@dataclass(frozen=True, slots=True)
class System:
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
