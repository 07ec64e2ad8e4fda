"""Exit of a process whose libraries have threads of their own."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

__all__ = ["exit_process"]


def exit_process(code: int) -> NoReturn:
    """Exit at once, with all output flushed.

    A thread of obstore or grpcio returns to Python after it has notified the event loop. Before
    Python 3.14 an interpreter that is being torn down ends such a thread by pthread_exit(), which Rust and
    C++ take for a crash: the process aborts (SIGABRT) although all its work is done. So the interpreter is
    not finalized: the caller has closed what has to be closed.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
