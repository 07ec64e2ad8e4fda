"""The output of metrics.yaml: counters in scripts, the module of the engine, alerts and a dashboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from codegen.emit.deploy import alerts, dashboard
from codegen.emit.python import metrics_module
from codegen.emit.python.metric_counts import list_happenings, series
from codegen.rules.metrics.promql import parse_selectors
from codegen.source.spec import Spec
from tests.support import quick_yaml
from tests.support.codegen.specs import FOLDERS, ROOT, spec, texts

RENTAL = "tests/specs/rental"
MEASURED = [folder for folder in FOLDERS if (ROOT / folder / "metrics.yaml").exists()]
QUIET = [folder for folder in FOLDERS if folder not in MEASURED]


def test_the_counters_of_a_change() -> None:
    """Labels are the new state, a field of the record, an argument of the change, or a fixed text."""
    rental = spec(RENTAL)
    metrics = rental.metrics.metrics
    assert list_happenings(rental, metrics["bikes_dropped_total"])["drop"] == ("<reason>",)
    assert list_happenings(rental, metrics["bike_seconds"])["lose"] == ("{size}", "lost")
    assert list_happenings(rental, metrics["bikes_left_total"]) == {"create": ("{size}",)}
    assert all(list_happenings(rental, row) for row in metrics.values() if row.counts)


def test_every_possible_series() -> None:
    """All sizes with all terminal states, and no other state."""
    metrics = spec(RENTAL).metrics.metrics
    sizes = ("small", "large", "cargo")
    assert {*series(spec(RENTAL), metrics["bike_seconds"])} == {
        (size, state) for size in sizes for state in ("home", "scrapped", "lost")
    }
    assert series(spec(RENTAL), metrics["bikes_dropped_total"]) == [
        ("late",),
        ("van_gone",),
        ("said",),
        ("lost",),
    ]
    assert series(spec(RENTAL), metrics["bikes_hurried_total"]) == [()]
    assert series(spec(RENTAL), metrics["yard_bikes"]) == []


@pytest.mark.parametrize("folder", MEASURED)
def test_the_engine_gets_every_metric(folder: str) -> None:
    """The module is Python with one record for each, whose keys have no placeholder left in them."""
    system = spec(folder)
    (text,) = texts(metrics_module.emit, system).values()
    names: dict[str, Any] = {}
    exec(compile(text, "metrics.py", "exec"), names)
    rows = names["MEASURED"]
    assert [row.name for row in rows] == [*system.metrics.metrics]
    for row in rows:
        keys = getattr(row.source, "keys", {})
        assert not any("{" in key for key in keys.values())


@pytest.mark.parametrize("folder", QUIET)
def test_without_metrics_nothing_is_generated(folder: str) -> None:
    """A system without metrics has none of these files."""
    emitted = [*metrics_module.emit(spec(folder)), *alerts.emit(spec(folder)), *dashboard.emit(spec(folder))]
    assert emitted == []


@pytest.mark.parametrize("folder", MEASURED)
def test_each_alert_is_a_rule(folder: str) -> None:
    """Name, expression, wait, severity and the text for people."""
    system = spec(folder)
    (text,) = texts(alerts.emit, system).values()
    (group,) = quick_yaml.read(text)["groups"]
    assert group["name"] == system.name
    assert [rule["alert"] for rule in group["rules"]] == [*system.metrics.alerts]
    for rule, alert in zip(group["rules"], system.metrics.alerts.values(), strict=True):
        assert rule["expr"].split() == alert.expr.split()
        assert rule.get("for", "0s") == alert.for_
        assert rule["labels"] == {"severity": alert.severity}
        assert rule["annotations"] == {"summary": alert.summary, "description": alert.doc}


@pytest.mark.parametrize("folder", MEASURED)
def test_the_dashboard_is_valid_for_grafana(folder: str) -> None:
    """It has the fields that Grafana requires, and finds its data source by a variable."""
    board = _read_board(spec(folder))
    assert board["schemaVersion"] >= 36
    assert (len(board["uid"]), bool(board["title"])) == (16, True)
    (source,) = board["templating"]["list"]
    assert (source["name"], source["type"], source["query"]) == ("datasource", "datasource", "prometheus")
    numbers = [panel["id"] for panel in board["panels"]]
    assert len({*numbers}) == len(numbers)
    for panel in _list_panels(board):
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
        assert panel["fieldConfig"]["defaults"]["unit"] in ("s", "cps", "short", "percentunit")


@pytest.mark.parametrize("folder", MEASURED)
def test_every_exported_metric_has_a_panel_in_the_row_of_its_area(folder: str) -> None:
    """Its queries read that metric and use the maximum over all processes."""
    system = spec(folder)
    board, row, found = _read_board(system), "", dict[str, str]()
    for panel in board["panels"]:
        if panel["type"] == "row":
            row = panel["title"].lower()
            continue
        found[panel["title"]] = row
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "1m")
            (read,) = {each.metric for each in parse_selectors(expression)}
            assert "max " in expression or expression.startswith("max(")
            assert read in (panel["title"], f"{panel['title']}_bucket", "ALERTS")
    exported = {name: metric for name, metric in system.metrics.metrics.items() if metric.type != "window"}
    assert {name: found[name] for name in exported} == {
        name: (metric.area or "metrics").replace("_", " ") for name, metric in exported.items()
    }


@pytest.mark.parametrize("folder", MEASURED)
def test_panels_do_not_overlap(folder: str) -> None:
    """None covers another, and none exceeds the width."""
    covered: set[tuple[int, int]] = set()
    for panel in _read_board(spec(folder))["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + column, place["y"] + line)
            for column in range(place["w"])
            for line in range(place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert covered.isdisjoint(cells)
        covered |= cells


def _read_board(system: Spec) -> dict[str, Any]:
    (text,) = texts(dashboard.emit, system).values()
    found: dict[str, Any] = json.loads(text)
    return found


def _list_panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (panel for panel in board["panels"] if panel["type"] != "row")
