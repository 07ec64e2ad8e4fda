"""A checker of JSON log lines: fields, codes, and transitions that do not exist.

The lines may be those of one node or of many, as long as the lines of each stay in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import grpc

from generated.taskqueue.lifecycle import LIFECYCLES
from runtime.model.lifecycles import Lifecycle
from runtime.observe.log import LEVELS

REQUIRED = {"ts_ms": int, "level": str, "service": str, "method": str, "event": str, "message": str}
OPTIONAL: Mapping[str, tuple[type, ...]] = {
    "job_id": (str,),
    "worker_id": (str,),
    "request_id": (str,),
    "caller": (str,),
    "latency_ms": (int, float),
}
CODES = frozenset(code.name for code in grpc.StatusCode) - {"OK"}
WITHOUT_A_JOB = (
    "a record may have been created whose id is unknown",
    "a job may have left the queue unseen",
)
"""How the messages of anomalies without a job_id begin, since the logging node cannot know it."""
_DELETED = "gone"


def find_problems(lines: Iterable[str], lifecycles: Mapping[str, Lifecycle] = LIFECYCLES) -> list[str]:
    """Everything that is wrong with a log, in its order."""
    return list(_Reader(lifecycles).read(lines))


class _Reader:
    def __init__(self, lifecycles: Mapping[str, Lifecycle]) -> None:
        self._lifecycles = lifecycles
        self._states: dict[tuple[str, str], str] = {}
        self._names = {name for each in lifecycles.values() for name in each.states.values()}

    def read(self, lines: Iterable[str]) -> Iterator[str]:
        for number, text in enumerate(lines, 1):
            try:
                line = json.loads(text)
            except ValueError:
                yield f"line {number} is no JSON: {text!r}"
                continue
            if not isinstance(line, dict):
                yield f"line {number} is no object: {text!r}"
                continue
            yield from (f"line {number}: {problem}: {text.strip()}" for problem in self._check(line))

    def _check(self, line: dict[str, Any]) -> Iterator[str]:
        for name, kind in REQUIRED.items():
            if type(line.get(name)) is not kind:
                yield f"{name} must be there and of type {kind.__name__}"
        for name, kinds in OPTIONAL.items():
            if name in line and (type(line[name]) not in kinds or line[name] == ""):
                yield f"{name} must be of type {kinds[0].__name__} and not empty"
        if line.get("level") not in LEVELS:
            yield "there is no such level"
        for name in ("expected_status", "current_status", "from_status", "to_status"):
            if name in line and line[name] not in self._names:
                yield f"{name} must name a state"
        if "grpc_code" in line and line["grpc_code"] not in CODES:
            yield "grpc_code must be the name of a code other than OK"
        if line.get("event") == "rpc_error" and "grpc_code" not in line:
            yield "an rpc_error needs its code"
        without_job = str(line.get("message")).startswith(WITHOUT_A_JOB)
        if line.get("event") == "consistency_anomaly" and "job_id" not in line and not without_job:
            yield "an anomaly needs its job_id"
        if line.get("event") == "transition":
            yield from self._transition(line)

    def _transition(self, line: dict[str, Any]) -> Iterator[str]:
        lifecycle = self._lifecycles.get(str(line.get("entity")))
        if lifecycle is None or not line.get(lifecycle.key):
            yield "a transition needs its entity and key"
            return
        key = (lifecycle.entity, str(line[lifecycle.key]))
        source, target = line.get("from_status"), line.get("to_status")
        if source != self._states.get(key):
            yield f"it was {self._states.get(key)}"
        self._states[key] = target if target is not None else _DELETED
        name, actors = _edge(lifecycle, source, target)
        if name is None:
            yield f"no {lifecycle.entity} goes from {source} to {target}"
        elif line.get("transition") != name:
            yield f"this transition is called {name}"
        elif line.get("caller") not in actors:
            yield f"{line.get('caller')} may not {name} it"


def _edge(lifecycle: Lifecycle, source: str | None, target: str | None) -> tuple[str | None, frozenset[str]]:
    """The name of a transition and its actors; None if the lifecycle has no such edge."""
    numbers = {name: number for number, name in lifecycle.states.items()}
    start, end = numbers.get(source or ""), numbers.get(target or "")
    if source is None:
        return ("create" if end == lifecycle.initial else None), lifecycle.creators
    if target is None:
        return ("delete" if start in lifecycle.deletable else None), lifecycle.deleters
    edge = lifecycle.edges.get((start or 0, end or 0))
    return (edge.name, edge.actors) if edge is not None else (None, frozenset())
