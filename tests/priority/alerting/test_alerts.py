"""Each alert fires at its bound, and not a second or a task before.

`alerts_test.yaml` is a test file of Prometheus' own tool: `promtool test rules` accepts it. Here it is
carried out by an evaluator of the part of PromQL that the rules use, and by promtool where there is one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from codegen.rules.metrics.promql import parse_selectors
from generated.priority.metrics import MEASURED
from tests.support import quick_yaml
from tests.support.priority.rule_tests import Expected, RuleTest, find_firing, read_rule_tests

ROOT = Path(__file__).parents[3]
RULES = ROOT / "generated/priority/deploy/alerts.yaml"
TESTS = list(read_rule_tests(Path(__file__).parent / "alerts_test.yaml"))
BY_NAME = {each["alert"]: each for each in quick_yaml.read(RULES.read_text())["groups"][0]["rules"]}
EXPECTATIONS = [
    pytest.param(test, expected, id=f"{test.name}, {expected.at:g} s")
    for test in TESTS
    for expected in test.expected
]
PROMTOOL = shutil.which("promtool")
TEXT = {"type": "string", "minLength": 1}
RULE_FILE = {
    "type": "object",
    "required": ["groups"],
    "additionalProperties": False,
    "properties": {
        "groups": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "rules"],
                "additionalProperties": False,
                "properties": {
                    "name": TEXT,
                    "rules": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "required": ["alert", "expr", "labels", "annotations"],
                            "additionalProperties": False,
                            "properties": {
                                "alert": {"type": "string", "pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
                                "expr": TEXT,
                                "for": {"type": "string", "pattern": "^([0-9]+(ms|[smhdwy]))+$"},
                                "labels": {
                                    "type": "object",
                                    "propertyNames": {"pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"},
                                    "additionalProperties": TEXT,
                                    "required": ["severity"],
                                    "properties": {"severity": {"enum": ["critical", "warning"]}},
                                },
                                "annotations": {
                                    "type": "object",
                                    "additionalProperties": TEXT,
                                    "required": ["summary", "description"],
                                },
                            },
                        },
                    },
                },
            },
        }
    },
}
"""The form of a rule file of Prometheus, and our own promises beyond that."""


@pytest.mark.req("PQ-233", "PQ-234", "PQ-235", "PQ-236", "PQ-237", "PQ-238", "PQ-239")
@pytest.mark.parametrize(("test", "expected"), EXPECTATIONS)
def test_each_alert_fires_at_its_bound(test: RuleTest, expected: Expected) -> None:
    """Each alert on both sides of its bound, with the same numbers from two processes."""
    assert find_firing(BY_NAME[expected.alert], test.samples, expected.at) == expected.alerts


@pytest.mark.parametrize("name", BY_NAME)
def test_the_expectations_detect_a_wrong_bound(name: str) -> None:
    """With a bound that is a little wider, or a shorter wait, some expectation would fail."""
    rule = BY_NAME[name]
    wider = {**rule, "expr": re.sub(r"> (0\.25|0\.9|\d+)", r">= \1", rule["expr"]).replace("== 0", "<= 1")}
    assert not _meets_expectations(wider)
    if "for" in rule:
        assert not _meets_expectations({**rule, "for": "1s"})
        assert not _meets_expectations({**rule, "for": "1h"})


def _meets_expectations(rule: dict[str, Any]) -> bool:
    return all(
        find_firing(rule, test.samples, expected.at) == expected.alerts
        for test in TESTS
        for expected in test.expected
        if expected.alert == rule["alert"]
    )


@pytest.mark.req("PQ-240")
def test_rules_use_exported_metrics_only() -> None:
    """Every metric of every expression is exported, and each rule has a severity."""
    exported = {each.name for each in MEASURED if each.type in ("counter", "gauge")}
    exported |= {"charter_outbox_oldest_seconds"}  # of every system with a history
    for each in MEASURED:
        if each.type == "histogram":
            exported |= {f"{each.name}{part}" for part in ("_bucket", "_sum", "_count")}
    for rule in BY_NAME.values():
        assert {each.metric for each in parse_selectors(rule["expr"])} <= exported
    critical = {name for name, rule in BY_NAME.items() if rule["labels"]["severity"] == "critical"}
    assert critical == {"NoActiveWorker", "HighQueueDeep", "FailureRateHigh", "DeadLettersGrow"}
    assert BY_NAME.keys() - critical == {"WorkersBusy", "PromotionStuck", "QueueDeep", "HistoryBehind"}


def check_schema() -> None:
    """The file has the form of a rule file, nothing more and nothing less."""
    jsonschema.validate(quick_yaml.read(RULES.read_text()), RULE_FILE)


def check_with_promtool() -> None:
    """Prometheus' own tool accepts the file, and its tests pass."""
    tests = Path(__file__).parent / "alerts_test.yaml"
    for arguments in (("check", "rules", RULES), ("test", "rules", tests)):
        completed = subprocess.run([str(PROMTOOL), *arguments], capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stdout + completed.stderr


@pytest.mark.req("PQ-241")
@pytest.mark.parametrize("check", [check_schema, *([check_with_promtool] if PROMTOOL else [])])
def test_prometheus_accepts_the_file(check: Callable[[], None]) -> None:
    """By its form, and by promtool where there is one."""
    check()
