"""Record which functions of this project a process runs, from SIGUSR1 to SIGUSR2.

Python imports this module by itself in every process that has its folder in PYTHONPATH. What was recorded is
written to `<WALK_DIR>/<pid>.json` as a list of [monotonic ns, file, function, task, call], where the call is
the one that is served, as [caller, method, request id], or null.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from contextvars import ContextVar
from pathlib import Path
from types import FrameType

_ROOT = str(Path(__file__).parents[2]) + os.sep
_ROOMS = tuple(_ROOT + room + os.sep for room in ("runtime", "handlers", "generated"))
_ENDPOINT = "Endpoint.answer"
Served = tuple[str, str, str | None]


def _install(folder: Path) -> None:
    steps: list[tuple[int, str, str, str, Served | None]] = []
    # Set in the context of a call, so that the tasks that are made for it have it, too.
    serving: ContextVar[Served | None] = ContextVar("serving", default=None)
    known: dict[object, tuple[str, str] | None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in known:
            name = code.co_filename
            is_ours = name.startswith(_ROOMS) and not code.co_name.startswith("<")
            known[code] = (name.removeprefix(_ROOT), code.co_qualname) if is_ours else None
        step = known[code]
        if step is not None:
            if step[1] == _ENDPOINT and "started" not in frame.f_locals:  # It has none before its first line.
                given = frame.f_locals
                serving.set((str(given["caller"]), str(given["self"].method), given["request_id"]))
            steps.append((time.monotonic_ns(), *step, _task(), serving.get()))

    def start(_number: int, _frame: FrameType | None) -> None:
        sys.setprofile(note)
        (folder / f"{os.getpid()}.on").touch()

    def stop(_number: int, _frame: FrameType | None) -> None:
        sys.setprofile(None)
        written = folder / f"{os.getpid()}.part"
        written.write_text(json.dumps(steps))
        written.rename(folder / f"{os.getpid()}.json")

    signal.signal(signal.SIGUSR1, start)
    signal.signal(signal.SIGUSR2, stop)


def _task() -> str:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return ""
    return "" if task is None else f"{task.get_name()} {id(task)}"


if "WALK_DIR" in os.environ and "runtime.serve" in " ".join(sys.orig_argv):
    _install(Path(os.environ["WALK_DIR"]))
