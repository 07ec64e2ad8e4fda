"""Clients that submit one request after the other, whatever happens to the service."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import httpx

from tests.support.plain_http import NO_TLS

NOT_NOW = (503, 504)


class Submitter(threading.Thread):
    """Client that retries each submit until it is acknowledged, or, if it is not stubborn, only once."""

    path = ""
    """The path that it posts to."""
    accepted: tuple[int, ...] = ()
    """The statuses of an acknowledgement."""
    answer = ""
    """The field with the accepted id."""

    def __init__(
        self, name: str, url: str, chance: random.Random, *, stubborn: bool = True, token: str = ""
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.acknowledged: dict[str, str] = {}
        """By key, the acknowledged id."""
        self.when: dict[str, float] = {}
        """By id, the time of the acknowledgement."""
        self.asked: dict[str, float] = {}
        """By id, the time at which the acknowledged request was sent."""
        self.refused = 0
        self.over = threading.Event()
        self._chance = chance
        self._stubborn = stubborn
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=url, timeout=5, headers=headers, verify=NO_TLS)

    def body(self, key: str, chance: random.Random) -> dict[str, Any]:
        """Make the body of the submit with a key."""
        raise NotImplementedError

    def has_begun(self) -> bool:
        """Whether a few were acknowledged."""
        return len(self.when) > 10

    def end(self) -> None:
        """Stop it, and wait for its end; a submit in flight is completed."""
        self.over.set()
        self.join()

    def run(self) -> None:
        with self._http:
            number = 0
            while not self.over.is_set():
                key = f"{self.name}-{number}"
                body = self.body(key, self._chance)
                number += 1
                asked = time.time()
                while (found := self._submit(body)) is None:
                    self.refused += 1
                    time.sleep(0.05)
                    if not self._stubborn:
                        break
                    asked = time.time()
                else:
                    self.acknowledged[key] = found
                    self.asked[found] = asked
                    self.when[found] = time.time()
                time.sleep(0.02)

    def _submit(self, body: dict[str, Any]) -> str | None:
        try:
            answer = self._http.post(self.path, json=body)
        except httpx.TransportError:
            return None
        assert answer.status_code in (*self.accepted, *NOT_NOW), answer.text
        return str(answer.json()[self.answer]) if answer.status_code in self.accepted else None
