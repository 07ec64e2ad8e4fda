"""Files of `promtool test rules`, parsed and run: series, rules, and which alerts fire when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import quick_yaml
from tests.support.priority.promql import STALE, Labels, Samples, evaluate, parse_seconds

_SERIES = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?$")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:\\.|[^"\\])*)"')
_STEPS = re.compile(r"^(-?[\d.]+)(?:([+-][\d.]+))?x(\d+)$")


@dataclass(frozen=True)
class Expected:
    """The alerts that must fire at a moment of a test."""

    test: str
    at: float
    alert: str
    alerts: frozenset[Labels]
    """The labels of each."""


@dataclass(frozen=True)
class RuleTest:
    """One test of a file."""

    name: str
    samples: Samples
    expected: tuple[Expected, ...]


def read_rule_tests(path: Path) -> Iterator[RuleTest]:
    """The tests of a file."""
    for row in quick_yaml.read(path.read_text())["tests"]:
        samples = {
            _labels(each["series"]): [*_values(each["values"], parse_seconds(row["interval"]))]
            for each in row["input_series"]
        }
        expected = tuple(
            Expected(
                row["name"],
                parse_seconds(each["eval_time"]),
                each["alertname"],
                frozenset(frozenset(alert["exp_labels"].items()) for alert in each.get("exp_alerts", ())),
            )
            for each in row["alert_rule_test"]
        )
        yield RuleTest(row["name"], samples, expected)


def find_firing(
    rule: Mapping[str, Any], samples: Samples, until: float, step: float = 1.0
) -> frozenset[Labels]:
    """The labels of the alerts of a rule that fire at a moment, if it was evaluated at every step before."""
    pending = parse_seconds(rule.get("for", "0s"))
    since: dict[Labels, float] = {}
    now = 0.0
    while now <= until:
        value = evaluate(rule["expr"], samples, now)
        assert isinstance(value, dict), "an alert is about series"
        active = {_alert_labels(rule, labels) for labels in value}
        since = {labels: since.get(labels, now) for labels in active}
        now += step
    return frozenset(labels for labels, begun in since.items() if until - begun >= pending)


def _alert_labels(rule: Mapping[str, Any], labels: Labels) -> Labels:
    return frozenset(
        {**dict(labels), **rule["labels"]}.items() - {("__name__", dict(labels).get("__name__"))}
    )


def _labels(series: str) -> Labels:
    match = _SERIES.match(series)
    assert match is not None, series
    return frozenset({("__name__", match[1]), *_LABEL.findall(match[2] or "")})


def _values(text: str, interval: float) -> Iterator[tuple[float, float]]:
    """`0x3 5+1x2 _ stale` as samples: 0 0 0 0 5 6 7, one missing, and the end of the series."""
    position = 0
    for part in text.split():
        if match := _STEPS.match(part):
            first, step, times = float(match[1]), float(match[2] or 0), int(match[3])
            found: list[float | None] = [first + number * step for number in range(times + 1)]
        elif part.startswith("_"):
            found = [None] * int(part.removeprefix("_x").removeprefix("_") or 1)
        else:
            found = [STALE if part == "stale" else float(part)]
        for value in found:
            if value is not None:
                yield position * interval, value
            position += 1
