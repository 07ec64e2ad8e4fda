"""The choice of one deployment among all whose nodes are announced on the network."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from runtime.node.discovery.browser import ask
from runtime.node.discovery.records import Offer
from runtime.node.discovery.sockets import is_loopback, local_addresses


class Sought(NamedTuple):
    """A node that is looked for."""

    service: str
    ports: Collection[str]
    """The properties that have the wanted ports."""
    replicas: int = 1
    """How many of these nodes a deployment has."""
    known: Mapping[str, str] = MappingProxyType({})
    """Its address for each such port that is known already: the others have to be of the same deployment."""


class NotLocated(Exception):
    """No deployment on the network has all that is looked for."""


class SeveralDeployments(Exception):
    """There is more than one deployment on the network, and nothing says which is meant."""


async def locate(
    sought: Mapping[str, Sought], name: str | None, patience_s: float, settle_s: float
) -> dict[str, Offer]:
    """Find all nodes of one deployment, by the names of what is sought.

    Without a name there must be exactly one deployment. Once one is complete, further answers are waited for
    during `settle_s`. Raises NotLocated and SeveralDeployments.
    """
    heard: dict[str, dict[str, Offer]] = {node: {} for node in sought}
    is_complete = asyncio.Event()

    def note(node: str, offer: Offer) -> bool:
        if offer.properties.keys() >= set(sought[node].ports):
            heard[node][offer.name] = offer
        if _complete(heard) & ({name} if name else _names(heard)):
            is_complete.set()
        return False

    asking = [asyncio.create_task(ask(each.service, partial(note, node))) for node, each in sought.items()]
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await is_complete.wait()
        if is_complete.is_set():
            await asyncio.sleep(settle_s)
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return choose(sought, {node: list(offers.values()) for node, offers in heard.items()}, name)


def choose(
    sought: Mapping[str, Sought], heard: Mapping[str, Iterable[Offer]], name: str | None
) -> dict[str, Offer]:
    """Decide which offers are meant: those of one deployment, or none."""
    offers = {node: {offer.name: offer for offer in heard.get(node, ())} for node in sought}
    names = _at_known_addresses(sought, offers)
    if name:
        names &= {name}
    if len(names) > 1:
        raise SeveralDeployments(f"Several deployments are on the network: {_listed(names)}.")
    found: dict[str, Offer] = {}
    for node, each in sought.items():
        fitting = sorted((offer for offer in offers[node].values() if offer.deployment in names), key=_order)
        if not fitting:
            raise NotLocated(_missing(node, name, _names(offers)))
        if len(fitting) > each.replicas:
            places = ", ".join(f"{offer.address}:{offer.port}" for offer in fitting)
            raise SeveralDeployments(
                f"{_shown(fitting[0].deployment)} is the name of several deployments on the network: "
                f"each {node} at {places} has it."
            )
        found[node] = fitting[0]
    return found


def _at_known_addresses(sought: Mapping[str, Sought], offers: Mapping[str, Mapping[str, Offer]]) -> set[str]:
    """The deployments that have their nodes where some are known to be; all, where none is known."""
    names = _names(offers)
    for node, each in sought.items():
        for port, address in each.known.items():
            there = [offer for offer in offers[node].values() if _is_at(offer, port, address)]
            if not there:
                raise NotLocated(f"No deployment on the network has its {node} at {address}.")
            names &= {offer.deployment for offer in there}
    return names


def _is_at(offer: Offer, property_name: str, place: str) -> bool:
    host, _, port = place.rpartition(":")
    if port != offer.properties.get(property_name):
        return False
    try:
        address = socket.gethostbyname(host)
    except OSError:
        return False
    local = {*local_addresses(), "0.0.0.0"}
    here = is_loopback(address) or address in local
    return address == offer.address or (here and offer.address in local)


def _complete(offers: Mapping[str, Mapping[str, Offer]]) -> set[str]:
    """The deployments that offer all nodes."""
    of_each = [{offer.deployment for offer in found.values()} for found in offers.values()]
    return set.intersection(*of_each) if of_each else set()


def _names(offers: Mapping[str, Mapping[str, Offer]]) -> set[str]:
    return {offer.deployment for found in offers.values() for offer in found.values()}


def _missing(node: str, name: str | None, others: set[str]) -> str:
    if name:
        there = f" There are: {_listed(others)}." if others else ""
        return f"No {node} of {name} is found on the network.{there}"
    return f"No {node} is found on the network."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(map(_shown, names)))


def _shown(name: str) -> str:
    return name or "one without a name"


def _order(offer: Offer) -> tuple[str, int]:
    return offer.instance, offer.port
