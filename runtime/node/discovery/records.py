"""Encode offers of services as DNS records, and decode them.

The packets and records are zeroconf's. Its service classes (ServiceInfo, ServiceBrowser) are not used: they
refuse a name with a colon in it, which some services have all the same. A packet takes any name.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field
from zeroconf import (
    DNSAddress,
    DNSIncoming,
    DNSOutgoing,
    DNSPointer,
    DNSQuestion,
    DNSRecord,
    DNSService,
    DNSText,
)

PTR, TXT, A, SRV, ANY = 12, 16, 1, 33, 255
_IN, _UNIQUE = 1, 0x8001
_RESPONSE = 0x8400
_QUERY = 0x0000
TTL = 120
DEPLOYMENT = "deployment"
"""The property with the name of a deployment."""


class Offer(Struct, frozen=True):
    """An announced service instance: service type, instance name, address, port and properties."""

    service: str
    instance: str
    address: str
    port: int
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.instance}.{self.service}"

    @property
    def deployment(self) -> str:
        """The name of its deployment; empty where it is not announced."""
        return self.properties.get(DEPLOYMENT, "")

    @property
    def host(self) -> str:
        return f"{self.instance}.local."

    def records(self, ttl: int = TTL) -> list[DNSRecord]:
        """Return its DNS records, the PTR record first."""
        return [
            DNSPointer(self.service, PTR, _IN, ttl, self.name),
            DNSService(self.name, SRV, _UNIQUE, ttl, 0, 0, self.port, self.host),
            DNSText(self.name, TXT, _UNIQUE, ttl, _encode_text(self.properties)),
            DNSAddress(self.host, A, _UNIQUE, ttl, socket.inet_aton(self.address)),
        ]

    def answers(self, question: DNSQuestion) -> bool:
        """Whether a question is about it."""
        name, kind = question.name.lower(), question.type
        return any(name == record.name.lower() and kind in (record.type, ANY) for record in self.records())


def encode_query(service: str) -> bytes:
    """Encode a query for a service."""
    asking = DNSOutgoing(_QUERY)
    asking.add_question(DNSQuestion(service, PTR, _IN))
    return asking.packets()[0]


def encode_response(records: Iterable[DNSRecord], asked: DNSIncoming | None = None) -> bytes:
    """Encode a response. A unicast response repeats the question and the id of the query."""
    answering = DNSOutgoing(_RESPONSE, multicast=asked is None, id_=asked.id if asked is not None else 0)
    if asked is not None:
        for question in asked.questions:
            answering.add_question(question)
    for record in records:
        answering.add_answer_at_time(record, 0)
    return answering.packets()[0]


def parse_offers(service: str, packet: bytes) -> Iterator[tuple[Offer, bool]]:
    """Parse the offers of a service in a packet, each with whether it is a goodbye."""
    incoming = DNSIncoming(packet)
    if not incoming.valid or incoming.is_query():
        return
    records = incoming.answers()
    places = {each.name.lower(): each for each in records if isinstance(each, DNSService)}
    texts = {each.name.lower(): each for each in records if isinstance(each, DNSText)}
    addresses = {
        each.name.lower(): socket.inet_ntoa(each.address)
        for each in records
        if isinstance(each, DNSAddress) and each.type == A
    }
    for pointer in records:
        if not isinstance(pointer, DNSPointer) or pointer.name.lower() != service.lower():
            continue
        key = pointer.alias.lower()
        place, text = places.get(key), texts.get(key)
        address = addresses.get(place.server.lower()) if place is not None else None
        if place is None or address is None:
            continue
        instance = pointer.alias[: -len(service) - 1]
        said = _decode_text(text.text if text is not None else b"")
        yield Offer(service, instance, address, place.port, said), pointer.ttl == 0


def _encode_text(properties: Mapping[str, str]) -> bytes:
    parts = [f"{name}={value}".encode() for name, value in properties.items()]
    return b"".join(bytes((len(part),)) + part for part in parts) or b"\0"


def _decode_text(text: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        size = text[at]
        name, _, value = text[at + 1 : at + 1 + size].decode("utf-8", "replace").partition("=")
        if name:
            found.setdefault(name, value)
        at += 1 + size
    return found
