"""Node with a transaction for each write: `python -m bench.queuey.unbatched_node NODE`."""

from __future__ import annotations

import sys

from runtime.serve import main
from runtime.stores.sqlite import database

if __name__ == "__main__":
    database._TOGETHER = 1
    sys.exit(main(sys.argv[1:]))
