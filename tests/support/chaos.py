"""Chaos tests: they kill, race and cut off real servers, for few rounds in `test` and for long in `chaos`.

In `nox -s test` each takes its quick form, a fixed seed and a fixed number of rounds. `nox -s chaos` runs
them alone, from a seed that it prints, until the time of the session is used up, and ends with a table of
what each has counted.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

SEED = 7
"""The seed of every quick form."""
MINUTES = 10.0
"""The duration of `nox -s chaos` without `--minutes`."""
SHARE_OF_ROUNDS = 0.6
"""Of the time of a test; the rest is for its servers to start, and for what the rounds have begun to end."""
COUNTED = "chaos"
"""The property of a report that has what its test counted."""


@dataclass
class Chaos:
    """The chance of one test, how many rounds it takes, and what it counts."""

    test: str
    seed: int = SEED
    until: float | None = None
    """The moment at which no further round begins; there is none in the quick form."""
    now: Callable[[], float] = time.monotonic
    counted: dict[str, int] = field(default_factory=dict)

    @property
    def chance(self) -> random.Random:
        """Chance for what is no part of a round, from the start."""
        return random.Random(f"{self.seed}/{self.test}")

    def rounds(self, quick: int) -> Iterator[random.Random]:
        """Yield the chance of each round: as many as the quick form has, and then as there is time for."""
        done = 0
        while done < quick or (self.until is not None and self.now() < self.until):
            yield random.Random(f"{self.seed}/{self.test}/{done}")
            done += 1
            self.count(rounds=1)

    def size(self, quick: int, long: int) -> int:
        """How many of something: as many as the quick form has, or as the long one."""
        return quick if self.until is None else long

    def count(self, **counted: int) -> None:
        """Add to the line of this test in the summary."""
        for name, number in counted.items():
            self.counted[name] = self.counted.get(name, 0) + number


@dataclass(frozen=True)
class Line:
    """What came of one test."""

    test: str
    passed: bool
    counted: dict[str, int]


def summarize(seed: int, lines: Sequence[Line]) -> list[str]:
    """Write a line for each test with what it counted, and for each that failed how to repeat it."""
    width = max((len(each.test) for each in lines), default=0)
    shown = []
    for each in sorted(lines, key=lambda line: (line.passed, line.test)):
        counted = {"rounds": 1, **each.counted}
        counts = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in counted.items())
        shown.append(f"{each.test:{width}}  {'passed' if each.passed else 'FAILED'}  {counts}")
        if not each.passed:
            shown.append(f"    again: {repeat_command(seed, each.test)}")
    total = Counter(each.passed for each in lines)
    return [*shown, f"seed {seed}: {total[True]} passed, {total[False]} failed"]


def repeat_command(seed: int, test: str) -> str:
    """The command that runs one test again with the chance that it had."""
    return f"nox -s chaos -- --seed {seed} '{test}'"


def share_time(minutes: float, tests: int, processes: int) -> float:
    """The seconds that each test has for its rounds."""
    turns = -(-tests // processes) or 1
    return SHARE_OF_ROUNDS * 60 * minutes / turns


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("chaos", "tests that kill, race and cut off real servers")
    group.addoption("--chaos", action="store_true", help="run these alone, for long, with a summary")
    group.addoption("--seed", type=int, help="what chance begins with; another one each time otherwise")
    group.addoption("--minutes", type=float, default=MINUTES, help="how long all of them take together")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed before the parallel processes are started, which are given the options."""
    if config.getoption("--chaos") and config.getoption("--seed") is None:
        config.option.seed = random.SystemRandom().randrange(1 << 32)


def pytest_report_header(config: pytest.Config) -> list[str]:
    if not config.getoption("--chaos"):
        return []
    return [f"chaos: seed {config.option.seed}, {config.option.minutes:g} minutes"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all others."""
    if config.getoption("--chaos"):
        others = [item for item in items if not item.get_closest_marker("chaos")]
        items[:] = [item for item in items if item.get_closest_marker("chaos")]
        config.hook.pytest_deselected(items=others)


@pytest.fixture
def chaos(request: pytest.FixtureRequest) -> Chaos:
    """The chance and the rounds of a test that has the marker `chaos`."""
    test, config = request.node, request.config
    assert test.get_closest_marker("chaos"), "only what is marked is found by `nox -s chaos`"
    made = Chaos(test.nodeid)
    if config.getoption("--chaos"):
        processes = getattr(config, "workerinput", {}).get("workercount", 1)
        seconds = share_time(config.option.minutes, len(request.session.items), processes)
        made = Chaos(test.nodeid, config.option.seed, time.monotonic() + seconds)
        print(repeat_command(made.seed, made.test))
    test.user_properties.append((COUNTED, made.counted))
    return made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what each has counted, at the end of `nox -s chaos`."""
    if not config.getoption("--chaos"):
        return
    found: dict[str, Line] = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.getreports(outcome):
            known = found.get(report.nodeid, Line(report.nodeid, True, {}))
            counted = dict(report.user_properties).get(COUNTED, known.counted)
            found[report.nodeid] = Line(report.nodeid, known.passed and report.passed, counted)
    terminalreporter.section("chaos")
    for line in summarize(config.option.seed, [*found.values()]):
        terminalreporter.write_line(line)
