"""The end of a process that uses libraries with threads of their own."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

__all__ = ["exit_process"]


def exit_process(code: int) -> NoReturn:
    """Ends the process at once, with all output written.

    A thread of obstore or grpcio comes back to Python after it has told the event loop of an answer. Before
    Python 3.14 an interpreter that is being torn down ends such a thread by pthread_exit(), which Rust and
    C++ take for a crash: the process aborts (SIGABRT) with everything done and nothing said. So there is no
    tearing down: whoever calls this has closed what has to be closed.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
