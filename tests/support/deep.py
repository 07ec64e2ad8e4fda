"""Whether to try all of what is tried in part otherwise: `--deep`, or CHARTER_DEEP=1."""

from __future__ import annotations

import os

DEEP = bool(int(os.environ.get("CHARTER_DEEP", "0")))
