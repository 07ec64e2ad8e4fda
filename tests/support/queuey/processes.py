"""Queue, store and runners as processes, each of which a test may kill."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from handlers.queuey.samples import binary
from tests.support import forked_nodes
from tests.support.eventually import wait_until
from tests.support.log_events import read_events
from tests.support.plain_http import NO_TLS

Seen = TypeVar("Seen")
PATIENCE_S = 90.0


class Process:
    """One node. It keeps its ports when it is started again."""

    def __init__(
        self, folder: Path, node: str, name: str, settings: dict[str, str], deployment: str = "local"
    ) -> None:
        self._log = folder / f"{name}.log"
        self._node = node
        self._deployment = deployment
        self._settings = {"MDNS_ENABLED": "false", **settings}
        self._start = 0
        self.process: forked_nodes.Process | None = None
        self.ports: dict[str, int] = {}

    def begin(self) -> Self:
        """Start it; return before it is ready."""
        self._start = self._log.stat().st_size if self._log.exists() else 0
        environ = {**os.environ, **self._settings}
        name = f"queuey.{self._deployment}.{self._node}"
        self.process = forked_nodes.start("queuey", "runtime.serve", [name], environ, self._log, self._log)
        return self

    def wait(self) -> Self:
        """Wait until it is ready, and read where it listens."""
        ready = wait_until(lambda: self.events("service_ready"))[-1]
        self.ports = {name: ready[name] for name in ("port", "http_port") if ready.get(name)}
        variables = {
            "queue": {"PORT": "http_port", "GRPC_PORT": "port"},
            "store": {"STORE_PORT": "http_port"},
            "runner": {},
        }
        for variable, port in variables[self._node].items():
            self._settings[variable] = str(self.ports[port])
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['http_port']}"

    def events(self, name: str) -> list[dict[str, Any]]:
        """The lines of an event since it was started last."""
        return read_events(self._log, self._start, name)

    def kill(self) -> None:
        """Kill it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> int:
        """Ask it to end; return its exit code."""
        self.signal(signal.SIGTERM)
        assert self.process is not None
        return self.process.wait(PATIENCE_S)


class Works:
    """A queue, a store, and as many runners as a test wants."""

    def __init__(self, folder: Path, token: str = "", **settings: str) -> None:
        self.folder = folder
        self._settings = settings
        self.queue = Process(folder, "queue", "queue", {"DB_PATH": str(folder / "q.db"), **settings})
        self.store = Process(folder, "store", "store", {"STORE_PATH": str(folder / "blobs"), **settings})
        self.runners: list[Process] = []
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(timeout=30, headers=headers, verify=NO_TLS)

    def __enter__(self) -> Self:
        self.queue.begin()
        self.store.begin()
        self.queue.wait()
        self.store.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()
        self.dismiss()
        for each in (self.store, self.queue):
            each.kill()

    def dismiss(self) -> None:
        """Kill all runners."""
        while self.runners:
            self.runners.pop().kill()

    def runner(self, name: str, **settings: str) -> Process:
        """One more runner, with all addresses unless it shall discover them."""
        places = {
            "QUEUE_ADDR": f"127.0.0.1:{self.queue.ports['port']}",
            "STORE_URL": self.store.url,
            "RUNNER_ID": name,
        }
        runner = Process(self.folder, "runner", name, {**places, **self._settings, **settings})
        self.runners.append(runner)
        return runner.begin()

    def put(self, content: bytes) -> str:
        answer = self._http.post(f"{self.store.url}/blobs", content=content)
        assert answer.status_code in (200, 201), answer.text
        address: str = answer.json()["address"]
        return address

    def content(self, address: str) -> bytes:
        answer = self._http.get(f"{self.store.url}/blobs/{address}")
        assert answer.status_code == 200, answer.text
        return answer.content

    def submit(self, sample: str, input_: bytes | None = None) -> str:
        """Submit one of the samples."""
        return self.create_job(self.put(binary(sample)), None if input_ is None else self.put(input_))

    def create_job(self, binary_addr: str, input_addr: str | None = None) -> str:
        body = {"binary_addr": binary_addr, "input_addr": input_addr}
        answer = self._http.post(f"{self.queue.url}/jobs/create", json=body)
        assert answer.status_code == 200, answer.text
        job_id: str = answer.json()["job_id"]
        return job_id

    def job(self, job_id: str, path: str = "") -> dict[str, Any]:
        answer = self._http.get(f"{self.queue.url}/jobs/{job_id}{path}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def count(self) -> int:
        """How many jobs the queue has."""
        return sum(self._http.get(f"{self.queue.url}/counts").json().values())

    def cancel(self, job_id: str) -> dict[str, Any]:
        answer = self._http.post(f"{self.queue.url}/jobs/{job_id}/cancel")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def wait_for_status(self, job_id: str, *statuses: str) -> dict[str, Any]:
        return wait_until(lambda: self.job(job_id), wanted=lambda job: job["status"] in statuses)

    def wait_until_ended(self, job_id: str) -> dict[str, Any]:
        return self.wait_for_status(job_id, "completed", "failed")

    def read_reason(self, job_id: str) -> str:
        """Why a job failed."""
        assert self.wait_until_ended(job_id)["status"] == "failed"
        return str(self.job(job_id, "/report")["reason"])
