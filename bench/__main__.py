"""`nox -s bench -- NAME`: runs one of the benchmarks."""

from __future__ import annotations

import importlib
import sys

NAMES = {"engine": "bench.engine", "generation": "bench.generation"}


def main(arguments: list[str]) -> int:
    """Runs the benchmark that is named."""
    if not arguments or arguments[0] not in NAMES:
        print(f"usage: nox -s bench -- {'|'.join(NAMES)}", file=sys.stderr)
        return 2
    found: int = importlib.import_module(NAMES[arguments[0]]).main(arguments[1:])
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
