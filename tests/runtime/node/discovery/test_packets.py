"""The packets of discovery, byte for byte, and as another DNS library reads them."""

from __future__ import annotations

import dns.message
import dns.name
import dns.rdatatype
import pytest
from zeroconf import BadTypeInNameException, DNSIncoming, ServiceInfo

from runtime.node.discovery import records
from runtime.node.discovery.records import Offer

SERVICE = "_shop:till._tcp.local."
LABELS = b"\x0a_shop:till\x04_tcp\x05local\x00"
OFFER = Offer(SERVICE, "host-1", "127.0.0.1", 8080, {"http_port": "8080", "deployment": "blue grün"})
QUESTION = LABELS + b"\0\x0c\0\1"
TEXT = b"\x0ehttp_port=8080\x15deployment=blue gr\xc3\xbcn"


def answer(unique: bytes, seconds: int, offset: int) -> bytes:
    """The four records after the name of the service; `offset` is the length of a question before them."""
    ttl = seconds.to_bytes(4, "big")
    instance, host = bytes((0xC0, 0x2D + offset)), bytes((0xC0, 0x48 + offset))
    return (
        b"\0\x0c\0\1" + ttl + b"\0\x09\x06host-1\xc0\x0c"
        + instance + b"\0\x21" + unique + ttl + b"\0\x0f\0\0\0\0\x1f\x90\x06host-1\xc0\x1c"
        + instance + b"\0\x10" + unique + ttl + b"\0\x25" + TEXT
        + host + b"\0\1" + unique + ttl + b"\0\4\x7f\0\0\1"
    )  # fmt: skip


def test_a_question_is_one_pointer() -> None:
    """Number 0, no flags, one question."""
    assert records.encode_query(SERVICE) == b"\0\0\0\0\0\1\0\0\0\0\0\0" + QUESTION


@pytest.mark.parametrize("seconds", [records.TTL, 0])
def test_an_announcement_flushes_the_caches_of_others(seconds: int) -> None:
    """All records but the pointer are unique; a goodbye has a lifetime of 0."""
    head = b"\0\0\x84\0\0\0\0\4\0\0\0\0"
    assert records.encode_response(OFFER.records(seconds)) == head + LABELS + answer(b"\x80\1", seconds, 0)


def test_a_direct_answer_repeats_the_question_and_its_number() -> None:
    """It flushes no cache, because it comes from no member of the group."""
    asked = DNSIncoming(b"\x12\x34" + records.encode_query(SERVICE)[2:])
    head = b"\x12\x34\x84\0\0\1\0\4\0\0\0\0"
    expected = head + QUESTION + b"\xc0\x0c" + answer(b"\0\1", records.TTL, 6)
    assert records.encode_response(OFFER.records(), asked) == expected
    assert [*records.parse_offers(SERVICE, expected)] == [(OFFER, False)]


def test_another_library_reads_the_same() -> None:
    """A name with a colon is a name like any other in DNS; only zeroconf's service classes refuse it."""
    with pytest.raises(BadTypeInNameException):
        ServiceInfo(SERVICE, OFFER.name, port=OFFER.port)
    asked = DNSIncoming(dns.message.make_query(SERVICE, "PTR", id=7).to_wire())
    assert [OFFER.answers(each) for each in asked.questions] == [True]
    read = dns.message.from_wire(records.encode_response(OFFER.records(), asked))
    assert read.id == 7
    found = {dns.rdatatype.to_text(each.rdtype): (each.name, each[0]) for each in read.answer}
    instance, host = dns.name.from_text(OFFER.name), dns.name.from_text(OFFER.host)
    assert [*found] == ["PTR", "SRV", "TXT", "A"]
    assert (found["PTR"][0], found["PTR"][1].target) == (dns.name.from_text(SERVICE), instance)
    assert (found["SRV"][0], found["SRV"][1].target, found["SRV"][1].port) == (instance, host, 8080)
    assert found["TXT"][1].strings == (b"http_port=8080", "deployment=blue grün".encode())
    assert (found["A"][0], found["A"][1].address) == (host, "127.0.0.1")
