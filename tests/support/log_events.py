"""Events in the log of a process that may still be writing it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_events(path: Path, start: int, name: str) -> list[dict[str, Any]]:
    """The complete lines of an event, from a position in the file on."""
    with path.open("rb") as log:
        log.seek(start)
        complete = log.read().split(b"\n")[:-1]
    lines = [json.loads(line) for line in complete if line.startswith(b"{")]
    return [line for line in lines if line.get("event") == name]
