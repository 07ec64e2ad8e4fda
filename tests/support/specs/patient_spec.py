"""Copies of specs whose calls wait for a machine that is busy, unless it is their deadline that is tried."""

from __future__ import annotations

import re

DEADLINE = re.compile(r"\bdeadline_ms: \d+")


def extend_timeouts(text: str) -> str:
    """The text of a spec, in which every method has a timeout of a minute."""
    return DEADLINE.sub("deadline_ms: 60000", text)
