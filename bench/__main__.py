"""Command line `nox -s bench -- NAME`: run a benchmark; by default, that of the taskqueue's designs."""

from __future__ import annotations

import importlib
import sys

NAMES = {
    "engine": "bench.engine.command",
    "generation": "bench.generation",
    "designs-vs-bare": "bench.engine.designs_vs_bare",
    "object-batches": "bench.objectqueue.batches",
    "object-clients": "bench.objectqueue.clients",
    "orchestrator": "bench.peers.command",
    "priority": "bench.peers.on_redis.command",
    "objectqueue": "bench.objectqueue.command",
    "queuey": "bench.queuey.command",
    "starvation": "bench.starvation",
    "stores": "bench.stores.command",
    "report": "bench.report.rerender",
}
DESIGNS = "bench.designs.command"


def main(arguments: list[str]) -> int:
    """Run the benchmark that is named; everything else is a system or one of its deployments."""
    if arguments and arguments[0] in NAMES:
        code: int = importlib.import_module(NAMES[arguments[0]]).main(arguments[1:])
        return code
    importlib.import_module(DESIGNS).bench.main(arguments, prog_name="nox -s bench --")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
