"""What each process of a local deployment is started with: the variables that its compose file would set."""

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
from runtime.launch.planning.credentials import Proof
from runtime.launch.planning.ports import METRICS_ROLE, Place, Ports, places
from runtime.model.system import Deployment, Healthcheck, Node, System
from runtime.node.handler_check import HandlersMissing, require_handlers
from runtime.node.settings import SettingsError, read
from runtime.node.systems import meant

LOOPBACK = "127.0.0.1"
_KEPT = "data_path"
"""The type of a variable that says where files are that stay."""
_GIVEN_ROLES = frozenset(
    ("tls_certificate", "tls_key", "tls_authority", "caller_token", "accepted_tokens", METRICS_ROLE)
)


class Planned(Struct, frozen=True):
    """One process, before it is started."""

    name: str
    node: str
    command: tuple[str, ...]
    variables: Mapping[str, str]
    healthcheck: Healthcheck | None
    """Its target has no variables left."""
    address: str | None
    """Where it takes gRPC calls."""
    url: str | None
    """Where it takes HTTP requests."""
    metrics_port: int | None


def settable(system: System, deployment: Deployment) -> list[str]:
    """The variables of a deployment that a user may set; the launcher gives the others."""
    found: dict[str, None] = {}
    for node in deployment.nodes.values():
        for name in node.variables:
            variable = system.variables[name]
            if not (
                _is_wired(deployment, name) or variable.role in _GIVEN_ROLES or variable.type == "constant"
            ):
                found[name] = None
    return list(found)


def check_settings(system: System, deployment: Deployment, settings: Mapping[str, str]) -> None:
    """Refuses variables that nobody reads or that the launcher gives itself, and values that are none."""
    allowed = settable(system, deployment)
    read_here = {name for node in deployment.nodes.values() for name in node.variables}
    wrong = [
        f"{name} is given by the launcher and cannot be set."
        if name in read_here
        else f"No node of {system.name}.{deployment.name} reads {name}.{meant(name, allowed)}"
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
    """Refuses a deployment in which a component has no handler, or one that lacks a method."""
    hosted = dict.fromkeys(component for node in deployment.nodes.values() for component in node.hosts)
    try:
        require_handlers(system, hosted)
    except HandlersMissing as error:
        raise NoHandlers(str(error)) from None


def keeps_data(system: System, deployment: Deployment) -> bool:
    """Whether a node keeps files of its own from one run to the next."""
    return any(
        system.variables[name].type == _KEPT for node in deployment.nodes.values() for name in node.variables
    )


def plan(
    system: System,
    deployment: Deployment,
    settings: Mapping[str, str],
    ports: Ports,
    proof: Proof,
    data: Path | None = None,
) -> list[Planned]:
    """Every process of a deployment. Raises with everything that is wrong with the settings.

    `data` is where files go that stay, unless the settings say where.
    """
    settings = {**_announced_names(system, deployment, data), **settings}
    found = [
        _planned(system, deployment, place, settings, ports, proof, data) for place in places(deployment)
    ]
    problems: dict[str, None] = {}
    for each in found:
        node = deployment.nodes[each.node]
        try:
            variables = [system.variables[name] for name in node.variables]
            read(variables, system.variable_rules, each.variables, node.defaults)
        except SettingsError as error:
            problems.update(dict.fromkeys(error.problems))
    if problems:
        raise WrongSettings(list(problems))
    return found


def _announced_names(system: System, deployment: Deployment, data: Path | None) -> dict[str, str]:
    """A name for a deployment that is announced: its own on the network, and the same for the same data."""
    place = str(data.absolute()) if data is not None else secrets.token_hex()
    name = f"{socket.gethostname().partition('.')[0]}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"
    return {each: name for each in name_variables(deployment) if system.variables[each].default is None}


def name_variables(deployment: Deployment) -> list[str]:
    """The variables with the name under which nodes of a deployment are announced."""
    announced = [node.announced for node in deployment.nodes.values() if node.announced is not None]
    return list(dict.fromkeys(each.name_variable for each in announced if each.name_variable is not None))


def base_environment(system: System) -> dict[str, str]:
    """Our own environment without the system's variables: a node is told all of those, and by us."""
    return {name: value for name, value in os.environ.items() if name not in system.variables}


def addresses(deployment: Deployment, ports: Ports, node: str) -> list[str]:
    """Where the processes of a node take gRPC calls."""
    return [
        f"{LOOPBACK}:{ports.api[each.name]}"
        for each in places(deployment)
        if each.node.name == node and each.name in ports.api
    ]


def urls(system: System, deployment: Deployment, ports: Ports, proof: Proof, node: str) -> list[str]:
    """Where the processes of a node take HTTP requests.

    What they have beside methods is no secret, so a node that has nothing else speaks no TLS there.
    """
    served = [system.services[name] for name in deployment.nodes[node].serves]
    has_routes = any(method.route is not None for service in served for method in service.methods)
    scheme = "https" if proof.authority_file is not None and has_routes else "http"
    return [
        f"{scheme}://{LOOPBACK}:{ports.http[each.name]}"
        for each in places(deployment)
        if each.node.name == node and each.name in ports.http
    ]


def endpoints(processes: Iterable[Planned]) -> dict[str, str]:
    """Where processes listen, by name: a URL for HTTP, an address for gRPC."""
    found: dict[str, str] = {}
    for each in processes:
        if each.url is not None:
            found[each.name] = each.url
        if each.address is not None:
            found[each.name if each.url is None else f"{each.name}.grpc"] = each.address
    return found


def _planned(
    system: System,
    deployment: Deployment,
    place: Place,
    settings: Mapping[str, str],
    ports: Ports,
    proof: Proof,
    data: Path | None,
) -> Planned:
    node = place.node
    given = _given(system, deployment, place, ports, proof)
    chosen = {name: settings[name] for name in node.variables if name in settings}
    variables = {**_defaults(system, place, data), **chosen, **given}
    return Planned(
        name=place.name,
        node=node.name,
        command=_command(node.command),
        variables=variables,
        healthcheck=_healthcheck(node, variables),
        address=f"{LOOPBACK}:{ports.api[place.name]}" if place.name in ports.api else None,
        url=found[place.index] if (found := urls(system, deployment, ports, proof, node.name)) else None,
        metrics_port=ports.metrics.get(place.name),
    )


def _healthcheck(node: Node, variables: Mapping[str, str]) -> Healthcheck | None:
    if (check := node.healthcheck) is None:
        return None
    target = re.sub(r"\$\{(\w+)\}", lambda found: variables.get(found[1], ""), check.target)
    return Healthcheck(check.mode, target, check.timeout_ms)


def _defaults(system: System, place: Place, data: Path | None) -> dict[str, str]:
    """Values that hold unless they are set. What comes from the host's name comes from the process's name."""
    found: dict[str, str] = {}
    for name in place.node.variables:
        variable = system.variables[name]
        default = place.node.defaults.get(name) or variable.default
        if default is None and variable.default_from == "hostname":
            # In containers every process has a host of its own; here they would all be called the same.
            default = place.name
        if default is not None and variable.type == _KEPT and data is not None:
            default = str(data / default)
        if default is not None:
            found[name] = default
    return found


def _given(
    system: System, deployment: Deployment, place: Place, ports: Ports, proof: Proof
) -> dict[str, str]:
    """What only the launcher can know: ports, addresses, places and proofs."""
    node, routing = place.node, deployment.routing
    found: dict[str, str] = {}
    if node.port_variable is not None:
        found[node.port_variable] = str(ports.api[place.name])
    if node.http is not None:
        found[node.http.port_variable] = str(ports.http[place.name])
    for variable, target in node.upstreams.items():
        several = system.variables[variable].type == "addresses"
        reached = addresses(deployment, ports, target)
        found[variable] = ",".join(reached if several else reached[:1])
    for variable, target in node.finds.items():
        # Said, and not looked for: another deployment on the same network has what is called the same.
        found[variable] = next(iter(urls(system, deployment, ports, proof, target)))
    if routing is not None and routing.order_variable in node.variables:
        found[routing.order_variable] = ",".join(addresses(deployment, ports, node.name))
    if routing is not None and routing.index_variable in node.variables:
        found[routing.index_variable] = str(place.index)
    roles = {**proof.of_node(node), METRICS_ROLE: str(ports.metrics.get(place.name, ""))}
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


def _command(text: str) -> tuple[str, ...]:
    """A start command, with the interpreter that runs us in place of `python`."""
    first, *rest = shlex.split(text)
    return (sys.executable if first in ("python", "python3") else first, *rest)
