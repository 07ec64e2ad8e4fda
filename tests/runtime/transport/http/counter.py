"""The locker with a window for HTTP: a system of its own, generated and served inside a test."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import io
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import generated
from codegen.__main__ import main as codegen
from runtime.model.system import System
from runtime.node.node import Node
from runtime.node.systems import load_system, system_names
from runtime.world import RealWorld
from tests.support import quick_yaml
from tests.support.specs.patient_spec import extend_timeouts

ROOT = Path(__file__).parents[4]
SPECS = ROOT / "tests/specs"
HERE = Path(__file__).parent
NAME = "counter"
TOKENS = {"courier": "courier-secret", "clerk": "clerk-secret", "desk": "desk-secret"}
DIGESTS = ",".join(f"{name}={hashlib.sha256(token.encode()).hexdigest()}" for name, token in TOKENS.items())
ENVIRON = {
    "LOCKER_TOKENS": DIGESTS,
    "LOCKER_TOKEN": TOKENS["desk"],
    "LOCKER_SITE": "corner",
    "LOCKER_LOG": "DEBUG",
}


def bearer(name: str) -> dict[str, str]:
    """The header by which a principal proves itself."""
    return {"authorization": f"Bearer {TOKENS[name]}"}


def make_project(root: Path) -> Path:
    """Generates the system below a folder."""
    write_spec(root / "spec" / NAME)
    assert codegen(["generate", "--root", str(root)]) == 0
    handlers = root / "handlers" / NAME
    handlers.mkdir(parents=True)
    for file, name in (("desk.py", "plain_desk.py"), ("vault.py", "vault.py")):
        text = (SPECS / "locker_handlers" / file).read_text(encoding="utf-8")
        (handlers / name).write_text(text.replace("generated.locker", f"generated.{NAME}"), encoding="utf-8")
    shutil.copy(HERE / "handlers/desk.py", handlers)
    return root


@contextmanager
def importable(root: Path) -> Iterator[System]:
    """The system below a folder, until the end; other tests must not meet it."""
    handlers_package = importlib.import_module("handlers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generated, "__path__", [str(root / "generated"), *generated.__path__])
        patch.setattr(handlers_package, "__path__", [str(root / "handlers"), *handlers_package.__path__])
        system_names.cache_clear()
        yield load_system(NAME)
    system_names.cache_clear()
    for name in [name for name in sys.modules if name.startswith((f"generated.{NAME}", f"handlers.{NAME}"))]:
        del sys.modules[name]


def write_spec(folder: Path) -> None:
    """The spec of the locker under another name, with the additions merged into it."""
    folder.mkdir(parents=True)
    additions = quick_yaml.read((HERE / "additions.yaml").read_text(encoding="utf-8"))
    for file in sorted((SPECS / "locker").glob("*.yaml")):
        data = quick_yaml.read(extend_timeouts(file.read_text(encoding="utf-8")).replace("locker", NAME))
        merged = _merge(data, additions.get(file.stem, {}))
        (folder / file.name).write_text(quick_yaml.write(merged), encoding="utf-8")


def _merge(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            key: _merge(old[key], new[key]) if key in old and key in new else {**old, **new}[key]
            for key in {**old, **new}
        }
    return [*old, *new] if isinstance(old, list) and isinstance(new, list) else new


class Served:
    """A node that runs beside the test, in a thread and on an event loop of its own."""

    def __init__(
        self, system: System, deployment: str, node: str, environ: dict[str, str] | None = None
    ) -> None:
        self.system = system
        self._log = io.StringIO()
        self._names = (deployment, node)
        self._environ = {**ENVIRON, **(environ or {})}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.node: Node

    def __enter__(self) -> Served:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.node.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.node.http_port}"

    @property
    def port(self) -> int:
        assert self.node.http_port is not None
        return self.node.http_port

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.getvalue().splitlines()]

    def run(self, work: Any) -> Any:
        """The outcome of something that has to run where the node does."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _start(self) -> None:
        self.node = Node(self.system, *self._names, self._environ, RealWorld(), self._log)
        await self.node.start(0, 0)
