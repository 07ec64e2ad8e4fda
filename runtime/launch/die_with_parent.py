"""Exec a command that dies with its parent (PR_SET_PDEATHSIG): `die_with_parent.py <parent> <command…>`.

A launcher that is killed with SIGKILL can stop no process. So each node is started through this file, which
sets the parent death signal and then execs the node: the process id stays, and so does the signal, which
survives exec. The node does not notice. The launcher does not set it itself, between fork and exec: no Python
code is safe there in a process with threads, as gRPC has them.

The parent is the thread that forked, which is the one of the launcher's event loop. Linux only. It runs as a
file of its own, without site packages, and so in a few milliseconds.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Exec the command; does not return unless it cannot be run."""
    die_with_parent(parent)
    os.execvp(command[0], command)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            # The parent ended before the call, so the signal will never come.
            sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
