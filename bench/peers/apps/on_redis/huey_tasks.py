"""huey as its documentation has it: an instance with a URL, and decorated functions."""

from __future__ import annotations

import os

from huey import RedisHuey  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, note_run, note_start

huey = RedisHuey("bench", url=os.environ["REDIS_URL"])
"""What `huey_consumer` runs."""


def noop(n: float) -> None:
    """Do nothing."""
    note_run(n)


def pickup(sent: float) -> None:
    """Print how long it took to be started."""
    note_start(sent)


TASKS = {NOTHING: huey.task(name=NOTHING)(noop), PICKUP: huey.task(name=PICKUP)(pickup)}
