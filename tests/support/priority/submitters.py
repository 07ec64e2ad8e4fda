"""Clients that submit tasks, whatever happens to the APIs."""

from __future__ import annotations

import random
from typing import Any

from tests.support.priority.stack import TOKENS
from tests.support.submitters import Submitter

PRIORITIES = ("high", "medium", "low")


class Client(Submitter):
    """Submits tasks."""

    path, accepted, answer = "/api/v1/tasks", (200, 201), "task_id"

    def __init__(self, name: str, url: str, chance: random.Random, *, stubborn: bool = True) -> None:
        super().__init__(name, url, chance, stubborn=stubborn, token=TOKENS["client"])

    def body(self, key: str, chance: random.Random) -> dict[str, Any]:
        return {
            "task_type": "sleep",
            "parameters": {"seconds": chance.choice((0, 0.01, 0.2))},
            "priority": chance.choice(PRIORITIES),
            "idempotency_key": key,
        }
