"""Looks for a service on the network."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from runtime.node.discovery.records import Offer, offers, query
from runtime.node.discovery.sockets import GROUP, PORT, local_addresses

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


async def find(service: str, patience_s: float) -> list[Offer]:
    """All that answer within a time, each once."""
    found: dict[str, Offer] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await ask(service, lambda offer: bool(found.update({offer.name: offer})))
    return list(found.values())


async def find_one(service: str, patience_s: float | None = None) -> Offer | None:
    """The first that answers; None if nobody does in time. Without a limit it goes on asking."""
    found: list[Offer] = []

    def take(offer: Offer) -> bool:
        found.append(offer)
        return True

    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await ask(service, take)
    return found[0] if found else None


async def ask(service: str, take: Callable[[Offer], bool]) -> None:
    """Asks again and again, more and more seldom, until `take` has had enough."""
    loop, enough = asyncio.get_running_loop(), asyncio.Event()

    def heard(packet: bytes) -> None:
        for offer, is_goodbye in offers(service, packet):
            if not is_goodbye and take(offer):
                enough.set()

    transports: list[asyncio.DatagramTransport] = []
    try:
        for address in local_addresses():
            with suppress(OSError):
                transport, _ = await loop.create_datagram_endpoint(
                    lambda: _Listener(heard), sock=_asking(address)
                )
                transports.append(transport)
        pause, packet = _FIRST_PAUSE_S, query(service)
        while not enough.is_set():
            for transport in transports:
                with suppress(OSError):
                    transport.sendto(packet, (GROUP, PORT))
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await enough.wait()
            pause = min(2 * pause, _LONGEST_PAUSE_S)
    finally:
        for transport in transports:
            transport.close()


def _asking(address: str) -> socket.socket:
    """A socket of any port: whoever is asked from there answers directly."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    made.bind((address, 0))
    return made


class _Listener(asyncio.DatagramProtocol):
    def __init__(self, heard: Callable[[bytes], None]) -> None:
        self._heard = heard

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        del addr
        with suppress(ValueError, IndexError):
            self._heard(data)
