"""A loaded spec: its files as models, source positions, and indexes over them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from codegen.diagnostics import Place
from codegen.language.callers import CallersFile, Permission
from codegen.language.deployments import Deployment, DeploymentsFile, Node
from codegen.language.environment import EnvironmentFile, Variable
from codegen.language.errors import Condition, ErrorsFile, Role
from codegen.language.lifecycle import LifecycleFile
from codegen.language.metrics import MetricsFile
from codegen.language.services import Method, Service, ServicesFile
from codegen.language.storage import StorageFile
from codegen.language.storage.layouts import ENGINES, find_home, lay_out
from codegen.language.system import SystemFile
from codegen.language.types import EnumType, MessageField, MessageType, TypesFile
from codegen.source.yaml_reader import Source

SCALARS = {
    "string": "str",
    "bytes": "bytes",
    "bool": "bool",
    "int32": "int",
    "int64": "int",
    "uint32": "int",
    "uint64": "int",
    "sint32": "int",
    "sint64": "int",
    "double": "float",
    "float": "float",
    "json": "str",
    "timestamp": "Timestamp",
}
"""Proto scalars and the Python type of each."""


class TypeRef(NamedTuple):
    """A parsed field type: `repeated JobStatus` is kind 'repeated', name 'JobStatus'."""

    kind: str
    name: str
    key: str = ""


class MethodRow(NamedTuple):
    """A method with its service, component, messages and effective policies."""

    ref: str
    service_name: str
    name: str
    service: Service
    method: Method
    request: str
    response: str
    deadline_ms: int
    retry: str
    max_request: str | None
    max_request_variable: str | None
    """The variable that bounds its request where it names no limit of its own."""
    component: str


@dataclass(frozen=True)
class Spec:
    """One system."""

    folder: str
    sources: Mapping[str, Source]
    digest: str
    system: SystemFile
    types: TypesFile
    lifecycle: LifecycleFile
    storage: StorageFile
    services: ServicesFile
    callers: CallersFile
    errors: ErrorsFile
    environment: EnvironmentFile
    deployments: DeploymentsFile
    metrics: MetricsFile
    dropped: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.system.name

    def place(self, file: str, *path: str | int, key: bool = False) -> Place:
        """Find the source position of a value (or of its key) by file and path."""
        return self.sources[file].place(path, key=key)

    def place_of_entity(self, *path: str | int, key: bool = False) -> Place:
        """Find the position of a part of an entity by its name; what follows an engine is in storage.yaml."""
        name, *inner = path
        if not inner or inner[0] not in ENGINES:
            return self.place("lifecycle", "entities", *path, key=key)
        section = getattr(self.storage, str(inner[0]))
        if section is None or "storage" not in self.sources:
            return self.place("lifecycle", "entities", name, key=True)
        if len(inner) == 2 and inner[1] in type(section).model_fields:
            return self.place("storage", *inner, key=key)
        return self.place("storage", inner[0], "entities", name, *inner[1:], key=key)

    @cached_property
    def enums(self) -> dict[str, EnumType]:
        return {name: enum for types in self.types.root.values() for name, enum in types.enums.items()}

    @cached_property
    def messages(self) -> dict[str, MessageType]:
        return {
            name: message for types in self.types.root.values() for name, message in types.messages.items()
        }

    @cached_property
    def proto_of(self) -> dict[str, str]:
        """The proto that defines each enum and message."""
        return {
            name: proto
            for proto, types in self.types.root.items()
            for name in (*types.enums, *types.messages)
        }

    @cached_property
    def server_of(self) -> dict[str, str]:
        """The component that serves each service."""
        return {
            service: component
            for component, row in self.services.components.items()
            for service in row.serves
        }

    def _find_body_variable(self, component: str) -> str | None:
        """Find the variable that bounds the request size of a component."""
        for name, row in self.environment.variables.items():
            if row.role == "max_body_bytes" and (row.read_by == "everyone" or component in row.read_by):
                return name
        return None

    @cached_property
    def methods(self) -> dict[str, MethodRow]:
        """Every method by `Service.Method`."""
        defaults = self.services.defaults
        return {
            f"{service_name}.{name}": MethodRow(
                ref=f"{service_name}.{name}",
                service_name=service_name,
                name=name,
                service=service,
                method=method,
                request=method.request or f"{name}Request",
                response=method.response or f"{name}Response",
                deadline_ms=method.deadline_ms or defaults.deadline_ms,
                retry=method.retry or defaults.retry,
                max_request=method.max_request or defaults.max_request,
                max_request_variable=None
                if method.max_request
                else self._find_body_variable(self.server_of.get(service_name, "")),
                component=self.server_of.get(service_name, ""),
            )
            for service_name, service in self.services.services.items()
            for name, method in service.methods.items()
        }

    @cached_property
    def permissions(self) -> dict[tuple[str, str], Permission]:
        """The caller matrix: (principal, `Service.Method`) to the conditions of the permission."""
        return {
            (principal, f"{service}.{method}"): permission
            for principal, services in self.callers.may_call.items()
            for service in services
            for method, permission in self.callers.get_grants(principal, service).items()
        }

    @cached_property
    def roles(self) -> dict[Role, str]:
        """The condition that plays each of the engine's roles."""
        return {row.role: name for name, row in self.errors.conditions.items() if row.role}

    @property
    def hard_conditions(self) -> dict[str, Condition]:
        return {name: row for name, row in self.errors.conditions.items() if row.soft is None}

    def nodes(self) -> Iterator[tuple[str, Deployment, str, Node]]:
        """Iterate over all nodes: (deployment name, deployment, node name, node)."""
        for deployment_name, deployment in self.deployments.root.items():
            for node_name, node in deployment.nodes.items():
                yield deployment_name, deployment, node_name, node

    def variables_of(self, deployment: Deployment, node_name: str) -> dict[str, Variable]:
        """Find the variables that a node reads: its own, those of its components, and those of everyone.

        Of ports and addresses it reads only those of its own listeners and upstreams.
        """
        node = deployment.nodes[node_name]
        wired = {*node.upstreams, *(each.port for each in node.listeners.values())}
        readers, placed = {node_name, *node.hosts}, self.placed_by(deployment.engine)
        return {
            name: row
            for name, row in self.environment.variables.items()
            if row.read_by == "everyone" or readers & set(row.read_by)
            if row.type not in ("port", "address") or name in wired
            if name not in self.engine_variables or name in placed.storage_variables
        }

    @cached_property
    def storage_variables(self) -> frozenset[str]:
        """The variables that only the stores of its entities need."""
        kept = [row.kept_in for row in self.lifecycle.entities.values()]
        return frozenset(name for each in kept for name in each.variables)

    @cached_property
    def engine_variables(self) -> frozenset[str]:
        """The variables of engines that deployments name; no other deployment reads them."""
        moved = (each.storage_variables for each in self._placed.values())
        return frozenset(name for each in moved for name in each) - self.storage_variables

    @cached_property
    def moved_to(self) -> tuple[str, ...]:
        """The engines with names of their own that keep entities in some deployment, and not by default."""
        entities = self.lifecycle.entities
        return tuple(
            engine
            for engine in sorted(self._placed)
            if engine != "memory" and self._placed[engine].lifecycle.entities != entities
        )

    @property
    def is_stored(self) -> bool:
        """Whether an engine keeps its entities anywhere but in memory, by default or in some deployment."""
        kept = (row.kept_in for row in self.lifecycle.entities.values())
        return bool(self.moved_to) or any(each.store != "memory" for each in kept)

    @property
    def is_durable(self) -> bool:
        """Whether its entities outlive a process: storage.yaml has names, or no deployment is in memory."""
        kept = (row.kept_in for row in self.lifecycle.entities.values())
        in_memory = any(each.engine == "memory" for each in self.deployments.root.values())
        return bool(self.lifecycle.entities) and (
            not in_memory or any(each.store != "memory" for each in kept)
        )

    def at_home(self) -> Spec:
        """Return the spec with each entity in the engine that storage.yaml has names of it for."""
        return self._lay_out({name: find_home(self.storage, name) for name in self.lifecycle.entities})

    def placed_by(self, engine: str) -> Spec:
        """Return the spec with all entities kept by an engine if a deployment names it, and else as it is."""
        return self._placed.get(engine, self)

    @cached_property
    def _placed(self) -> Mapping[str, Spec]:
        engines = {each.engine for each in self.deployments.root.values()}
        return {engine: self._lay_out(dict.fromkeys(self.lifecycle.entities, engine)) for engine in engines}

    @cached_property
    def in_engines(self) -> Mapping[str, Spec]:
        """The spec with all entities in each durable engine, whether a deployment names it or not."""
        return {engine: self._lay_out(dict.fromkeys(self.lifecycle.entities, engine)) for engine in ENGINES}

    def _lay_out(self, engines: Mapping[str, str]) -> Spec:
        variables = self.environment.variables
        entities = {
            name: row.laid_out(lay_out(engines[name], name, row, self.storage, variables))
            for name, row in self.lifecycle.entities.items()
        }
        return replace(self, lifecycle=self.lifecycle.model_copy(update={"entities": entities}))

    def servers_of(self, deployment: Deployment) -> dict[str, str]:
        """Find the servers of a deployment and the variable of each; they follow from its engine."""
        rows = self.placed_by(deployment.engine).lifecycle.entities.values()
        return {server: variable for row in rows for server, variable in row.kept_in.servers.items()}

    def unneeded_variables(self, deployment: Deployment) -> list[str]:
        """List the variables about storage that a deployment does not use, as it names another engine."""
        return sorted(self.storage_variables - self.placed_by(deployment.engine).storage_variables)

    def settings_of(self, component: str) -> dict[str, Variable]:
        """Find the variables that a component itself reads, without ports and addresses."""
        return {
            name: row
            for name, row in self.environment.variables.items()
            if row.read_by != "everyone" and component in row.read_by and row.type not in ("port", "address")
            if name not in self.engine_variables
        }

    def services_of(self, deployment: Deployment, node: Node) -> list[str]:
        """List the services that a node serves to others.

        Of several nodes that host the same component only the ingress nodes serve it. The others call it
        in process.
        """
        ingress_nodes = [each for name, each in deployment.nodes.items() if name in deployment.ingress]
        is_ingress = any(each is node for each in ingress_nodes)
        return [
            service
            for component in node.hosts
            if is_ingress or not any(component in each.hosts for each in ingress_nodes)
            if component in self.services.components
            for service in self.services.components[component].serves
        ]

    def json_name(self, name: str) -> str:
        """Format the name of a field in JSON: `job_id`, or `jobId` as protobuf has it."""
        if self.system.json_.names == "snake":
            return name
        return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)

    def limit(self, value: int | str) -> int:
        """Resolve a bound: a number as it is, or the value of the limit that it names."""
        return value if isinstance(value, int) else self.system.policies.limits[value].value


def type_ref(text: str) -> TypeRef:
    """Parse a field type."""
    if match := re.fullmatch(r"map<(\w+), ?(\w+)>", text):
        return TypeRef("map", match[2], match[1])
    if text.startswith("repeated "):
        return TypeRef("repeated", text.removeprefix("repeated "))
    return TypeRef("single", text)


def field_enum(spec: Spec, field: MessageField) -> EnumType | None:
    """Get the enum of a field, if it has one."""
    return spec.enums.get(type_ref(field.type).name)
