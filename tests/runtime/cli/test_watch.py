"""States in which watching an entity ends."""

from __future__ import annotations

from msgspec.structs import replace

from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import CANCELED, DONE, FAILED, QUEUED, RUNNING
from generated.taskqueue.system import SYSTEM
from runtime.cli.watch import Watch
from runtime.model.lifecycles import Lifecycle


def watch(lifecycle: Lifecycle) -> Watch:
    reader = next(iter(SYSTEM.services.values())).methods[0]
    return Watch(reader, lifecycle, "status")


def test_it_ends_in_terminal_and_resting_states() -> None:
    assert watch(JOB).ends == {DONE, FAILED, CANCELED}
    assert watch(replace(JOB, resting=frozenset({QUEUED}))).ends == {DONE, FAILED, CANCELED, QUEUED}


def test_a_public_status_that_others_share_is_no_end() -> None:
    """It does not tell a state that rests from one that goes on."""
    shown = {QUEUED: 1, RUNNING: 1, DONE: 2, FAILED: 3, CANCELED: 3}
    assert watch(replace(JOB, resting=frozenset({QUEUED}), public_status=shown)).ends == {2, 3}
    apart = {**shown, RUNNING: 4}
    assert watch(replace(JOB, resting=frozenset({QUEUED}), public_status=apart)).ends == {1, 2, 3}
