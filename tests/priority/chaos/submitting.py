"""Clients that submit tasks one after the other, whatever happens to those who should accept them."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx

from tests.priority.stack import TOKENS

ACCEPTED = (200, 201)
NOT_NOW = (503, 504)
PRIORITIES = ("high", "medium", "low")


class Client(threading.Thread):
    """Submits tasks, each as often as it takes until it is acknowledged, or each only once."""

    def __init__(self, name: str, url: str, chance: random.Random, *, stubborn: bool = True) -> None:
        super().__init__(name=name, daemon=True)
        self.acknowledged: dict[str, str] = {}
        """By key, the task that was promised."""
        self.when: dict[str, float] = {}
        """By task, the moment of the promise."""
        self.refused = 0
        self.over = threading.Event()
        self._url = url
        self._chance = chance
        self._stubborn = stubborn

    def has_begun(self) -> bool:
        """Whether a few tasks were acknowledged."""
        return len(self.when) > 10

    def run(self) -> None:
        """Goes on until it is told that it is over; the task in hand is still submitted."""
        headers = {"authorization": f"Bearer {TOKENS['client']}"}
        with httpx.Client(base_url=self._url, timeout=5, headers=headers) as http:
            number = 0
            while not self.over.is_set():
                body = {
                    "task_type": "sleep",
                    "parameters": {"seconds": self._chance.choice((0, 0.01, 0.2))},
                    "priority": self._chance.choice(PRIORITIES),
                    "idempotency_key": f"{self.name}-{number}",
                }
                number += 1
                while (task := self._submitted(http, body)) is None:
                    self.refused += 1
                    time.sleep(0.05)
                    if not self._stubborn:
                        break
                else:
                    self.acknowledged[str(body["idempotency_key"])] = task
                    self.when[task] = time.time()

    def _submitted(self, http: httpx.Client, body: Mapping[str, Any]) -> str | None:
        try:
            answer = http.post("/api/v1/tasks", json=body)
        except httpx.TransportError:
            return None
        assert answer.status_code in (*ACCEPTED, *NOT_NOW), answer.text
        return str(answer.json()["task_id"]) if answer.status_code in ACCEPTED else None
