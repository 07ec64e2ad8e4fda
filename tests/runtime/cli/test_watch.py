"""States in which watching an entity ends."""

from __future__ import annotations

from msgspec.structs import replace

from generated.studio.lifecycle import FILM
from generated.studio.messages import DEVELOPED, DEVELOPING, SPOILED, WAITING, WITHDRAWN
from generated.studio.system import SYSTEM
from runtime.cli.watch import Watch
from runtime.model.lifecycles import Lifecycle


def watch(lifecycle: Lifecycle) -> Watch:
    reader = next(iter(SYSTEM.services.values())).methods[0]
    return Watch(reader, lifecycle, "status")


def test_it_ends_in_terminal_and_resting_states() -> None:
    assert watch(FILM).ends == {DEVELOPED, SPOILED, WITHDRAWN}
    assert watch(replace(FILM, resting=frozenset({WAITING}))).ends == {DEVELOPED, SPOILED, WITHDRAWN, WAITING}


def test_a_public_status_that_others_share_is_no_end() -> None:
    """It does not tell a state that rests from one that goes on."""
    shown = {WAITING: 1, DEVELOPING: 1, DEVELOPED: 2, SPOILED: 3, WITHDRAWN: 3}
    assert watch(replace(FILM, resting=frozenset({WAITING}), public_status=shown)).ends == {2, 3}
    apart = {**shown, DEVELOPING: 4}
    assert watch(replace(FILM, resting=frozenset({WAITING}), public_status=apart)).ends == {1, 2, 3}
