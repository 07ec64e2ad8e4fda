"""Ports of loopback for servers that take a while before they listen, or come back after they were killed.

All are below those that the kernel gives to whoever connects. A process takes a whole run of them and gives
each to one server after the other, so that no other process that asks here gets the port of a server which is
not listening just now.
"""

from __future__ import annotations

import os
import random
import socket
import threading
from collections import deque
from contextlib import ExitStack, suppress

LOOPBACK = "127.0.0.1"
_PORTS = range(20_000, 32_000)
_RUN = 60
"""How many ports a process takes at once. The first of them is bound as long as it lives: its claim."""


class NoPorts(OSError):
    """There are none left."""


class Ports:
    """The ports of this process, the one that was given away longest ago first."""

    def __init__(self) -> None:
        self._claims: dict[int, socket.socket] = {}
        self._ours = deque[int]()
        self._asking = threading.Lock()

    def take(self, number: int) -> list[int]:
        """So many on which nobody listens; all are held until the last one is found, so all are different."""
        with self._asking, ExitStack() as held:
            found: list[int] = []
            tried = 0
            while len(found) < number:
                if tried == len(self._ours):
                    self._ours.extendleft(reversed(self._claim()))
                port = self._ours.popleft()
                self._ours.append(port)
                tried += 1
                with suppress(OSError):
                    held.enter_context(_bound(port))
                    found.append(port)
            return found

    def begin_anew(self) -> None:
        """In a forked process: what was claimed belongs to its parent."""
        for each in self._claims.values():
            each.close()
        self._claims.clear()
        self._ours.clear()
        # A thread that is not there may have had it.
        self._asking = threading.Lock()

    def _claim(self) -> range:
        """A run of ports that no other process has."""
        for first in random.SystemRandom().sample(_PORTS[::_RUN], len(_PORTS) // _RUN):
            if first not in self._claims:
                with suppress(OSError):
                    self._claims[first] = _bound(first)
                    return range(first + 1, first + _RUN)
        raise NoPorts(f"No port of {LOOPBACK} between {_PORTS.start} and {_PORTS.stop} is free.")


def free_ports(number: int) -> list[int]:
    """Ports on which nobody listens, and which no other process is given as long as this one lives."""
    return _ports.take(number)


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    try:
        made.bind((LOOPBACK, port))
    except OSError:
        made.close()
        raise
    return made


_ports = Ports()
os.register_at_fork(after_in_child=_ports.begin_anew)
