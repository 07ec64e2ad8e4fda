"""Proof of a deployment without an ingress, through its store, which is what its users call."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable

from codegen.emit.deploy.servers import SERVERS
from runtime.client import Client
from runtime.launch.buckets import Buckets
from scripts.compose_stack import Stack


class StoreProof:
    """Proof of containers that no client calls."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        nodes = stack.deployment.nodes.values()
        self._started = [stack.list_services(each.name) for each in nodes if not each.on_demand]
        self._stores = [SERVERS[each].host for each in stack.deployment.servers]
        self._demo = importlib.import_module(f"handlers.{stack.system.name}.demo")

    def prove(self) -> None:
        """Run all checks, with running containers."""
        self.run_demo()
        self.check_denial()
        for services in self._started:
            if len(services) > 1:
                self.check_replica_loss(services)
        for store in self._stores:
            self.check_store_loss(store)
        for services in self._started:
            self._stack.kill(services[0])

    def run_demo(self) -> None:
        """Run the system's own demo through the published port of the store, as its users do."""
        self._stack.print_line("the demo, through the published port of the store")

        async def run() -> int:
            async with self._create_client() as client:
                code: int = await self._demo.demo(client, self._stack.console)
                return code

        if asyncio.run(run()) != 0:
            raise SystemExit("The demo failed.")

    def check_denial(self) -> None:
        """Check that a container of each node with a wrong password logs one line, and exits."""
        wrong = {SERVERS[each].password: "wrong" for each in self._stack.deployment.servers}
        for service, *_ in self._started:
            done = self._stack.try_run("run", "--rm", "--no-deps", "-T", service, changes=wrong)
            self._stack.print_line(f"{service} with a wrong password: {done.out.strip()}")
            if done.code != 1 or len(done.out.splitlines()) != 1:
                raise SystemExit(f"{service} was not denied: exit code {done.code}.\n{done.out}{done.err}")

    def check_replica_loss(self, services: list[str]) -> None:
        """Kill the one container that runs a job: another one has to complete it."""
        first, *others = services
        self._stack.run("stop", *others)

        async def interrupt_demo() -> None:
            self._stack.print_line(f"kill of {first} in the middle of its work; {', '.join(others)} instead")
            await asyncio.to_thread(self._stack.run, "kill", first)
            await asyncio.to_thread(self._stack.run, "start", *others)

        self._run_interrupted_demo(interrupt_demo, least_runs=2)
        self._restart(first)

    def check_store_loss(self, store: str) -> None:
        """Kill the store while a job runs, and restart it: nothing may be lost."""

        async def interrupt_demo() -> None:
            self._stack.print_line(f"kill of {store}, and back again")
            await asyncio.to_thread(self._stack.run, "kill", store)
            await asyncio.to_thread(self._restart, store)

        self._run_interrupted_demo(interrupt_demo, least_runs=1)

    def _run_interrupted_demo(self, interrupt: Callable[[], Awaitable[None]], *, least_runs: int) -> None:
        async def run() -> int:
            async with self._create_client() as client:
                code: int = await self._demo.interrupted(
                    client, self._stack.console, interrupt, least_runs=least_runs
                )
                return code

        if asyncio.run(run()) != 0:
            raise SystemExit("Not every job that was started has ended.")

    def _restart(self, service: str) -> None:
        self._stack.run("start", service)
        self._stack.wait_until(
            lambda: self._stack.read_health(service) == "healthy",
            lambda: f"{service} did not come back: {self._stack.read_health(service)}",
        )

    def _create_client(self) -> Client:
        """Create a client that calls no node, with the addresses and credentials of the stores."""
        addresses: dict[str, str] = {}
        for name, variable in self._stack.deployment.servers.items():
            (port,) = self._stack.list_published_ports(str(SERVERS[name].port), SERVERS[name].host)
            addresses[variable] = f"http://127.0.0.1:{port}"
        variables = Buckets(self._stack.system, {**self._stack.environ, **addresses}).variables
        return Client(self._stack.system, lambda _component: (), variables=variables)
