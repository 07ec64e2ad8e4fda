"""Switch for more random tests: `--deep`, or CHARTER_DEEP=1.

That is what is made up or repeated: examples, sequences, broken inputs, many of the same. How long to kill
and race is no matter of this, see tests/support/chaos.py.
"""

from __future__ import annotations

import os

DEEP = bool(int(os.environ.get("CHARTER_DEEP", "0")))
