"""Discovery of upstreams: find the nodes that a node calls and whose addresses are not set."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from runtime.model.system import Announced, Deployment, Event, Node, System
from runtime.node.settings import SettingsError
from runtime.observe.log import Log

if TYPE_CHECKING:
    from runtime.node.discovery import SearchTarget

LOOKING = Event("looking_for_upstream", "INFO", always=True)
FOUND = Event("found_upstream", "INFO", always=True)
_PATIENCE_S = 10.0
_SETTLE_S, _UNNAMED_SETTLE_S = 1.0, 3.0
"""How long to wait for further responses: longer without a name, because a node keeps what it finds first."""
_LONGEST_NAME = 200
"""Max bytes: a DNS-SD property has at most 255, its own name included."""


def deployment_name(
    system: System, deployment: Deployment, announced: Announced | None, values: Mapping[str, Any]
) -> str:
    """Return the name under which a node announces its deployment. Raises SettingsError if it is too long."""
    variable = announced.name_variable if announced is not None else None
    name = str((variable and values.get(variable)) or f"{system.name}.{deployment.name}")
    if len(name.encode()) > _LONGEST_NAME:
        raise SettingsError([f"{variable}: must have at most {_LONGEST_NAME} bytes"])
    return name


def find_unset_upstreams(
    system: System, deployment: Deployment, node: Node, environ: Mapping[str, str]
) -> dict[str, tuple[Announced, str]]:
    """Find the unset variables whose nodes are announced, each with its announcement and the wanted port."""
    return {
        variable: (announced, port)
        for variable, (announced, port) in _find_announced(deployment, node).items()
        if not _value(system, node, environ, variable) and _is_on(system, node, environ, announced)
    }


async def locate_upstreams(
    system: System, deployment: Deployment, node: Node, environ: Mapping[str, str], log: Log
) -> dict[str, str]:
    """Locate the nodes of those variables, as soon as all are found in one deployment; return their values.

    Raises SettingsError where there are several deployments and none is chosen.
    """
    from runtime.node.discovery import NotLocated, SeveralDeployments, locate

    wanted = find_unset_upstreams(system, deployment, node, environ)
    variable = next((each.name_variable for each, _ in wanted.values() if each.name_variable), None)
    name = _value(system, node, environ, variable) if variable else None
    sought = _make_search_targets(system, deployment, node, environ, wanted, name)
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
    targets = _find_targets(node)
    found: dict[str, str] = {}
    for variable, (announced, port) in wanted.items():
        offer = offers[targets[variable]]
        place = f"{offer.address}:{offer.properties[port]}"
        found[variable] = place if port == "grpc_port" else f"http://{place}"
        which = f"{offer.instance} of {offer.deployment or 'a deployment without a name'}"
        log.write(FOUND, f"{variable} is {found[variable]}: {which} offers {announced.service}")
    return found


def _find_targets(node: Node) -> dict[str, str]:
    """Return the nodes that a node calls, by the variable with their address or their URL."""
    return {**node.upstreams, **node.finds}


def _find_announced(deployment: Deployment, node: Node) -> dict[str, tuple[Announced, str]]:
    """Return the announcements of those of them that are announced, and the wanted port of each."""
    return {
        variable: (announced, "grpc_port" if variable in node.upstreams else "http_port")
        for variable, target in _find_targets(node).items()
        if (announced := deployment.nodes[target].announced) is not None
    }


def _make_search_targets(
    system: System,
    deployment: Deployment,
    node: Node,
    environ: Mapping[str, str],
    wanted: Collection[str],
    name: str | None,
) -> dict[str, SearchTarget]:
    """Make the search targets. Without a name, nodes of known address decide the deployment."""
    from runtime.node.discovery import SearchTarget

    ports: dict[str, set[str]] = {}
    known: dict[str, dict[str, str]] = {}
    announced = _find_announced(deployment, node)
    for variable, (_, port) in announced.items():
        target = _find_targets(node)[variable]
        if variable in wanted:
            ports.setdefault(target, set()).add(port)
        elif name is None and (place := _value(system, node, environ, variable)):
            ports.setdefault(target, set()).add(port)
            known.setdefault(target, {})[port] = place.rpartition("://")[2].rstrip("/")
    services = {_find_targets(node)[variable]: each.service for variable, (each, _) in announced.items()}
    return {
        target: SearchTarget(services[target], each, deployment.nodes[target].replicas, known.get(target, {}))
        for target, each in ports.items()
    }


def _is_on(system: System, node: Node, environ: Mapping[str, str], announced: Announced) -> bool:
    return (_value(system, node, environ, announced.variable) or "").lower() in ("1", "true")


def _value(system: System, node: Node, environ: Mapping[str, str], variable: str) -> str | None:
    return environ.get(variable) or node.defaults.get(variable) or system.variables[variable].default
