"""`python -m tests.support.fork_server <system> <socket>`: has a system's modules, and forks nodes for tests.

On the socket it is told what to run, one JSON object a line; it answers with the number of the process, and
later with its exit code. It reaps a process when it is told that its end was heard of, so that nobody takes
another one of the same number for it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
from typing import Any

from runtime.launch import die_with_parent
from runtime.node.systems import load_system

ENGINE = (
    "runtime.node.node",
    "runtime.observe.collectors",
    "runtime.node.finding",
    "runtime.transport.grpc.grpcio_carrier",
    "runtime.transport.http.server",
    "uvicorn.protocols.http.httptools_impl",
)
STORES = {
    "kept": ("runtime.stores.postgres",),
    "in_redis": ("runtime.stores.redis", "runtime.stores.redis.metrics.exporter", "runtime.stores.history"),
    "in_sqlite": ("runtime.stores.sqlite",),
    "in_s3": (
        "runtime.stores.s3.store",
        "runtime.stores.s3.client.credentials",
        "obstore.store",
        "botocore.auth",
    ),
}


def main(system: str, number: int) -> None:
    """End with the tests. In a forked process it returns once that has its name, its files and its words."""
    _load(system)
    line = socket.socket(fileno=number)
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno())
    waiting = selectors.DefaultSelector()
    waiting.register(line, selectors.EVENT_READ)
    waiting.register(woken, selectors.EVENT_READ)
    told, living = b"", set[int]()
    while True:
        for key, _ in waiting.select():
            if key.fileobj is woken:
                woken.recv(4096)
                continue
            if not (more := line.recv(65536)):
                sys.exit()
            *lines, told = (told + more).split(b"\n")
            for each in lines:
                said = json.loads(each)
                if isinstance(said, int):
                    os.waitpid(said, 0)
                    continue
                parent = os.getpid()
                if not (pid := os.fork()):
                    for file in (line, woken, waker):
                        file.close()
                    waiting.close()
                    _become(parent, said)
                    return
                living.add(pid)
                line.sendall(b'{"began":%d}\n' % pid)
        for pid in [*living]:
            if (ended := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                line.sendall(b'{"ended":%d,"code":%d}\n' % (pid, code))
                living.discard(pid)


def _load(system: str) -> None:
    lifecycles = load_system(system).lifecycles.values()
    stores = (name for each in lifecycles for kind in STORES if getattr(each, kind) for name in STORES[kind])
    handlers = importlib.import_module(f"handlers.{system}")
    for name in (*ENGINE, *stores):
        importlib.import_module(name)
    for module in pkgutil.iter_modules(handlers.__path__, f"{handlers.__name__}."):
        importlib.import_module(module.name)
    gc.freeze()


def _become(parent: int, asked: dict[str, Any]) -> None:
    """Make of a forked process what a new one would be."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    die_with_parent.die_with_parent(parent)
    for number, name in ((1, "out"), (2, "errors")):
        file = os.open(asked[name], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.argv = [asked["module"], *asked["arguments"]]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
