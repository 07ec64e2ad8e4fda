"""Random lifecycles, operations, callers, faults and times: every engine answers what the oracle answers.

Many sequences share a lifecycle, and so a schema, scripts and connections. What fails is named with its seed,
is made shorter, and comes with the command that runs it again.
"""

from __future__ import annotations

from random import SystemRandom

import pytest

from tests.support.deep import DEEP
from tests.support.stores.differential.comparing import compare_setting
from tests.support.stores.differential.lanes import NAMES

PARTS = 8
"""Tests of as many sequences each; what is drawn for one engine serves the next one."""
LIFECYCLES = 8000 if DEEP else 80
SEQUENCES = 25
"""Of each lifecycle."""
SELDOM = {"s3": 40} if DEEP else {"postgres": 4, "s3": 40}
"""Engines that get one of so many lifecycles: a request to their servers takes long.

The engine in S3 has all of them on a bucket in memory, which a test of its own compares with the server.
"""


@pytest.fixture(scope="module")
def seed(request: pytest.FixtureRequest) -> int:
    """The same in every run; `--deep` draws another one, unless it is told."""
    told: int | None = request.config.getoption("--seed")
    return told if told is not None else SystemRandom().randrange(1 << 32) if DEEP else 0


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("part", range(PARTS))
async def test_every_engine_answers_as_the_oracle(engine: str, part: int, seed: int) -> None:
    """Whatever is asked in whatever order, answers, records, histories and due sets are the same."""
    own = LIFECYCLES // PARTS
    for number in range(part * own, (part + 1) * own):
        if number % SELDOM.get(engine, 1) == 0:
            await compare_setting(engine, seed, number, range(SEQUENCES))
