"""Logs of running nodes, as the lines that are complete by now."""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping
from typing import Any

from runtime.launch import Launched, NodeProcess
from tests.support.eventually import eventually

Line = Mapping[str, Any]


def texts(process: NodeProcess) -> list[str]:
    """The complete lines that a node has written so far."""
    complete, _, _ = process.log.read_bytes().rpartition(b"\n")
    return complete.decode().splitlines()


def lines(process: NodeProcess, *events: str) -> list[Line]:
    """The same as objects, all of them or those of some events."""
    found = [json.loads(text) for text in texts(process)]
    return [line for line in found if not events or line["event"] in events]


async def wait_for_line(process: NodeProcess, event: str, **fields: object) -> Line:
    """The first line of an event that has these fields, once it is there."""

    async def look() -> list[Line]:
        return [line for line in lines(process, event) if fields.items() <= line.items()]

    return (await eventually(look, what=f"{event} {fields} in the log of {process.name}"))[0]


def merge_logs(deployment: Launched) -> list[str]:
    """The lines of all nodes by their time; those of one node stay in their order."""
    logs = (texts(process) for process in deployment.processes.values())
    return list(heapq.merge(*logs, key=lambda text: json.loads(text)["ts_ms"]))
