"""Ports for servers that do not listen yet: nobody else is given them meanwhile."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from runtime.embedded.ports import LOOPBACK, Ports

MANY = 150
"""More than a process takes at once."""
FORKS = """
import os
from runtime.embedded.ports import free_ports
free_ports(1)
child = os.fork()
if child:
    os.waitpid(child, 0)
print(*free_ports(59), flush=True)
"""


@pytest.fixture
def ours() -> Iterator[Ports]:
    made = Ports()
    yield made
    made.begin_anew()


@pytest.fixture
def theirs() -> Iterator[Ports]:
    """Those of another process: the two share nothing but the machine."""
    made = Ports()
    yield made
    made.begin_anew()


def test_what_is_asked_for_at_once_is_all_different(ours: Ports) -> None:
    """Even if more are wanted than are taken at once."""
    assert len(set(ours.take(MANY))) == MANY


def test_two_processes_are_never_given_the_same(ours: Ports, theirs: Ports) -> None:
    """Though nobody has begun to listen on any of them."""
    given = [{port for _ in range(MANY) for port in each.take(2)} for each in (ours, theirs)]
    assert not given[0] & given[1]


def test_a_forked_process_has_none_of_its_parents() -> None:
    """What it is given is not the port of a server that its parent is about to start."""
    said = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True).stdout
    child, parent = ({int(port) for port in line.split()} for line in said.splitlines())
    assert len(child) == len(parent) == 59
    assert not child & parent


def test_the_port_of_a_server_that_was_killed_stays_its_own(ours: Ports) -> None:
    """All the others of the process are given away before one is given again."""
    (killed,) = ours.take(1)
    assert killed not in {ours.take(1)[0] for _ in range(50)}


def test_a_port_on_which_somebody_listens_is_passed_over(ours: Ports) -> None:
    """Also by one who asked nobody."""
    first, *_ = ours.take(59)
    with socket.create_server((LOOPBACK, first)):
        # More often than there are ports, whichever of them others have: its turn has come by then.
        assert first not in {ours.take(1)[0] for _ in range(2 * MANY)}
