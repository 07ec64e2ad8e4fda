"""The metrics of a queue as Prometheus sees them."""

from __future__ import annotations

import time

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.support.priority.promql import Labels

FRESH_S = 1.05
"""After how long a process reads everything anew."""
_looked: dict[str, float] = {}
"""When each process was last looked at."""


class Scrape:
    """One scrape of `/metrics`."""

    def __init__(self, client: httpx.Client) -> None:
        answer = client.get("/metrics")
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/plain; version=")
        self.families = {family.name: family for family in text_string_to_metric_families(answer.text)}
        self.samples: dict[Labels, float] = {
            frozenset({("__name__", sample.name), *sample.labels.items()}): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """One sample, which must be there."""
        return self.samples[frozenset({("__name__", name), *labels.items()})]

    def names(self) -> set[str]:
        """The names of all samples."""
        return {dict(labels)["__name__"] for labels in self.samples}

    def series(self, prefix: str = "") -> dict[Labels, float]:
        """The samples whose names begin so."""
        return {
            labels: value
            for labels, value in self.samples.items()
            if dict(labels)["__name__"].startswith(prefix)
        }


def scrape(client: httpx.Client) -> Scrape:
    """A scrape with everything that has happened until now. No other client may scrape this API."""
    url = str(client.base_url)
    time.sleep(max(_looked.get(url, 0.0) + FRESH_S - time.monotonic(), 0.0))
    found = Scrape(client)
    _looked[url] = time.monotonic()
    return found
