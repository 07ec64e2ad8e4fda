"""Sockets for multicast DNS: one for each interface, shared with other responders of the machine."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import ifaddr

GROUP, PORT = "224.0.0.251", 5353
_IP_MULTICAST_ALL = 49
"""Linux' number for "only what this socket has joined"; Python has no name for it."""


def local_addresses() -> list[str]:
    """Return the IPv4 addresses of this machine, the loopback one first."""
    found = [
        str(each.ip) for adapter in ifaddr.get_adapters() for each in adapter.ips if isinstance(each.ip, str)
    ]
    return sorted(set(found), key=lambda each: (not is_loopback(each), each))


def is_loopback(address: str) -> bool:
    """Whether an address is only reached from the machine itself."""
    return address == "localhost" or ipaddress.ip_address(address).is_loopback


def open_sockets() -> Iterator[tuple[str, socket.socket]]:
    """Open a socket for each interface with multicast; others are left out."""
    for address in local_addresses():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            _join(made, address)
        except OSError:
            made.close()
            continue
        yield address, made


def _join(made: socket.socket, address: str) -> None:
    made.setblocking(False)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with suppress(AttributeError, OSError):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    with suppress(OSError):
        made.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
    interface = socket.inet_aton(address)
    made.bind(("", PORT))
    membership = struct.pack("4s4s", socket.inet_aton(GROUP), interface)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
