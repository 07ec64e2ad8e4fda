"""`deploy/alerts.yaml`: the alerts of a spec as a rule file of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from codegen.emit.artefact import Artefact, format_stamp, join_lines
from codegen.emit.deploy.yaml_text import dump_documents
from codegen.language.metrics import Alert
from codegen.source.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    if spec.metrics.alerts:
        rules = [_build_rule(name, alert) for name, alert in spec.metrics.alerts.items()]
        text = dump_documents([{"groups": [{"name": spec.name, "rules": rules}]}])
        yield Artefact(f"generated/{spec.name}/deploy/alerts.yaml", f"# {format_stamp(spec)}\n{text}")


def _build_rule(name: str, alert: Alert) -> dict[str, Any]:
    duration = {} if alert.for_.rstrip("smh").strip("0") == "" else {"for": alert.for_}
    return {
        "alert": name,
        "expr": join_lines(alert.expr),
        **duration,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": join_lines(alert.summary), "description": join_lines(alert.doc)},
    }
