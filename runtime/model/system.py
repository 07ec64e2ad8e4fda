"""Tables of a system: frozen records, filled in by the generated modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message
from msgspec import Struct, field
from msgspec.structs import replace

from runtime.model.lifecycles import Lifecycle, Storage
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
    """Retry and backoff of a caller; attempts include the first call."""

    name: str
    codes: frozenset[str]
    attempts: int
    initial_ms: int
    multiplier: float
    max_ms: int
    full_jitter: bool


class CallMode(Struct, frozen=True):
    """A call mode: how a handler makes a call with another deadline or number of attempts."""

    name: str
    fresh_deadline: bool = False
    attempts: int | None = None


class CallPolicy(Struct, frozen=True):
    """The call policy of a method: the deadline of one attempt, and its retry."""

    deadline_ms: int
    idempotency: str
    key: tuple[str, ...] = ()
    retry: RetryProfile | None = None
    retry_when_set: str | None = None


class Drive(Struct, frozen=True):
    """A method that drives a transition, and the request fields with the two states."""

    entity: str
    source_field: str
    target_field: str


class Instead(Struct, frozen=True):
    """The HTTP status of responses in which a field is set, or is not set."""

    status: int
    field: str
    is_set: bool


class Route(Struct, frozen=True):
    """The HTTP route of a method; each {name} of the path is a field of the request."""

    method: str
    path: str
    status: int = 200
    body: str | None = None
    """The bytes field of the request for the body."""
    answer: str | None = None
    """The bytes field of the response for its body."""
    any_value: bool = False
    """Whether it also matches paths of another route, for methods that the other route lacks."""
    instead: tuple[Instead, ...] = ()


class Method(Struct, frozen=True):
    """One unary method."""

    service: str
    name: str
    attribute: str
    request: type[Message]
    response: type[Message]
    policy: CallPolicy
    check: Callable[[Any], Sequence[Violation]] | None = None
    settle: Callable[[Any], None] | None = None
    max_request_bytes: int | None = None
    """Max bytes of a request, over any transport."""
    max_request_variable: str | None = None
    """The variable with that limit, where the node has it."""
    drive: Drive | None = None
    names_caller: str | None = None
    log_fields: tuple[str, ...] = ()
    detached: bool = False
    """Whether its handler runs to the end even if the caller cancels the call."""
    route: Route | None = None

    def with_request_limit(self, values: Mapping[str, Any]) -> Method:
        """Return the method with the request limit of a node's settings."""
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
    """Permission of a principal to call a method, and the only values that request fields may have then."""

    only: Mapping[str, object] = field(default_factory=dict)
    mode: CallMode | None = None


CallerMatrix = Mapping[str, Mapping[str, Permission]]
"""Path of a method -> principal -> permission. All else is denied."""


class Principal(Struct, frozen=True):
    """A principal, and how it may authenticate."""

    name: str
    proofs: frozenset[str]
    without_tokens: bool = False
    """Whether it may be anonymous only where there are no tokens and no certificates."""

    @property
    def anonymous(self) -> bool:
        return "anonymous" in self.proofs


class Event(Struct, frozen=True):
    """A log event."""

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
    """The regular expression for the whole text."""
    role: str | None = None
    also_named: tuple[str, ...] = ()
    """Aliases, which are read where it is unset."""


class VariableRule(Struct, frozen=True):
    """A rule between variables."""

    meaning: str
    variable: str | None = None
    greater_than: str | None = None
    less_than_count_of: str | None = None
    together: tuple[str, ...] = ()


class Healthcheck(Struct, frozen=True):
    """The healthcheck of a node, and its timeout."""

    mode: str
    target: str
    timeout_ms: int


class Announced(Struct, frozen=True):
    """The announcement of a node on its network, and the variable that turns it on."""

    service: str
    alias: str | None
    variable: str
    name_variable: str | None = None
    """The variable with the name of the deployment, which distinguishes several on one network."""


class Listener(Struct, frozen=True):
    """An HTTP listener of a node, and the principal of calls without proof."""

    host: str
    """An address, or `${NAME}` for the variable with it."""
    port_variable: str
    anonymous: str | None = None
    optional: bool = False
    """Whether the listener is off where the variable is unset."""


class Node(Struct, frozen=True):
    """One kind of process of a deployment."""

    name: str
    hosts: tuple[str, ...]
    serves: tuple[str, ...]
    variables: tuple[str, ...]
    command: str
    healthcheck: Healthcheck | None = None
    """None for a node that is started on demand."""
    on_demand: bool = False
    unless: Mapping[str, str] = field(default_factory=dict)
    """Hosted components, and the variable that excludes each where it is true."""
    replicas: int = 1
    bind_host: str | None = None
    port_variable: str | None = None
    anonymous: str | None = None
    """The principal of gRPC calls without proof."""
    carrier: str = "grpcio"
    """The gRPC carrier of its listener."""
    http: Listener | None = None
    announced: Announced | None = None
    finds: Mapping[str, str] = field(default_factory=dict)
    """Variables with the URL of another node, which is discovered on the network where they are unset."""
    upstreams: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


class Routing(Struct, frozen=True):
    """Routing of a client to the node that owns a key."""

    order_variable: str
    index_variable: str
    mints: str
    keys: Mapping[str, str]
    per_node: frozenset[str]


class Deployment(Struct, frozen=True):
    """A deployment of a system."""

    name: str
    in_process: bool
    ingress: tuple[str, ...]
    nodes: Mapping[str, Node]
    carrier: str = "grpcio"
    """The gRPC carrier between its own nodes."""
    engine: str = "memory"
    """The storage engine of all entities."""
    unneeded: frozenset[str] = frozenset()
    """The variables of other engines, which need no value here."""
    slots_variable: str | None = None
    slots_total: int | None = None
    routing: Routing | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    """Embedded servers that are started with it, unless the variable of each has the address of one."""


class Keepalive(Struct, frozen=True):
    """Keepalive pings of both sides."""

    ping_every_ms: int
    ping_timeout_ms: int
    shortest_ping_accepted_ms: int
    idle_pings: bool
    connection_age_ms: int


class Upstream(Struct, frozen=True):
    """The mapping of failures of calls to other components for the caller."""

    pass_through: frozenset[str]
    unavailable: frozenset[str]


class JsonStyle(Struct, frozen=True):
    """The JSON form of messages."""

    snake: bool = False
    """Whether fields have the names of the spec; else the camelCase names of protobuf JSON."""
    shows_unset: bool = False
    milliseconds: bool = False
    details: bool = False


class System(Struct, frozen=True):
    """All tables of a system."""

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
    storage: Mapping[str, Mapping[str, Storage]] = field(default_factory=dict)
    """By engine that a deployment names, and by entity: how it keeps them."""
    settings: Mapping[str, type[Any]] = field(default_factory=dict)
    clients: Mapping[str, type[Any]] = field(default_factory=dict)
    measured: tuple[Measured, ...] = ()
    """Metrics over all processes."""
    json_fields: frozenset[str] = frozenset()
    """Fields with JSON text, by their full names."""
    enum_prefixes: Mapping[str, str] = field(default_factory=dict)
    """Prefixes that the values of an enum lose in JSON, by its full name."""
    json_style: JsonStyle = JsonStyle()
    enum_spelling: Mapping[str, str] = field(default_factory=dict)
    """Enums whose values are not in upper case in JSON, by their full names: `lower` or `title`."""
    variable_prefix: str | None = None
    """The prefix of the system's own variables."""

    def placed_by(self, engine: str) -> System:
        """Return the system with each lifecycle in the layout of an engine that deployments name."""
        return replace(
            self, lifecycles={name: self.place(each, engine) for name, each in self.lifecycles.items()}
        )

    def place(self, lifecycle: Lifecycle, engine: str) -> Lifecycle:
        """Return a lifecycle in the layout of an engine; as it is where the engine has no layout for it."""
        storage = self.storage.get(engine, {}).get(lifecycle.entity)
        return lifecycle if storage is None else lifecycle.kept_by(storage)

    def variables_of(self, deployment: Deployment, node: Node) -> list[Variable]:
        """Return the variables of a node; those of an engine that is not used need no value."""
        found = [self.variables[name] for name in node.variables]
        unneeded = deployment.unneeded
        return [replace(each, required=False) if each.name in unneeded else each for each in found]

    def word(self, enum: str, value: str) -> str:
        """Return the JSON name of a value of an enum, which is given by its full name."""
        short = value.removeprefix(self.enum_prefixes.get(enum, ""))
        spelled = {"lower": str.lower, "title": str.capitalize}.get(self.enum_spelling.get(enum, ""))
        return spelled(short) if spelled else short
