"""Becomes a server that stops in order when the process that started it ends.

`exec_child.py <parent> <signal> <user> <command…>`, where an empty user means ours. A parent that is killed
can stop nobody any more, so the kernel is asked to send the signal then that means an orderly stop to the
server. The wish survives exec, but no change of user, so both are done here and in this order: not between
fork and exec, because no Python code is safe there in a process with threads. By parent the kernel means the
thread that forked. Only Linux can be asked.
"""

import ctypes
import os
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, wish: int, user: str, command: list[str]) -> None:
    """Does not return unless the command cannot be run."""
    ask = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
    if user:
        _become(user)
    if ask is not None:
        ask(_PR_SET_PDEATHSIG, wish)
        if os.getppid() != parent:
            # It ended before we asked, so nobody will ever tell us.
            sys.exit(1)
    os.execv(command[0], command)


def _become(user: str) -> None:
    import pwd

    row = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(row.pw_gid)
    os.setuid(row.pw_uid)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
