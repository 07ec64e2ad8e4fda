"""A deployment as local processes, from before the first starts until the last has ended."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from runtime.client import Client
from runtime.launch import health
from runtime.launch.buckets import Buckets
from runtime.launch.errors import LaunchError, NodeDied
from runtime.launch.order import stop_order
from runtime.launch.planning.credentials import RunCredentials, make_credentials
from runtime.launch.planning.plan import (
    base_environment,
    check_handlers,
    check_settings,
    find_addresses,
    find_name_variables,
    find_urls,
    format_endpoints,
    has_data_files,
    plan,
)
from runtime.launch.planning.ports import ReservedPorts
from runtime.launch.planning.replicas import with_replicas
from runtime.launch.process import NodeProcess
from runtime.launch.servers import Servers
from runtime.node.systems import find_deployment, token_variable

PATIENCE = 60.0
"""Timeout in seconds for all nodes to become healthy."""
_STOP_MARGIN = 5.0
"""Seconds on top of a node's own shutdown grace before it is killed."""

Report = Callable[[str], None]


def launched(
    name: str,
    *,
    ports: Literal["spec", "auto"] = "spec",
    tls: bool = True,
    settings: Mapping[str, str] | None = None,
    logs: Path | None = None,
    keep_logs: bool = False,
    data: Path | None = None,
    replicas: Mapping[str, int] | None = None,
    patience: float = PATIENCE,
    tell: Report | None = None,
) -> Launched:
    """Make a deployment that `async with` brings up, healthy, and takes down again.

    `name` is `<system>.<deployment>`. Logs go to the folder that is given, or to a temporary one; that is
    removed again unless it is to be kept. `data` is for servers that are started with the deployment and for
    nodes that keep files; without it the data is removed with them. `replicas` are numbers of processes of
    nodes that differ from the spec; 0 leaves a node out.
    """
    return Launched(
        name,
        auto=ports == "auto",
        tls=tls,
        settings=settings or {},
        logs=logs,
        keep_logs=keep_logs,
        data=data,
        replicas=replicas or {},
        patience=patience,
        tell=tell,
    )


class Launched:
    """The processes of a deployment by name; a replica's name is its node's with its index."""

    def __init__(
        self,
        name: str,
        *,
        auto: bool,
        tls: bool,
        settings: Mapping[str, str],
        logs: Path | None,
        keep_logs: bool,
        data: Path | None,
        replicas: Mapping[str, int],
        patience: float,
        tell: Report | None,
    ) -> None:
        self.name = name
        self.system, declared = find_deployment(name)
        self.deployment = with_replicas(declared, replicas)
        self.processes: dict[str, NodeProcess] = {}
        self.logs = logs
        self._keep_logs = keep_logs
        self._settings = settings
        self._auto = auto
        self._tls = tls
        self._patience = patience
        self._report: Report = tell or (lambda _line: None)
        self.servers = Servers(self.system, self.deployment, data, self._report)
        self._buckets = Buckets(self.system, settings)
        self._ports = ReservedPorts()
        self._credentials: RunCredentials | None = None
        self._cleanup = ExitStack()

    async def __aenter__(self) -> Self:
        try:
            check_handlers(self.system, self.deployment)
            check_settings(self.system, self.deployment, self._settings)
            self._settings = {**self._settings, **await self.servers.start(self._settings)}
            self._buckets = Buckets(self.system, self._settings)
            if "s3" in self.servers.running:
                for line in await self._buckets.set_up():
                    self._report(line)
            self._prepare()
            for process in self.processes.values():
                await process.start()
                self._report(process.describe())
            await self._wait_until_healthy(self.processes)
        except BaseException as error:
            await self._shut_down(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._shut_down(error)

    @property
    def endpoints(self) -> dict[str, str]:
        """The listeners of all processes: a URL for HTTP, an address for gRPC.

        A process that has both has the address under its name with `.grpc` behind it.
        """
        return format_endpoints(each.plan for each in self.processes.values()) | self._buckets.endpoints

    @property
    def env(self) -> dict[str, str]:
        """The variables for a client of the deployment. No secret of a node is among them."""
        credentials = self._require_credentials()
        found = {"CHARTER_DEPLOYMENT": self.name, **self._buckets.variables}
        if self.deployment.ingress:
            found["CHARTER_ADDRESS"] = ",".join(
                each
                for node in self.deployment.ingress
                for each in find_addresses(self.deployment, self._ports, node)
            )
        there = self._urls()
        if any(there.values()):
            found["CHARTER_URL"] = ",".join(each for node in there.values() for each in node)
        if len(there) > 1:
            found |= {f"{node.upper()}_URL": ",".join(each) for node, each in there.items() if each}
        started = [each.plan.variables for each in self.processes.values()]
        for name in find_name_variables(self.deployment):
            if (said := next((each[name] for each in started if each.get(name)), None)) is not None:
                found[name] = said
        if credentials.authority_file is not None:
            found["CHARTER_CA_FILE"] = str(credentials.authority_file)
        tokens = credentials.external_tokens()
        for name, token in tokens.items():
            found["CHARTER_TOKEN" if len(tokens) == 1 else token_variable(name)] = token
        return found

    def client(self, principal: str | None = None) -> Client:
        """Make a client that authenticates as a principal, and knows the addresses of all components."""
        tls, token = self._require_credentials().for_caller(principal)
        return Client(
            self.system,
            self._addresses_of,
            principal=principal,
            tls=tls,
            token=token,
            urls={node: each[0] for node, each in self._urls().items() if each},
            variables=self.env,
        )

    async def kill(self, name: str) -> None:
        """Kill a process, as a crash would."""
        await self.processes[name].kill()

    async def stop(self, name: str) -> None:
        """Stop a process, and wait for its end."""
        await self._stop(self.processes[name])

    async def restart(self, name: str) -> None:
        """Restart a process, which is stopped first if it runs, and wait until it is healthy."""
        process = self.processes[name]
        if process.running:
            await self._stop(process)
        await process.start()
        await self._wait_until_healthy({name: process})

    async def wait_for_death(self) -> NodeDied:
        """Wait until a process ends without having been stopped."""
        if not self.processes:
            await asyncio.Event().wait()
        waiting = [asyncio.create_task(each.wait_for_death()) for each in self.processes.values()]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for task in waiting:
                task.cancel()

    def kill_now(self) -> None:
        """Kill all processes."""
        for process in self.processes.values():
            process.kill_now()

    async def _shut_down(self, error: BaseException | None) -> None:
        """Stop all processes, callers before their upstreams, and remove temporary files."""
        if isinstance(error, NodeDied):
            self._report(error.brief)
        try:
            for wave in stop_order(self.deployment, self.processes.values()):
                await asyncio.gather(*(self._stop(process) for process in wave))
        finally:
            self.kill_now()
            await self.servers.stop()
            self._ports.release()
            self._cleanup.close()

    def _prepare(self) -> None:
        """Reserve ports, make credentials and plan the processes; errors show before any node is started."""
        self._ports.reserve(self.system, self.deployment, self._settings, auto=self._auto)
        self._credentials = make_credentials(self.system, self.deployment, tls=self._tls)
        self._cleanup.callback(self._credentials.discard)
        data = self._data_folder() if has_data_files(self.system, self.deployment) else None
        planned = plan(self.system, self.deployment, self._settings, self._ports, self._credentials, data)
        self.logs = self._log_folder()
        self._report(f"Logs are in {self.logs}")
        environment = base_environment(self.system)
        for each in planned:
            self.processes[each.name] = NodeProcess(each, environment, self.logs)

    def _data_folder(self) -> Path:
        """Create the folder for files of nodes."""
        folder = self.servers.data_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LaunchError(f"The data cannot be kept: {error}") from None
        self._report(f"Data is in {folder}")
        return folder

    def _log_folder(self) -> Path:
        if self.logs is None:
            self.logs = Path(tempfile.mkdtemp(prefix=f"charter-{self.name}-"))
            if not self._keep_logs:
                self._cleanup.callback(shutil.rmtree, self.logs)
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LaunchError(f"The logs cannot be written: {error}") from None
        return self.logs

    def _require_credentials(self) -> RunCredentials:
        if self._credentials is None:
            raise RuntimeError(f"{self.name} has not been brought up")
        return self._credentials

    def _urls(self) -> dict[str, list[str]]:
        """Find the HTTP URLs for clients, by node."""
        return {
            node: find_urls(self.system, self.deployment, self._ports, self._require_credentials(), node)
            for node in self.deployment.ingress
        }

    def _addresses_of(self, component: str) -> list[str]:
        return [
            address
            for node in self.deployment.nodes.values()
            if component in node.hosts and node.port_variable is not None
            for address in find_addresses(self.deployment, self._ports, node.name)
        ]

    async def _wait_until_healthy(self, processes: Mapping[str, NodeProcess]) -> None:
        dying = asyncio.create_task(self.wait_for_death())
        left = list(processes.values())
        waiting = asyncio.create_task(health.wait_until_healthy(left, self._patience, self._report))
        try:
            await asyncio.wait({dying, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if dying.done():
                raise dying.result()
            await waiting
        finally:
            dying.cancel()
            waiting.cancel()

    async def _stop(self, process: NodeProcess) -> None:
        if process.running:
            grace = self.system.shutdown_grace_ms / 1000 + _STOP_MARGIN
            in_time = await process.stop(grace)
            self._report(
                f"{process.name}: "
                + ("stopped" if in_time else f"did not end within {grace:g} s of SIGTERM and was killed")
            )
