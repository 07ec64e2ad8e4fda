"""Serve a node like `python -m runtime.serve` does, with longer timeouts for a busy machine.

A node in use gives up a connection after a second, and a statement or a call after five. Where nothing is
away that only says that the machine has much else to do. Tests of outages serve nodes as they are.
"""

from __future__ import annotations

import sys

import pytest
from msgspec.structs import force_setattr

from runtime.serve import load_system, main
from runtime.stores.postgres import context, database, maintenance

PATIENCE_S = 60.0


def extend_timeouts() -> None:
    """Give connections, statements, counts and calls of this process the time that they may need."""
    patch = pytest.MonkeyPatch()
    for module, name in ((database, "WAIT_S"), (context, "STATEMENT_S"), (maintenance, "_QUICK_COUNT_S")):
        patch.setattr(module, name, PATIENCE_S)
    for service in load_system("orchestrator").services.values():
        for method in service.methods:
            force_setattr(method.policy, "deadline_ms", int(PATIENCE_S * 1000))


if __name__ == "__main__":
    extend_timeouts()
    sys.exit(main(sys.argv[1:]))
