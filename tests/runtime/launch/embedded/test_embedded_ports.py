"""Ports for servers that do not listen yet: no other server gets them meanwhile."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from runtime.launch.embedded.ports import LOOPBACK, PortPool

MANY = 150
"""More than a process takes at once."""
FORKS = """
import os
from runtime.launch.embedded.ports import allocate_ports
allocate_ports(1)
child = os.fork()
if child:
    os.waitpid(child, 0)
print(*allocate_ports(29), flush=True)
"""


@pytest.fixture
def ours() -> Iterator[PortPool]:
    made = PortPool()
    yield made
    made.reset_after_fork()


@pytest.fixture
def theirs() -> Iterator[PortPool]:
    """Those of another process: the two share nothing but the machine."""
    made = PortPool()
    yield made
    made.reset_after_fork()


def test_ports_that_are_reserved_at_once_differ(ours: PortPool) -> None:
    """Even if more are wanted than are taken at once."""
    assert len(set(ours.allocate(MANY))) == MANY


def test_two_processes_are_never_given_the_same(ours: PortPool, theirs: PortPool) -> None:
    """Also before a server listens on any of them."""
    given = [{port for _ in range(MANY) for port in each.allocate(2)} for each in (ours, theirs)]
    assert not given[0] & given[1]


def test_a_forked_process_has_none_of_its_parents() -> None:
    """A child gets no port of a server that its parent is about to start.

    Both have as many as come from one range: another one of the parent may be one that the child, which has
    ended, had before.
    """
    said = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True).stdout
    child, parent = ({int(port) for port in line.split()} for line in said.splitlines())
    assert len(child) == len(parent) == 29
    assert not child & parent


def test_the_port_of_a_server_that_was_killed_stays_its_own(ours: PortPool) -> None:
    """All the others of the process are given away before one is given again."""
    (killed,) = ours.allocate(1)
    assert killed not in {ours.allocate(1)[0] for _ in range(50)}


def test_the_last_free_ports_are_not_allocated_twice(ours: PortPool) -> None:
    """Where the others of a range have listeners, servers that do not listen yet keep theirs."""
    with ExitStack() as listening:
        for port in ours.allocate(50):
            listening.enter_context(socket.create_server((LOOPBACK, port)))
        starting = ours.allocate(7)
        assert not {*starting} & {ours.allocate(1)[0] for _ in range(20)}


def test_a_port_with_a_listener_is_skipped(ours: PortPool) -> None:
    """Also one that was not reserved."""
    first, *_ = ours.allocate(59)
    with socket.create_server((LOOPBACK, first)):
        # More often than there are ports, whichever of them others have: its turn has come by then.
        assert first not in {ours.allocate(1)[0] for _ in range(2 * MANY)}
