"""Finds on the network what the settings of a node do not say: where the nodes are that it calls."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.log import Log
from runtime.tables import Deployment, Event, Node, System

LOOKING = Event("looking_for_upstream", "INFO", always=True)
FOUND = Event("found_upstream", "INFO", always=True)
_PATIENCE_S = 10.0


def unknown(
    system: System, deployment: Deployment, node: Node, environ: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Variables that are unset and whose nodes are announced: the service of each, and the port wanted."""
    wanted = {**dict.fromkeys(node.upstreams, "grpc_port"), **dict.fromkeys(node.finds, "http_port")}
    targets = {**node.upstreams, **node.finds}
    found: dict[str, tuple[str, str]] = {}
    for variable, port in wanted.items():
        announced = deployment.nodes[targets[variable]].announced
        if announced is None or environ.get(variable) or node.defaults.get(variable):
            continue
        said = environ.get(announced.variable) or system.variables[announced.variable].default or ""
        if said.lower() in ("1", "true") and system.variables[variable].default is None:
            found[variable] = announced.service, port
    return found


async def where_they_are(
    system: System, deployment: Deployment, node: Node, environ: Mapping[str, str], log: Log
) -> dict[str, str]:
    """The values of those variables, as soon as all have been found."""
    from runtime.discovery import find_one

    found: dict[str, str] = {}
    for variable, (service, port) in unknown(system, deployment, node, environ).items():
        while variable not in found:
            offer = await find_one(service, _PATIENCE_S)
            if offer is None or port not in offer.properties:
                log.write(LOOKING, f"nobody on the network offers {service} yet; {variable} would say where")
                continue
            place = f"{offer.address}:{offer.properties[port]}"
            found[variable] = place if port == "grpc_port" else f"http://{place}"
            log.write(FOUND, f"{variable} is {found[variable]}: {offer.instance} offers {service}")
    return found
