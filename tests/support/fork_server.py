"""Fork server with the modules of a system: `python -m tests.support.fork_server <system> <socket>`.

A request on the socket is one JSON object a line; the server answers with the process id, and later with its
exit code. It reaps a process when the client has acknowledged its end, so that no other process gets the same
id before.
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
    "postgres": ("runtime.stores.postgres",),
    "redis": ("runtime.stores.redis", "runtime.stores.redis.metrics.exporter", "runtime.stores.history"),
    "sqlite": ("runtime.stores.sqlite",),
    "s3": (
        "runtime.stores.s3.store",
        "runtime.stores.s3.client.credentials",
        "obstore.store",
        "botocore.auth",
    ),
}


def main(system: str, number: int) -> None:
    """Serve until the tests end. In a forked process, return once its files and arguments are set."""
    _load(system)
    connection = socket.socket(fileno=number)
    wakeup_reader, wakeup_writer = socket.socketpair()
    wakeup_writer.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup_writer.fileno())
    selector = selectors.DefaultSelector()
    selector.register(connection, selectors.EVENT_READ)
    selector.register(wakeup_reader, selectors.EVENT_READ)
    buffer, living = b"", set[int]()
    while True:
        for key, _ in selector.select():
            if key.fileobj is wakeup_reader:
                wakeup_reader.recv(4096)
                continue
            if not (more := connection.recv(65536)):
                sys.exit()
            *lines, buffer = (buffer + more).split(b"\n")
            for each in lines:
                message = json.loads(each)
                if isinstance(message, int):
                    os.waitpid(message, 0)
                    continue
                parent = os.getpid()
                if not (pid := os.fork()):
                    for file in (connection, wakeup_reader, wakeup_writer):
                        file.close()
                    selector.close()
                    _become(parent, message)
                    return
                living.add(pid)
                connection.sendall(b'{"began":%d}\n' % pid)
        for pid in [*living]:
            if (ended := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                connection.sendall(b'{"ended":%d,"code":%d}\n' % (pid, code))
                living.discard(pid)


def _load(system: str) -> None:
    lifecycles = load_system(system).lifecycles.values()
    stores = (name for each in lifecycles for name in STORES.get(each.engine, ()))
    handlers = importlib.import_module(f"handlers.{system}")
    for name in (*ENGINE, *stores):
        importlib.import_module(name)
    for module in pkgutil.iter_modules(handlers.__path__, f"{handlers.__name__}."):
        importlib.import_module(module.name)
    gc.freeze()


def _become(parent: int, request: dict[str, Any]) -> None:
    """Give a forked process the state of a new one."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    die_with_parent.die_with_parent(parent)
    for number, name in ((1, "out"), (2, "errors")):
        file = os.open(request[name], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = [request["module"], *request["arguments"]]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
