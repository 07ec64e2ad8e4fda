"""Switch for more random tests: `--deep`, or CHARTER_DEEP=1."""

from __future__ import annotations

import os

DEEP = bool(int(os.environ.get("CHARTER_DEEP", "0")))
