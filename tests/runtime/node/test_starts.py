"""A process loads the modules that it uses and no others, as every start pays for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HTTP = ("http.server", "httptools", "uvicorn", "starlette")
GRPC = ("grpc", "grpc_health", "grpc_reflection")
STORES = (
    "asyncpg",
    "botocore",
    "obstore",
    "redis",
    "sqlite3",
    "runtime.stores.s3.store",
    "runtime.stores.sqlite",
)
OTHERS = (
    "click",
    "cryptography",
    "google.protobuf.text_format",
    "opentelemetry",
    "prometheus_client",
    "rich",
)

NODE = """
import asyncio, os, sys
from runtime.node.node import Node
from runtime.serve import load_system
from runtime.world import RealWorld

async def loaded(system, deployment, node):
    started = Node(load_system(system), deployment, node, os.environ, RealWorld())
    await started.start(0, 0)
    found = [*sys.modules]
    await started.stop()
    return found

found = asyncio.run(loaded(*sys.argv[1].split(".")))
print("loaded:", *found)
"""


def list_loaded_modules(code: str, *arguments: str, **environ: str) -> set[str]:
    """The modules that a fresh interpreter has when it has come to the end of some code."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("loaded:"))
    return {*line.split()[1:]}


def among(modules: set[str], *heavy: Iterable[str]) -> list[str]:
    """Those of some that were loaded."""
    return [name for names in heavy for name in names if name in modules]


def test_the_engine_loads_no_transport_and_no_store() -> None:
    """The transports and stores of a node are known by its tables, and loaded after them."""
    modules = list_loaded_modules("import sys, runtime.serve; print('loaded:', *sys.modules)")
    assert "runtime.node.node" in modules
    assert among(modules, HTTP, GRPC, STORES, OTHERS) == []


@pytest.mark.parametrize("system", ["objectqueue", "orchestrator", "priority", "queuey", "taskqueue"])
def test_the_tables_of_a_system_load_nothing_that_serves(system: str) -> None:
    """Protobuf's messages are all that they need."""
    modules = list_loaded_modules(f"import sys, generated.{system}.system; print('loaded:', *sys.modules)")
    assert f"generated.{system}.system" in modules
    assert among(modules, HTTP, GRPC, STORES, ("click", "opentelemetry", "prometheus_client", "rich")) == []


DIRECT = ("hpack", "runtime.transport.grpc.direct_carrier")


@pytest.mark.parametrize(("carrier", "others"), [("grpcio", DIRECT), ("direct", ("grpc",))])
def test_a_node_that_speaks_only_grpc_loads_no_http(carrier: str, others: tuple[str, ...]) -> None:
    """Nor any store but the one in memory, another carrier, or a library that is not used yet."""
    given = {"ACCEPTED_TOKENS": f"gateway={'0' * 64}", "CHARTER_GRPC_CARRIER": carrier}
    modules = list_loaded_modules(NODE, "taskqueue.microservices.result", **given)
    assert f"runtime.transport.grpc.{carrier}_carrier" in modules
    assert among(modules, others, ("google.rpc", "grpc_reflection.v1alpha")) == []
    assert among(modules, HTTP, STORES, ("click", "opentelemetry", "prometheus_client", "rich")) == []


def test_a_client_loads_no_carrier_before_it_calls() -> None:
    """A launcher has a client for every principal, and may make no call."""
    modules = list_loaded_modules("import sys, runtime.client; print('loaded:', *sys.modules)")
    assert "runtime.call.routing" in modules
    assert among(modules, GRPC, DIRECT, HTTP, STORES) == []


def test_a_node_that_speaks_only_http_loads_no_grpc(tmp_path: Path) -> None:
    """Nor the stores of other systems."""
    modules = list_loaded_modules(
        NODE, "queuey.local.store", STORE_PATH=str(tmp_path), HOST="127.0.0.1", MDNS_ENABLED="false"
    )
    assert "uvicorn" in modules and "zeroconf" not in modules
    others = ("asyncpg", "botocore", "obstore", "redis", "opentelemetry", "prometheus_client")
    assert among(modules, GRPC, others) == []


def test_a_launcher_loads_no_transport_and_no_certificates() -> None:
    """It starts processes and looks after them; most local deployments have no certificates."""
    modules = list_loaded_modules("import sys, runtime.launch; print('loaded:', *sys.modules)")
    assert "runtime.launch.deployment" in modules
    assert among(modules, ("httptools", "uvicorn", "starlette"), GRPC, STORES, ("cryptography",)) == []
