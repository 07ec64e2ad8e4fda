"""Finds on the network what the settings of a node do not say: where the nodes are that it calls."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from runtime.model.system import Announced, Deployment, Event, Node, System
from runtime.node.settings import SettingsError
from runtime.observe.log import Log

if TYPE_CHECKING:
    from runtime.node.discovery import Sought

LOOKING = Event("looking_for_upstream", "INFO", always=True)
FOUND = Event("found_upstream", "INFO", always=True)
_PATIENCE_S = 10.0
_SETTLE_S, _UNNAMED_SETTLE_S = 1.0, 3.0
"""How long further answers are waited for: longer without a name, because a node stays where it begins."""
_LONGEST_NAME = 200
"""Bytes: a property of an announcement has at most 255, its own name included."""


def deployment_name(
    system: System, deployment: Deployment, announced: Announced | None, values: Mapping[str, Any]
) -> str:
    """The name under which a node announces its deployment. Raises SettingsError where it is too long."""
    variable = announced.name_variable if announced is not None else None
    name = str((variable and values.get(variable)) or f"{system.name}.{deployment.name}")
    if len(name.encode()) > _LONGEST_NAME:
        raise SettingsError([f"{variable}: must have at most {_LONGEST_NAME} bytes"])
    return name


def unknown(
    system: System, deployment: Deployment, node: Node, environ: Mapping[str, str]
) -> dict[str, tuple[Announced, str]]:
    """Variables that are unset and whose nodes are announced: how each is, and the port wanted."""
    return {
        variable: (announced, port)
        for variable, (announced, port) in _announced(deployment, node).items()
        if not _value(system, node, environ, variable) and _is_on(system, node, environ, announced)
    }


async def where_they_are(
    system: System, deployment: Deployment, node: Node, environ: Mapping[str, str], log: Log
) -> dict[str, str]:
    """The values of those variables, as soon as all have been found in one deployment.

    Raises SettingsError where there are several deployments and nothing says which one is meant.
    """
    from runtime.node.discovery import NotLocated, SeveralDeployments, locate

    wanted = unknown(system, deployment, node, environ)
    variable = next((each.name_variable for each, _ in wanted.values() if each.name_variable), None)
    name = _value(system, node, environ, variable) if variable else None
    sought = _sought(system, deployment, node, environ, wanted, name)
    ways = " or ".join(each for each in (variable, " and ".join(wanted)) if each)
    while True:
        try:
            offers = await locate(sought, name, _PATIENCE_S, _SETTLE_S if name else _UNNAMED_SETTLE_S)
        except NotLocated as missing:
            log.write(LOOKING, f"{missing} The node goes on looking; {ways} would say where.")
        except SeveralDeployments as several:
            raise SettingsError([f"{several} Choose by {ways}"]) from None
        else:
            break
    targets = _targets(node)
    found: dict[str, str] = {}
    for variable, (announced, port) in wanted.items():
        offer = offers[targets[variable]]
        place = f"{offer.address}:{offer.properties[port]}"
        found[variable] = place if port == "grpc_port" else f"http://{place}"
        which = f"{offer.instance} of {offer.deployment or 'a deployment without a name'}"
        log.write(FOUND, f"{variable} is {found[variable]}: {which} offers {announced.service}")
    return found


def _targets(node: Node) -> dict[str, str]:
    """The nodes that a node calls, by the variable that has their address or their URL."""
    return {**node.upstreams, **node.finds}


def _announced(deployment: Deployment, node: Node) -> dict[str, tuple[Announced, str]]:
    """How those of them are announced that are, and which port is wanted of each."""
    return {
        variable: (announced, "grpc_port" if variable in node.upstreams else "http_port")
        for variable, target in _targets(node).items()
        if (announced := deployment.nodes[target].announced) is not None
    }


def _sought(
    system: System,
    deployment: Deployment,
    node: Node,
    environ: Mapping[str, str],
    wanted: Collection[str],
    name: str | None,
) -> dict[str, Sought]:
    """What is looked for. Without a name, nodes of known address decide which deployment is meant."""
    from runtime.node.discovery import Sought

    ports: dict[str, set[str]] = {}
    known: dict[str, dict[str, str]] = {}
    announced = _announced(deployment, node)
    for variable, (_, port) in announced.items():
        target = _targets(node)[variable]
        if variable in wanted:
            ports.setdefault(target, set()).add(port)
        elif name is None and (place := _value(system, node, environ, variable)):
            ports.setdefault(target, set()).add(port)
            known.setdefault(target, {})[port] = place.rpartition("://")[2].rstrip("/")
    services = {_targets(node)[variable]: each.service for variable, (each, _) in announced.items()}
    return {
        target: Sought(services[target], each, deployment.nodes[target].replicas, known.get(target, {}))
        for target, each in ports.items()
    }


def _is_on(system: System, node: Node, environ: Mapping[str, str], announced: Announced) -> bool:
    return (_value(system, node, environ, announced.variable) or "").lower() in ("1", "true")


def _value(system: System, node: Node, environ: Mapping[str, str], variable: str) -> str | None:
    return environ.get(variable) or node.defaults.get(variable) or system.variables[variable].default
