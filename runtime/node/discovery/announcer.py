"""Announcer: announce the services of a node, respond to queries, and say goodbye at the end.

No failure here stops a node: it can be reached without discovery.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from zeroconf import DNSIncoming

from runtime.node.discovery.records import DEPLOYMENT, Offer, encode_response
from runtime.node.discovery.sockets import GROUP, PORT, is_loopback, local_addresses, open_sockets

Warn = Callable[[str], None]
_AGAIN_S = 1.0
"""Delay of the second announcement, for hosts that missed the first."""


class Announcer:
    """Announce offers on every interface of the machine."""

    def __init__(self, offers: Sequence[Offer], warn: Warn) -> None:
        self._offers = offers
        self._warn = warn
        self._transports: list[asyncio.DatagramTransport] = []
        self._again: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start to announce and to respond. To be called when the services can be reached."""
        loop = asyncio.get_running_loop()
        local = frozenset(local_addresses())
        try:
            for _, made in open_sockets():
                transport, _ = await loop.create_datagram_endpoint(
                    lambda: _Responder(self._offers, local), sock=made
                )
                self._transports.append(transport)
        except (OSError, ValueError) as error:
            self._warn(f"nothing is announced on the network: {error}")
            return
        if not self._transports:
            self._warn("nothing is announced on the network: no interface takes part in multicast")
            return
        self._announce()
        self._again = asyncio.create_task(self._repeat())

    async def stop(self) -> None:
        """Say goodbye, so that caches drop the offers."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        self._announce(ttl=0)
        # Let the sockets send what is buffered before they are closed.
        await asyncio.sleep(0)
        for transport in self._transports:
            transport.close()
        self._transports.clear()

    async def _repeat(self) -> None:
        await asyncio.sleep(_AGAIN_S)
        self._announce()

    def _announce(self, **ttl: int) -> None:
        for offer in self._offers:
            packet = encode_response(offer.records(**ttl))
            for transport in self._transports:
                with suppress(OSError):
                    transport.sendto(packet, (GROUP, PORT))


class _Responder(asyncio.DatagramProtocol):
    def __init__(self, offers: Sequence[Offer], local: frozenset[str]) -> None:
        self._offers = offers
        self._local = local
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        asked = DNSIncoming(data)
        if not asked.valid or not asked.is_query() or self._transport is None:
            return
        for offer in self._offers:
            if is_loopback(offer.address) and addr[0] not in self._local:
                continue  # Other hosts could not reach it.
            wanted = [question for question in asked.questions if offer.answers(question)]
            if not wanted:
                continue
            directly = addr[1] != PORT or any(question.unicast for question in wanted)
            packet = encode_response(offer.records(), asked if addr[1] != PORT else None)
            with suppress(OSError):
                self._transport.sendto(packet, addr if directly else (GROUP, PORT))


def make_offers(
    service: str, alias: str | None, host: str, ports: Mapping[str, int | None], deployment: str
) -> list[Offer]:
    """Make the offers of a node, under one name or two; the instance is named by host and process."""
    instance = f"{(socket.gethostname().partition('.')[0] or 'host')[:40]}-{os.getpid()}"
    known = {name: str(port) for name, port in ports.items() if port is not None}
    address = _find_reachable(host)
    port = int(known.get("http_port") or known.get("grpc_port") or 0)
    known[DEPLOYMENT] = deployment
    return [Offer(each, instance, address, port, known) for each in (service, alias) if each]


def _find_reachable(host: str) -> str:
    """Find the address for other hosts: one of the network where the node listens on all interfaces."""
    if host == "localhost":
        return "127.0.0.1"
    if host != "0.0.0.0":
        return host
    return next((each for each in local_addresses() if not is_loopback(each)), "127.0.0.1")
