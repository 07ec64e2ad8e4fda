"""Logs of running nodes, as the lines that are complete by now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runtime.launch import NodeProcess

Line = Mapping[str, Any]
REQUIRED: Mapping[str, type] = {
    "ts_ms": int,
    "level": str,
    "service": str,
    "method": str,
    "event": str,
    "message": str,
}
OPTIONAL: Mapping[str, type | tuple[type, ...]] = {
    "job_id": str,
    "worker_id": str,
    "grpc_code": str,
    "caller": str,
    "request_id": str,
    "latency_ms": (int, float),
    "expected_status": str,
    "current_status": str,
}
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def lines(source: NodeProcess | Path) -> list[Line]:
    """What a node has written so far; anything that is not a JSON object a line is an error."""
    path = source if isinstance(source, Path) else source.log
    complete, _, _ = path.read_bytes().rpartition(b"\n")
    found = [json.loads(line) for line in complete.splitlines()]
    assert all(isinstance(line, dict) for line in found)
    return found


def problems(line: Line) -> list[str]:
    """What is wrong with the fields of a line."""
    found = [f"lacks {name}" for name in REQUIRED if name not in line]
    found += [
        f"{name} is {line[name]!r}"
        for name, kind in {**REQUIRED, **OPTIONAL}.items()
        if name in line and not isinstance(line[name], kind)
    ]
    if line.get("level") not in LEVELS:
        found.append(f"level is {line.get('level')!r}")
    if line.get("event") == "rpc_error" and not line.get("grpc_code"):
        found.append("an rpc_error lacks its grpc_code")
    return found
