"""Process plans of a local deployment: commands and variables, as its compose file would set them."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shlex
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from runtime.launch.errors import NoHandlers, WrongSettings
from runtime.launch.planning.credentials import RunCredentials
from runtime.launch.planning.ports import METRICS_ROLE, ProcessSlot, ReservedPorts, list_slots
from runtime.model.system import Deployment, Healthcheck, Node, System
from runtime.node.handler_check import HandlersMissing, require_handlers
from runtime.node.settings import SettingsError, read
from runtime.node.systems import suggest_name

LOOPBACK = "127.0.0.1"
_DATA_PATH = "data_path"
"""The type of a variable with the path of persistent files."""
_LAUNCHER_ROLES = frozenset(
    ("tls_certificate", "tls_key", "tls_authority", "caller_token", "accepted_tokens", METRICS_ROLE)
)


class ProcessPlan(Struct, frozen=True):
    """The plan of one process: its command, variables and addresses."""

    name: str
    node: str
    command: tuple[str, ...]
    variables: Mapping[str, str]
    healthcheck: Healthcheck | None
    """Its target has no variables left."""
    address: str | None
    """Its address for gRPC."""
    url: str | None
    """Its URL for HTTP."""
    metrics_port: int | None


def list_settable(system: System, deployment: Deployment) -> list[str]:
    """List the variables of a deployment that a user may set; the launcher sets the others."""
    found: dict[str, None] = {}
    for node in deployment.nodes.values():
        for name in node.variables:
            variable = system.variables[name]
            if not (
                _is_wired(deployment, name) or variable.role in _LAUNCHER_ROLES or variable.type == "constant"
            ):
                found[name] = None
    return list(found)


def check_settings(system: System, deployment: Deployment, settings: Mapping[str, str]) -> None:
    """Refuse variables that no node reads or that the launcher sets itself, and invalid values."""
    allowed = list_settable(system, deployment)
    read_here = {name for node in deployment.nodes.values() for name in node.variables}
    wrong = [
        f"{name} is given by the launcher and cannot be set."
        if name in read_here
        else f"No node of {system.name}.{deployment.name} reads {name}.{suggest_name(name, allowed)}"
        for name in settings
        if name not in allowed
    ]
    try:
        read([system.variables[name] for name in settings if name in allowed], (), settings)
    except SettingsError as error:
        wrong += error.problems
    if wrong:
        raise WrongSettings(wrong)


def check_handlers(system: System, deployment: Deployment) -> None:
    """Refuse a deployment in which a component has no handler, or one without a method."""
    hosted = dict.fromkeys(component for node in deployment.nodes.values() for component in node.hosts)
    try:
        require_handlers(system, hosted)
    except HandlersMissing as error:
        raise NoHandlers(str(error)) from None


def has_data_files(system: System, deployment: Deployment) -> bool:
    """Whether a node has persistent files of its own."""
    return any(
        system.variables[name].type == _DATA_PATH
        for node in deployment.nodes.values()
        for name in node.variables
    )


def plan(
    system: System,
    deployment: Deployment,
    settings: Mapping[str, str],
    ports: ReservedPorts,
    credentials: RunCredentials,
    data: Path | None = None,
) -> list[ProcessPlan]:
    """Plan every process of a deployment. Raises WrongSettings with all problems of the settings.

    `data` is the folder of persistent files, unless the settings have another.
    """
    settings = {**_make_announced_names(system, deployment, data), **settings}
    found = [
        _plan_process(system, deployment, slot, settings, ports, credentials, data)
        for slot in list_slots(deployment)
    ]
    problems: dict[str, None] = {}
    for each in found:
        node = deployment.nodes[each.node]
        try:
            variables = system.variables_of(deployment, node)
            read(variables, system.variable_rules, each.variables, node.defaults)
        except SettingsError as error:
            problems.update(dict.fromkeys(error.problems))
    if problems:
        raise WrongSettings(list(problems))
    return found


def _make_announced_names(system: System, deployment: Deployment, data: Path | None) -> dict[str, str]:
    """Make the name of an announced deployment: unique on the network, and stable for the same data."""
    slot = str(data.absolute()) if data is not None else secrets.token_hex()
    name = f"{socket.gethostname().partition('.')[0]}-{hashlib.sha256(slot.encode()).hexdigest()[:8]}"
    return {each: name for each in find_name_variables(deployment) if system.variables[each].default is None}


def find_name_variables(deployment: Deployment) -> list[str]:
    """Find the variables with the announced name of a deployment."""
    announced = [node.announced for node in deployment.nodes.values() if node.announced is not None]
    return list(dict.fromkeys(each.name_variable for each in announced if each.name_variable is not None))


def base_environment(system: System) -> dict[str, str]:
    """Return our environment without the system's variables, all of which the launcher sets."""
    return {name: value for name, value in os.environ.items() if name not in system.variables}


def find_addresses(deployment: Deployment, ports: ReservedPorts, node: str) -> list[str]:
    """Find the gRPC addresses of the processes of a node."""
    return [
        f"{LOOPBACK}:{ports.api[each.name]}"
        for each in list_slots(deployment)
        if each.node.name == node and each.name in ports.api
    ]


def find_urls(
    system: System, deployment: Deployment, ports: ReservedPorts, credentials: RunCredentials, node: str
) -> list[str]:
    """Find the HTTP URLs of the processes of a node.

    Health and metrics are no secret, so a node without routes has no TLS there.
    """
    served = [system.services[name] for name in deployment.nodes[node].serves]
    has_routes = any(method.route is not None for service in served for method in service.methods)
    scheme = "https" if credentials.authority_file is not None and has_routes else "http"
    return [
        f"{scheme}://{LOOPBACK}:{ports.http[each.name]}"
        for each in list_slots(deployment)
        if each.node.name == node and each.name in ports.http
    ]


def format_endpoints(processes: Iterable[ProcessPlan]) -> dict[str, str]:
    """Return the endpoints of processes by name: a URL for HTTP, an address for gRPC."""
    found: dict[str, str] = {}
    for each in processes:
        if each.url is not None:
            found[each.name] = each.url
        if each.address is not None:
            found[each.name if each.url is None else f"{each.name}.grpc"] = each.address
    return found


def _plan_process(
    system: System,
    deployment: Deployment,
    slot: ProcessSlot,
    settings: Mapping[str, str],
    ports: ReservedPorts,
    credentials: RunCredentials,
    data: Path | None,
) -> ProcessPlan:
    node = slot.node
    given = _make_launcher_variables(system, deployment, slot, ports, credentials)
    chosen = {name: settings[name] for name in node.variables if name in settings}
    variables = {**_make_defaults(system, slot, data), **chosen, **given}
    return ProcessPlan(
        name=slot.name,
        node=node.name,
        command=_parse_command(node.command),
        variables=variables,
        healthcheck=_make_healthcheck(node, variables),
        address=f"{LOOPBACK}:{ports.api[slot.name]}" if slot.name in ports.api else None,
        url=found[slot.index]
        if (found := find_urls(system, deployment, ports, credentials, node.name))
        else None,
        metrics_port=ports.metrics.get(slot.name),
    )


def _make_healthcheck(node: Node, variables: Mapping[str, str]) -> Healthcheck | None:
    if (check := node.healthcheck) is None:
        return None
    target = re.sub(r"\$\{(\w+)\}", lambda found: variables.get(found[1], ""), check.target)
    return Healthcheck(check.mode, target, check.timeout_ms)


def _make_defaults(system: System, slot: ProcessSlot, data: Path | None) -> dict[str, str]:
    """Make the default values. A default from the host name is the name of the process."""
    found: dict[str, str] = {}
    for name in slot.node.variables:
        variable = system.variables[name]
        default = slot.node.defaults.get(name) or variable.default
        if default is None and variable.default_from == "hostname":
            # In containers every process has a host of its own; here all would have the same name.
            default = slot.name
        if default is not None and variable.type == _DATA_PATH and data is not None:
            default = str(data / default)
        if default is not None:
            found[name] = default
    return found


def _make_launcher_variables(
    system: System,
    deployment: Deployment,
    slot: ProcessSlot,
    ports: ReservedPorts,
    credentials: RunCredentials,
) -> dict[str, str]:
    """Make the variables that the launcher sets: ports, addresses, indexes and credentials."""
    node, routing = slot.node, deployment.routing
    found: dict[str, str] = {}
    if node.port_variable is not None:
        found[node.port_variable] = str(ports.api[slot.name])
    if node.http is not None:
        found[node.http.port_variable] = str(ports.http[slot.name])
    for variable, target in node.upstreams.items():
        several = system.variables[variable].type == "addresses"
        reached = find_addresses(deployment, ports, target)
        found[variable] = ",".join(reached if several else reached[:1])
    for variable, target in node.finds.items():
        # Set, and not discovered: another deployment on the network may have a node of the same name.
        found[variable] = next(iter(find_urls(system, deployment, ports, credentials, target)))
    if routing is not None and routing.order_variable in node.variables:
        found[routing.order_variable] = ",".join(find_addresses(deployment, ports, node.name))
    if routing is not None and routing.index_variable in node.variables:
        found[routing.index_variable] = str(slot.index)
    roles = {**credentials.for_node(node), METRICS_ROLE: str(ports.metrics.get(slot.name, ""))}
    for name in node.variables:
        role = system.variables[name].role
        if role in roles:
            found[name] = roles[role]
    return found


def _is_wired(deployment: Deployment, name: str) -> bool:
    routing = deployment.routing
    if routing is not None and name in (routing.order_variable, routing.index_variable):
        return True
    return any(name in (*node.upstreams, *node.finds) for node in deployment.nodes.values())


def _parse_command(text: str) -> tuple[str, ...]:
    """Parse a start command, with our own interpreter in place of `python`."""
    first, *rest = shlex.split(text)
    return (sys.executable if first in ("python", "python3") else first, *rest)
