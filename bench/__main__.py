"""`nox -s bench -- NAME`: runs one of the benchmarks; without a name, the designs of the taskqueue."""

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
    "report": "bench.report.rerender",
}
DESIGNS = "bench.designs.command"


def main(arguments: list[str]) -> int:
    """Runs the benchmark that is named; everything else is a system or one of its deployments."""
    if arguments and arguments[0] in NAMES:
        found: int = importlib.import_module(NAMES[arguments[0]]).main(arguments[1:])
        return found
    importlib.import_module(DESIGNS).bench.main(arguments, prog_name="nox -s bench --")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
