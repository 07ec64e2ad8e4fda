"""Browser: find a service on the network."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from runtime.node.discovery.records import Offer, encode_query, parse_offers
from runtime.node.discovery.sockets import GROUP, PORT, local_addresses

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


async def find(service: str, patience_s: float) -> list[Offer]:
    """Find all offers that respond within a time, each once."""
    found: dict[str, Offer] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await browse(service, lambda offer: bool(found.update({offer.name: offer})))
    return list(found.values())


async def find_one(service: str, patience_s: float | None = None) -> Offer | None:
    """Find the first offer that responds; None if none does in time. Without a limit it retries for ever."""
    found: list[Offer] = []

    def take(offer: Offer) -> bool:
        found.append(offer)
        return True

    with suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await browse(service, take)
    return found[0] if found else None


async def browse(service: str, take: Callable[[Offer], bool]) -> None:
    """Send queries with backoff, until `take` returns True."""
    loop, enough = asyncio.get_running_loop(), asyncio.Event()

    def on_packet(packet: bytes) -> None:
        for offer, is_goodbye in parse_offers(service, packet):
            if not is_goodbye and take(offer):
                enough.set()

    transports: list[asyncio.DatagramTransport] = []
    try:
        for address in local_addresses():
            with suppress(OSError):
                transport, _ = await loop.create_datagram_endpoint(
                    lambda: _Listener(on_packet), sock=_open_socket(address)
                )
                transports.append(transport)
        pause, packet = _FIRST_PAUSE_S, encode_query(service)
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


def _open_socket(address: str) -> socket.socket:
    """Open a socket with an ephemeral port, so that responses are unicast."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(address))
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
    made.bind((address, 0))
    return made


class _Listener(asyncio.DatagramProtocol):
    def __init__(self, on_packet: Callable[[bytes], None]) -> None:
        self._heard = on_packet

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        del addr
        with suppress(ValueError, IndexError):
            self._heard(data)
