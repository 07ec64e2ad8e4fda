"""`python -m runtime.make_buckets <system>`: create and configure the buckets of a system. Idempotent."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from runtime.launch.buckets import Buckets
from runtime.launch.errors import LaunchError
from runtime.node.process_exit import exit_process
from runtime.node.settings import SettingsError
from runtime.node.systems import load_system

USAGE = "usage: python -m runtime.make_buckets <system>"


def main(arguments: Sequence[str]) -> int:
    """Set up the buckets and print each step; 1 on failure, 2 for invalid arguments or settings."""
    if len(arguments) != 1:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        system = load_system(arguments[0])
    except ModuleNotFoundError as error:
        print(f"There is no system {arguments[0]} ({error}).\n{USAGE}", file=sys.stderr)
        return 2
    try:
        for line in asyncio.run(Buckets(system, os.environ).set_up()):
            print(line)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 1
    except SettingsError as error:
        print("\n".join(error.problems), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    exit_process(main(sys.argv[1:]))
