"""A whole deployment as local processes, from before the first starts until the last has ended."""

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
from runtime.launch.planning.credentials import Proof, make_proof
from runtime.launch.planning.plan import (
    addresses,
    base_environment,
    check_handlers,
    check_settings,
    endpoints,
    keeps_data,
    name_variables,
    plan,
    urls,
)
from runtime.launch.planning.ports import Ports
from runtime.launch.planning.replicas import with_replicas
from runtime.launch.process import NodeProcess
from runtime.launch.servers import Servers
from runtime.node.systems import find_deployment, token_variable

PATIENCE = 60.0
"""Seconds in which all nodes have to become healthy."""
_STOP_MARGIN = 5.0
"""What a node gets on top of its own grace before it is killed."""

Tell = Callable[[str], None]


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
    tell: Tell | None = None,
) -> Launched:
    """A deployment that `async with` brings up, healthy, and takes down again.

    `name` is `<system>.<deployment>`. Logs go to the folder that is given, or to a temporary one; that is
    removed again unless it is to be kept. `data` is for servers that are started with the deployment and for
    nodes that keep files; without it the data is gone with them. `replicas` says how many processes a node
    has where that is not what the spec says; none leaves it out.
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
        tell: Tell | None,
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
        self._tell: Tell = tell or (lambda _line: None)
        self.servers = Servers(self.system.name, self.deployment, data, self._tell)
        self._buckets = Buckets(self.system, settings)
        self._ports = Ports()
        self._proof: Proof | None = None
        self._cleanup = ExitStack()

    async def __aenter__(self) -> Self:
        try:
            check_handlers(self.system, self.deployment)
            check_settings(self.system, self.deployment, self._settings)
            self._settings = {**self._settings, **await self.servers.start(self._settings)}
            self._buckets = Buckets(self.system, self._settings)
            if "s3" in self.servers.running:
                for line in await self._buckets.set_up():
                    self._tell(line)
            self._prepare()
            for process in self.processes.values():
                await process.start()
                self._tell(process.told())
            await self._all_healthy(self.processes)
        except BaseException as error:
            await self._leave(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave(error)

    @property
    def endpoints(self) -> dict[str, str]:
        """Where each process listens that does: a URL for HTTP, an address for gRPC.

        A process that has both has the address under its name with `.grpc` behind it.
        """
        return endpoints(each.planned for each in self.processes.values()) | self._buckets.endpoints

    @property
    def env(self) -> dict[str, str]:
        """The variables that a client sets to talk to it. No secret of a node is among them."""
        proof = self._prepared()
        found = {"CHARTER_DEPLOYMENT": self.name, **self._buckets.variables}
        if self.deployment.ingress:
            found["CHARTER_ADDRESS"] = ",".join(
                each
                for node in self.deployment.ingress
                for each in addresses(self.deployment, self._ports, node)
            )
        there = self._urls()
        if any(there.values()):
            found["CHARTER_URL"] = ",".join(each for node in there.values() for each in node)
        if len(there) > 1:
            found |= {f"{node.upper()}_URL": ",".join(each) for node, each in there.items() if each}
        started = [each.planned.variables for each in self.processes.values()]
        for name in name_variables(self.deployment):
            if (said := next((each[name] for each in started if each.get(name)), None)) is not None:
                found[name] = said
        if proof.authority_file is not None:
            found["CHARTER_CA_FILE"] = str(proof.authority_file)
        tokens = proof.of_outsiders()
        for name, token in tokens.items():
            found["CHARTER_TOKEN" if len(tokens) == 1 else token_variable(name)] = token
        return found

    def client(self, principal: str | None = None) -> Client:
        """A client that proves itself as a principal, and finds each component where its node listens."""
        tls, token = self._prepared().of_caller(principal)
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
        """Ends a process at once, as a crash would."""
        await self.processes[name].kill()

    async def stop(self, name: str) -> None:
        """Asks a process to end, and waits for it."""
        await self._stop(self.processes[name])

    async def restart(self, name: str) -> None:
        """Starts a process again, which is stopped first if it runs, and waits until it is healthy."""
        process = self.processes[name]
        if process.running:
            await self._stop(process)
        await process.start()
        await self._all_healthy({name: process})

    async def died(self) -> NodeDied:
        """Returns when a process ends that nobody asked to."""
        if not self.processes:
            await asyncio.Event().wait()
        waiting = [asyncio.create_task(each.died()) for each in self.processes.values()]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for task in waiting:
                task.cancel()

    def kill_now(self) -> None:
        """Ends all processes at once."""
        for process in self.processes.values():
            process.kill_now()

    async def _leave(self, error: BaseException | None) -> None:
        """Ends all processes, callers before what they call, and removes what was written for them."""
        if isinstance(error, NodeDied):
            self._tell(error.brief)
        try:
            for wave in stop_order(self.deployment, self.processes.values()):
                await asyncio.gather(*(self._stop(process) for process in wave))
        finally:
            self.kill_now()
            await self.servers.stop()
            self._ports.release()
            self._cleanup.close()

    def _prepare(self) -> None:
        """Everything that can be wrong is found here, before any node is started."""
        self._ports.reserve(self.system, self.deployment, self._settings, auto=self._auto)
        self._proof = make_proof(self.system, self.deployment, tls=self._tls)
        self._cleanup.callback(self._proof.discard)
        data = self._data_folder() if keeps_data(self.system, self.deployment) else None
        planned = plan(self.system, self.deployment, self._settings, self._ports, self._proof, data)
        self.logs = self._log_folder()
        self._tell(f"Logs are in {self.logs}")
        environment = base_environment(self.system)
        for each in planned:
            self.processes[each.name] = NodeProcess(each, environment, self.logs)

    def _data_folder(self) -> Path:
        """Where nodes keep their files."""
        folder = self.servers.data_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LaunchError(f"The data cannot be kept: {error}") from None
        self._tell(f"Data is in {folder}")
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

    def _prepared(self) -> Proof:
        if self._proof is None:
            raise RuntimeError(f"{self.name} has not been brought up")
        return self._proof

    def _urls(self) -> dict[str, list[str]]:
        """Where clients send HTTP requests, by node."""
        return {
            node: urls(self.system, self.deployment, self._ports, self._prepared(), node)
            for node in self.deployment.ingress
        }

    def _addresses_of(self, component: str) -> list[str]:
        return [
            address
            for node in self.deployment.nodes.values()
            if component in node.hosts and node.port_variable is not None
            for address in addresses(self.deployment, self._ports, node.name)
        ]

    async def _all_healthy(self, processes: Mapping[str, NodeProcess]) -> None:
        dying = asyncio.create_task(self.died())
        left = list(processes.values())
        waiting = asyncio.create_task(health.until_healthy(left, self._patience, self._tell))
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
            self._tell(
                f"{process.name}: "
                + ("stopped" if in_time else f"did not end within {grace:g} s of SIGTERM and was killed")
            )
