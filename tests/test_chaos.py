"""How chaos tests come by their chance and their rounds, and what `nox -s chaos` says at its end."""

from __future__ import annotations

from itertools import count

import pytest

from tests.support.chaos import SHARE_OF_ROUNDS, Chaos, Line, share_time, summarize


def test_the_quick_form_is_the_same_every_time() -> None:
    """As many rounds as it says, each with a chance of its own, which is that of the last time."""
    draws = [[chance.random() for chance in Chaos("a").rounds(3)] for _ in range(2)]
    assert draws[0] == draws[1]
    assert len({*draws[0], *(chance.random() for chance in Chaos("b").rounds(3))}) == 6
    assert Chaos("a").size(2, 100) == 2


def test_the_long_form_goes_on_until_its_time_is_over() -> None:
    """It has the rounds of the quick form at least, and begins like any other with its seed."""
    clock = count()
    long = Chaos("a", seed=5, until=10, now=lambda: next(clock))
    drawn = [chance.random() for chance in long.rounds(2)]
    assert len(drawn) == long.counted["rounds"] > 2
    late = Chaos("a", seed=5, until=-1, now=lambda: 0)
    assert [chance.random() for chance in late.rounds(2)] == drawn[:2]
    assert long.size(2, 100) == 100
    assert Chaos("a", seed=6).chance.random() != Chaos("a", seed=5).chance.random()


@pytest.mark.parametrize(
    ("tests", "processes", "turns"), [(1, 4, 1), (8, 4, 2), (9, 4, 3), (9, 1, 9), (0, 1, 1)]
)
def test_all_of_them_share_the_time(tests: int, processes: int, turns: int) -> None:
    """However many there are, their rounds and what comes around them take the minutes of the session."""
    assert share_time(10, tests, processes) * turns == pytest.approx(SHARE_OF_ROUNDS * 600)


def test_the_summary_has_what_was_counted_and_how_to_repeat_what_failed() -> None:
    """What failed comes first, with the command that has the same chance again."""
    counted = {"rounds": 3, "kills_of_worker": 9, "lost": 0}
    lines = [Line("tests/a.py::one", True, counted), Line("tests/b.py::another", False, {})]
    assert summarize(11, lines) == [
        "tests/b.py::another  FAILED  rounds 1",
        "    again: nox -s chaos -- --seed 11 'tests/b.py::another'",
        "tests/a.py::one      passed  rounds 3, kills of worker 9, lost 0",
        "seed 11: 1 passed, 1 failed",
    ]


@pytest.mark.chaos
def test_a_marked_test_has_its_chance(chaos: Chaos, request: pytest.FixtureRequest) -> None:
    """That of its own name, counted into its report."""
    assert chaos.test == request.node.nodeid
    for _ in chaos.rounds(1):
        chaos.count(looks=1)
        if chaos.counted["looks"] == 3:
            break
    assert dict(request.node.user_properties)["chaos"] == chaos.counted
