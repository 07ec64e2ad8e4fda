"""Choice of one deployment among those that are announced on the network."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from runtime.node.discovery.browser import browse
from runtime.node.discovery.records import Offer
from runtime.node.discovery.sockets import is_loopback, local_addresses


class SearchTarget(NamedTuple):
    """A node to find."""

    service: str
    ports: Collection[str]
    """The properties with the wanted ports."""
    replicas: int = 1
    """How many of these nodes a deployment has."""
    known: Mapping[str, str] = MappingProxyType({})
    """Its address for each such port that is known already: the others have to be of the same deployment."""


class NotLocated(Exception):
    """No deployment on the network has all targets."""


class SeveralDeployments(Exception):
    """There is more than one deployment on the network, and none is chosen."""


async def locate(
    targets: Mapping[str, SearchTarget], name: str | None, patience_s: float, settle_s: float
) -> dict[str, Offer]:
    """Find all nodes of one deployment, by the names of the targets.

    Without a name there must be exactly one deployment. Once one is complete, further answers are waited for
    during `settle_s`. Raises NotLocated and SeveralDeployments.
    """
    found_offers: dict[str, dict[str, Offer]] = {node: {} for node in targets}
    is_complete = asyncio.Event()

    def note(node: str, offer: Offer) -> bool:
        if offer.properties.keys() >= set(targets[node].ports):
            found_offers[node][offer.name] = offer
        if _find_complete(found_offers) & ({name} if name else _find_names(found_offers)):
            is_complete.set()
        return False

    browsing = [
        asyncio.create_task(browse(each.service, partial(note, node))) for node, each in targets.items()
    ]
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await is_complete.wait()
        if is_complete.is_set():
            await asyncio.sleep(settle_s)
    finally:
        for task in browsing:
            task.cancel()
        await asyncio.gather(*browsing, return_exceptions=True)
    return choose(targets, {node: list(offers.values()) for node, offers in found_offers.items()}, name)


def choose(
    targets: Mapping[str, SearchTarget], found_offers: Mapping[str, Iterable[Offer]], name: str | None
) -> dict[str, Offer]:
    """Choose the offers of one deployment; raises NotLocated or SeveralDeployments."""
    offers = {node: {offer.name: offer for offer in found_offers.get(node, ())} for node in targets}
    names = _at_known_addresses(targets, offers)
    if name:
        names &= {name}
    if len(names) > 1:
        raise SeveralDeployments(f"Several deployments are on the network: {_format_names(names)}.")
    found: dict[str, Offer] = {}
    for node, each in targets.items():
        matching = sorted(
            (offer for offer in offers[node].values() if offer.deployment in names), key=_sort_key
        )
        if not matching:
            raise NotLocated(_format_missing(node, name, _find_names(offers)))
        if len(matching) > each.replicas:
            places = ", ".join(f"{offer.address}:{offer.port}" for offer in matching)
            raise SeveralDeployments(
                f"{_format_name(matching[0].deployment)} is the name of several deployments on the network: "
                f"each {node} at {places} has it."
            )
        found[node] = matching[0]
    return found


def _at_known_addresses(
    targets: Mapping[str, SearchTarget], offers: Mapping[str, Mapping[str, Offer]]
) -> set[str]:
    """Find the deployments with nodes at the known addresses; all, where none is known."""
    names = _find_names(offers)
    for node, each in targets.items():
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


def _find_complete(offers: Mapping[str, Mapping[str, Offer]]) -> set[str]:
    """Find the deployments that offer all nodes."""
    of_each = [{offer.deployment for offer in found.values()} for found in offers.values()]
    return set.intersection(*of_each) if of_each else set()


def _find_names(offers: Mapping[str, Mapping[str, Offer]]) -> set[str]:
    return {offer.deployment for found in offers.values() for offer in found.values()}


def _format_missing(node: str, name: str | None, others: set[str]) -> str:
    if name:
        there = f" There are: {_format_names(others)}." if others else ""
        return f"No {node} of {name} is found on the network.{there}"
    return f"No {node} is found on the network."


def _format_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(map(_format_name, names)))


def _format_name(name: str) -> str:
    return name or "one without a name"


def _sort_key(offer: Offer) -> tuple[str, int]:
    return offer.instance, offer.port
