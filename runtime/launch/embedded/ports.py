"""Pool of loopback ports for servers that listen late, or are restarted after a kill.

All are below the ephemeral ports of the kernel. A process claims a whole range of them and allocates each to
one server after the other, so that no other process with this pool gets the port of a server that is not
listening just now.
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
"""Ports in a range. The first of them is bound as long as the process lives: its claim."""


class NoPorts(OSError):
    """No ports are left."""


class PortPool:
    """The ports of this process, the least recently allocated first."""

    def __init__(self) -> None:
        self._claims: dict[int, socket.socket] = {}
        self._ports = deque[int]()
        self._lock = threading.Lock()

    def allocate(self, number: int) -> list[int]:
        """Allocate free ports; all stay bound until the last one is found, so all are different."""
        with self._lock, ExitStack() as held:
            found: list[int] = []
            tried = 0
            while len(found) < number:
                if 2 * tried >= len(self._ports):
                    # Most are in use, and a free one may be that of a server which does not listen yet.
                    self._ports.extendleft(reversed(self._claim_range()))
                port = self._ports.popleft()
                self._ports.append(port)
                tried += 1
                with suppress(OSError):
                    held.enter_context(_bind(port))
                    found.append(port)
            return found

    def reset_after_fork(self) -> None:
        """Drop all claims in a forked process: they belong to its parent."""
        for each in self._claims.values():
            each.close()
        self._claims.clear()
        self._ports.clear()
        # A thread of the parent may have held it.
        self._lock = threading.Lock()

    def _claim_range(self) -> range:
        """Claim a range of ports that no other process has."""
        for first in random.SystemRandom().sample(_PORTS[::_RUN], len(_PORTS) // _RUN):
            if first not in self._claims:
                with suppress(OSError):
                    self._claims[first] = _bind(first)
                    return range(first + 1, first + _RUN)
        raise NoPorts(f"No port of {LOOPBACK} between {_PORTS.start} and {_PORTS.stop} is free.")


def allocate_ports(number: int) -> list[int]:
    """Allocate free ports, which no other process gets from its pool as long as this one lives."""
    return _pool.allocate(number)


def _bind(port: int) -> socket.socket:
    made = socket.socket()
    try:
        made.bind((LOOPBACK, port))
    except OSError:
        made.close()
        raise
    return made


_pool = PortPool()
os.register_at_fork(after_in_child=_pool.reset_after_fork)
