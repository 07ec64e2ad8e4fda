"""The proof of a deployment without an ingress: whoever uses it goes to its store, and so does the proof."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable

from codegen.emit.deploy.servers import SERVERS
from runtime.client import Client
from runtime.launch.buckets import Buckets
from scripts.compose_stack import Stack


class StoreProof:
    """What has to hold for containers that nobody calls."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        nodes = stack.deployment.nodes.values()
        self._started = [stack.services(each.name) for each in nodes if not each.on_demand]
        self._stores = [SERVERS[each].host for each in stack.deployment.servers]
        self._shown = importlib.import_module(f"handlers.{stack.system.name}.demo")

    def prove(self) -> None:
        """All of it, with containers that are up."""
        self.demo()
        self.denial()
        for services in self._started:
            if len(services) > 1:
                self.lose_a_replica(services)
        for store in self._stores:
            self.lose_the_store(store)
        for services in self._started:
            self._stack.kill(services[0])

    def demo(self) -> None:
        """Run the system's own demo, as whoever uses it does it: through the published port of the store."""
        self._stack.say("the demo, through the published port of the store")

        async def run() -> int:
            async with self._client() as client:
                code: int = await self._shown.demo(client, self._stack.console)
                return code

        if asyncio.run(run()) != 0:
            raise SystemExit("The demo did not come out as expected.")

    def denial(self) -> None:
        """Start a container of each node with a wrong password: it says so in one line, and ends."""
        wrong = {SERVERS[each].password: "wrong" for each in self._stack.deployment.servers}
        for service, *_ in self._started:
            done = self._stack.tried("run", "--rm", "--no-deps", "-T", service, changes=wrong)
            self._stack.say(f"{service} with a wrong password: {done.out.strip()}")
            if done.code != 1 or len(done.out.splitlines()) != 1:
                raise SystemExit(f"{service} was not denied: exit code {done.code}.\n{done.out}{done.err}")

    def lose_a_replica(self, services: list[str]) -> None:
        """Kill the one container that works on something: another one has to bring it to an end."""
        first, *others = services
        self._stack.run("stop", *others)

        async def lose() -> None:
            self._stack.say(f"kill of {first} in the middle of its work; {', '.join(others)} instead")
            await asyncio.to_thread(self._stack.run, "kill", first)
            await asyncio.to_thread(self._stack.run, "start", *others)

        self._interrupted(lose, least_runs=2)
        self._come_back(first)

    def lose_the_store(self, store: str) -> None:
        """Kill the store while something is worked on, and brings it back: nothing may be missing."""

        async def lose() -> None:
            self._stack.say(f"kill of {store}, and back again")
            await asyncio.to_thread(self._stack.run, "kill", store)
            await asyncio.to_thread(self._come_back, store)

        self._interrupted(lose, least_runs=1)

    def _interrupted(self, interrupt: Callable[[], Awaitable[None]], *, least_runs: int) -> None:
        async def run() -> int:
            async with self._client() as client:
                code: int = await self._shown.interrupted(
                    client, self._stack.console, interrupt, least_runs=least_runs
                )
                return code

        if asyncio.run(run()) != 0:
            raise SystemExit("Not all that was begun has come to its end.")

    def _come_back(self, service: str) -> None:
        self._stack.run("start", service)
        self._stack.wait_until(
            lambda: self._stack.health(service) == "healthy",
            lambda: f"{service} did not come back: {self._stack.health(service)}",
        )

    def _client(self) -> Client:
        """A client that calls nobody, and knows where the stores are and how to open them."""
        places: dict[str, str] = {}
        for name, variable in self._stack.deployment.servers.items():
            (port,) = self._stack.published(str(SERVERS[name].port), SERVERS[name].host)
            places[variable] = f"http://127.0.0.1:{port}"
        variables = Buckets(self._stack.system, {**self._stack.environ, **places}).variables
        return Client(self._stack.system, lambda _component: (), variables=variables)
