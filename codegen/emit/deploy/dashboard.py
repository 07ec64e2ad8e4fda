"""`deploy/dashboard.json`: a dashboard for Grafana, a row for each area and a panel for each metric.

Every process exports the same numbers, so queries aggregate by max and never by sum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from codegen.emit.artefact import Artefact, join_lines
from codegen.emit.postgres.history import histories
from codegen.emit.python.metrics_module import list_labels
from codegen.language.metrics import Metric
from codegen.source.spec import Spec

SCHEMA_VERSION = 39
"""The schema version of Grafana 10.4, which newer ones can read."""
COLUMNS = 24
WIDTH, HEIGHT = 8, 8
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
QUANTILES = (0.5, 0.95, 0.99)

Panel = dict[str, Any]
Query = tuple[str, str]
"""An expression and the legend of its series."""


def emit(spec: Spec) -> Iterator[Artefact]:
    if spec.metrics.metrics:
        text = json.dumps(build_dashboard(spec), indent=2, ensure_ascii=False) + "\n"
        yield Artefact(f"generated/{spec.name}/deploy/dashboard.json", text)


def build_dashboard(spec: Spec) -> dict[str, Any]:
    """Build the dashboard as plain data."""
    return {
        "uid": hashlib.sha256(f"charter {spec.name}".encode()).hexdigest()[:16],
        "title": join_lines(spec.system.title),
        "description": join_lines(spec.system.summary),
        "tags": ["charter", spec.name],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "refresh": "10s",
        "annotations": {"list": []},
        "links": [],
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Data source",
                    "type": "datasource",
                    "query": "prometheus",
                    "current": {},
                    "hide": 0,
                    "includeAll": False,
                    "multi": False,
                    "options": [],
                    "refresh": 1,
                }
            ]
        },
        "panels": place_panels(_build_rows(spec)),
    }


def place_panels(rows: Sequence[tuple[str, Sequence[Panel]]]) -> list[Panel]:
    """Give panels a position and an id, three beside each other below the title of their row."""
    found: list[Panel] = []
    top = 0
    for title, panels in rows:
        found.append(
            {
                "type": "row",
                "title": title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": top},
            }
        )
        top += 1
        for number, panel in enumerate(panels):
            line, column = divmod(number, COLUMNS // WIDTH)
            position = {"h": HEIGHT, "w": WIDTH, "x": column * WIDTH, "y": top + line * HEIGHT}
            found.append({**panel, "gridPos": position})
        top += -(-len(panels) // (COLUMNS // WIDTH)) * HEIGHT
    return [{"id": number, **panel} for number, panel in enumerate(found, 1)]


def _build_rows(spec: Spec) -> list[tuple[str, list[Panel]]]:
    """Build the panels of each area, in the order in which the spec first names it."""
    found: dict[str, list[Panel]] = {}
    for name, metric in spec.metrics.metrics.items():
        if metric.type != "window":
            found.setdefault(metric.area or "metrics", []).append(_build_panel(name, metric))
    if spec.metrics.alerts:
        found["alerts"] = [_build_alerts_panel(spec)]
    if histories(spec):
        queries = [("max by (entity) (charter_outbox_oldest_seconds)", "{{entity}}")]
        doc = "How long changes have waited to be written to the history."
        found.setdefault("history", []).append(
            _build_timeseries("charter_outbox_oldest_seconds", doc, "s", queries)
        )
        queries = [("max by (entity) (charter_outbox_entries)", "{{entity}}")]
        doc = "Entries with changes that are not in the history yet."
        found["history"].append(_build_timeseries("charter_outbox_entries", doc, "short", queries))
    return [(area.replace("_", " ").capitalize(), panels) for area, panels in found.items()]


def _build_panel(name: str, metric: Metric) -> Panel:
    labels = list_labels(metric)
    by = f"by ({', '.join(labels)}) " if labels else ""
    legend = " ".join(f"{{{{{label}}}}}" for label in labels) or name
    if metric.type == "histogram":
        return _build_timeseries(name, metric.doc, "s", [*_build_quantile_queries(name, labels)])
    if metric.type == "counter":
        return _build_timeseries(
            name, metric.doc, "cps", [(f"max {by}(rate({name}[$__rate_interval]))", legend)]
        )
    unit = "s" if name.endswith("_seconds") else "percentunit" if name.endswith("_ratio") else "short"
    return _build_timeseries(name, metric.doc, unit, [(f"max {by}({name})", legend)])


def _build_quantile_queries(name: str, labels: Sequence[str]) -> Iterator[Query]:
    """Build a query for each quantile, grouped by the first label and summed over the others."""
    every = ", ".join((*labels, "le"))
    grouped = ", ".join((*labels[:1], "le"))
    prefix = f"{{{{{labels[0]}}}}} " if labels else ""
    rate = f"sum by ({grouped}) (max by ({every}) (rate({name}_bucket[$__rate_interval])))"
    for quantile in QUANTILES:
        yield f"histogram_quantile({quantile:g}, {rate})", f"{prefix}p{quantile * 100:g}"


def _build_timeseries(title: str, doc: str, unit: str, queries: Sequence[Query]) -> Panel:
    return {
        "type": "timeseries",
        "title": title,
        "description": join_lines(doc),
        "datasource": SOURCE,
        "targets": [_build_target(number, *query) for number, query in enumerate(queries)],
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "min": 0,
                "custom": {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never"},
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def _build_alerts_panel(spec: Spec) -> Panel:
    """Build the panel of firing alerts over time."""
    names = "|".join(spec.metrics.alerts)
    query = f'max by (alertname, severity) (ALERTS{{alertname=~"{names}", alertstate="firing"}})'
    panel = _build_timeseries("Alerts", "What is firing.", "short", [(query, "{{alertname}} ({{severity}})")])
    panel["fieldConfig"]["defaults"]["max"] = 1
    panel["fieldConfig"]["defaults"]["custom"]["drawStyle"] = "bars"
    return panel


def _build_target(number: int, expression: str, legend: str) -> dict[str, Any]:
    return {
        "refId": chr(ord("A") + number),
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": expression,
        "legendFormat": legend,
        "range": True,
        "instant": False,
    }
