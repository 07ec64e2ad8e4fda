"""Becomes another command that dies with the process that started it.

`die_with_parent.py <parent> <command…>`: a launcher that is killed with SIGKILL can stop nobody any more. So
each node is started through this file, which asks the kernel to kill the process when its parent ends, and
then becomes the node: the process id stays, and so does the wish, for it survives exec. The node knows
nothing of it. The launcher does not ask for it itself, between fork and exec: no Python code is safe there in
a process with threads, as gRPC has them.

By parent the kernel means the thread that forked, which is the one of the launcher's event loop. Only Linux
can be asked. It runs as a file of its own, without site packages, and so in a few milliseconds.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Does not return unless the command cannot be run."""
    tie(parent)
    os.execvp(command[0], command)


def tie(parent: int) -> None:
    """Has the kernel kill this process when its parent ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            # It ended before we asked, so nobody will ever tell us.
            sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
