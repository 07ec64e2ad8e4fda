"""Identities of processes: whether the process of one still runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from runtime.node.process_identity import is_gone, name_process

NAMING = "from runtime.node.process_identity import name_process; print(name_process(), flush=True); input()"


@pytest.mark.req("OQ-156")
def test_a_process_lives_until_it_has_ended() -> None:
    """One that is dead and not yet buried counts as gone."""
    with subprocess.Popen(
        [sys.executable, "-c", NAMING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        named = other.stdout.readline().strip()
        assert is_gone(named) is False
        other.kill()
        os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(named) is True
    assert is_gone(named) is True


@pytest.mark.req("OQ-156")
def test_another_process_of_the_same_number_is_another_one() -> None:
    """Process ids are reused; the start time is different."""
    named = name_process()
    assert named is not None and is_gone(named) is False
    here, _, started = named.rpartition("/")
    assert is_gone(f"{here}/{int(started) + 1}") is True


@pytest.mark.req("OQ-156")
@pytest.mark.parametrize("named", [None, "", "nonsense", "a/b/c", "a/b/c/d/e", "other-machine/pid:[1]/2/3"])
def test_of_other_machines_nothing_is_known(named: str | None) -> None:
    """Nor of a text that is no identity of a process."""
    assert is_gone(named) is None
