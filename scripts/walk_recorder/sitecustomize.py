"""Recorder of the functions of this project that a process enters, from SIGUSR1 to SIGUSR2.

Python imports this module by itself in every process that has its folder in PYTHONPATH. The record is written
to `<WALK_DIR>/<pid>.json` as a list of [monotonic ns, file, function, task, call], where the call is the one
that is served, as [caller, method, request id], or null.
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
_FOLDERS = tuple(_ROOT + name + os.sep for name in ("runtime", "handlers", "generated"))
_ENDPOINT = "Endpoint.answer"
ServedCall = tuple[str, str, str | None]


def _install(folder: Path) -> None:
    steps: list[tuple[int, str, str, str, ServedCall | None]] = []
    # Set in the context of a call, so that its tasks inherit it.
    serving: ContextVar[ServedCall | None] = ContextVar("serving", default=None)
    functions: dict[object, tuple[str, str] | None] = {}

    def record(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in functions:
            name = code.co_filename
            is_ours = name.startswith(_FOLDERS) and not code.co_name.startswith("<")
            functions[code] = (name.removeprefix(_ROOT), code.co_qualname) if is_ours else None
        step = functions[code]
        if step is not None:
            if step[1] == _ENDPOINT and "started" not in frame.f_locals:  # It has none before its first line.
                arguments = frame.f_locals
                serving.set(
                    (str(arguments["caller"]), str(arguments["self"].method), arguments["request_id"])
                )
            steps.append((time.monotonic_ns(), *step, _task(), serving.get()))

    def start(_number: int, _frame: FrameType | None) -> None:
        sys.setprofile(record)
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
