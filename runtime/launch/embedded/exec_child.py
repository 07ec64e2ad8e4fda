"""Exec a server that stops in order when its parent process ends (PR_SET_PDEATHSIG).

`exec_child.py <parent> <signal> <user> <command…>`, where an empty user means ours. A parent that is killed
can stop no process, so the kernel sends the signal for an orderly stop instead. It survives exec, but no
change of user, so both are done here and in this order: not between fork and exec, because no Python code is
safe there in a process with threads. The parent is the thread that forked. Linux only.
"""

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, death_signal: int, user: str, command: list[str]) -> None:
    """Exec the command; does not return unless it cannot be run."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    if user:
        _change_user(user)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, death_signal)
        if os.getppid() != parent:
            # The parent ended before the call, so the signal will never come.
            sys.exit(1)
    os.execv(command[0], command)


def _change_user(user: str) -> None:
    import pwd

    row = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(row.pw_gid)
    os.setuid(row.pw_uid)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
