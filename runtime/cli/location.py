"""Location of the node that a command calls: an address, or discovery on the network."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from runtime.cli.place_types import Url
from runtime.model.system import Deployment, Node, System

if TYPE_CHECKING:
    from runtime.node.discovery import Offer, SearchTarget

_LOOK_S, _SETTLE_S = 3.0, 1.0


class NotFound(click.ClickException):
    """A node is not announced on the network, or the choice is ambiguous."""

    exit_code = 2


def find_chosen_deployment(system: System) -> Deployment:
    """Find the deployment of CHARTER_DEPLOYMENT, or the first of the system."""
    of, _, wanted = os.environ.get("CHARTER_DEPLOYMENT", "").partition(".")
    deployment = system.deployments.get(wanted if of == system.name else "")
    return deployment or next(iter(system.deployments.values()))


def make_location_options(system: System, service: str) -> list[click.Parameter]:
    """Make the options for the discovery of an announced node; none where it is not announced."""
    node = _announced_node(system, service)
    if node is None:
        return []
    return [
        click.Option(
            [f"--{node.name}"],
            envvar=f"{node.name.upper()}_URL",
            type=Url(),
            metavar="URL",
            help=f"The {node.name} that is announced with this URL; or {node.name.upper()}_URL.",
        ),
        *(
            click.Option(
                ["--deployment"],
                envvar=variable,
                metavar="NAME",
                help=f"Name of the deployment, where the network has several; or {variable}.",
            )
            for variable in [_name_variable(node)]
            if variable is not None
        ),
    ]


async def find_address(system: System, service: str, given: Mapping[str, Any]) -> str:
    """Find the address of the announced node that serves a service."""
    node = _announced_node(system, service)
    if node is None:
        raise NotFound(f"Say by --address where {service} is.")
    url = given.get(node.name)
    known = {"http_port": url_to_place(url)} if url else {}
    sought = {node.name: make_search_target(node, "grpc_port", known)}
    offers = await find_nodes(sought, given.get("deployment"), "--address", _name_variable(node))
    offer = offers[node.name]
    return f"{offer.address}:{offer.properties['grpc_port']}"


def make_search_target(node: Node, port: str, known: Mapping[str, str]) -> SearchTarget:
    """Make the search target of an announced node: the wanted port, and the known addresses."""
    from runtime.node.discovery import SearchTarget

    if node.announced is None:
        raise NotFound(f"The {node.name} is not announced on the network.")
    return SearchTarget(node.announced.service, (port, *known), node.replicas, known)


async def find_nodes(
    sought: Mapping[str, SearchTarget], name: str | None, places: str, variable: str | None
) -> dict[str, Offer]:
    """Find nodes of one deployment on the network; raises NotFound with advice.

    `places` are the options for their addresses, `variable` is that with the name of the deployment.
    """
    from runtime.node.discovery import NotLocated, SeveralDeployments, locate

    try:
        return await locate(sought, name or None, _LOOK_S, _SETTLE_S)
    except NotLocated as missing:
        raise NotFound(f"{missing} Say by {places} where it is.") from None
    except SeveralDeployments as several:
        choice = f"--deployment or {variable}, or say by {places} where it is" if variable else places
        raise NotFound(f"{several} Choose by {choice}.") from None


def _name_variable(node: Node) -> str | None:
    return node.announced.name_variable if node.announced is not None else None


def _announced_node(system: System, service: str) -> Node | None:
    """Find the node of a service in the chosen deployment, if it is announced and has a gRPC listener."""
    component = system.services[service].component
    for node in find_chosen_deployment(system).nodes.values():
        if component in node.hosts and node.announced is not None and node.port_variable is not None:
            return node
    return None


def url_to_place(url: str) -> str:
    """Return host:port of a URL."""
    try:
        parts = urlsplit(url)
        return f"{parts.hostname or ''}:{parts.port or {'https': 443}.get(parts.scheme, 80)}"
    except ValueError:
        raise NotFound(f"{url!r} is no URL.") from None
