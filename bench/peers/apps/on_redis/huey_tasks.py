"""huey by its documentation: an instance with a URL, and decorated functions."""

from __future__ import annotations

import os

from huey import RedisHuey  # type: ignore[import-not-found]

from bench.peers.apps.producer import NOTHING, PICKUP, record_run, record_start

huey = RedisHuey("bench", url=os.environ["REDIS_URL"])
"""The instance for `huey_consumer`."""


def noop(n: float) -> None:
    """Do nothing."""
    record_run(n)


def pickup(sent: float) -> None:
    """Record the time from submit to start."""
    record_start(sent)


TASKS = {NOTHING: huey.task(name=NOTHING)(noop), PICKUP: huey.task(name=PICKUP)(pickup)}
