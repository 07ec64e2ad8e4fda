"""Supervision: restart the nodes and embedded servers of a deployment that die, with backoff."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from runtime.launch.errors import LaunchError, ProcessDied, RestartFailed
from runtime.launch.process import NodeProcess

if TYPE_CHECKING:
    from runtime.launch.deployment import Launched
    from runtime.launch.embedded.server import EmbeddedServer

RESTARTS = 5
"""Max restarts in a row before a process is given up."""
STEADY = 60.0
"""Seconds of life after which the count of restarts in a row is reset."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_POLL = 0.1

Report = Callable[[str], None]


class Child(Protocol):
    """A process of the deployment that can be restarted with the same port, credentials and data."""

    name: str
    is_node: bool

    async def wait_for_death(self) -> ProcessDied:
        """Wait until it ends without having been stopped."""
        ...

    async def start(self) -> str:
        """Start it; return one line for the user."""
        ...

    def was_ready(self) -> bool:
        """Whether it has been ready since its last start."""
        ...


class NodeChild:
    """A node."""

    is_node = True

    def __init__(self, process: NodeProcess) -> None:
        self.name = process.name
        self._process = process

    async def wait_for_death(self) -> ProcessDied:
        return await self._process.wait_for_death()

    async def start(self) -> str:
        try:
            await self._process.start()
        except OSError as error:
            raise RestartFailed(self.name, str(error)) from None
        return self._process.describe()

    def was_ready(self) -> bool:
        return self._process.has_logged_ready()


class ServerChild:
    """An embedded server. Its data outlives it, and its port and password stay with its object."""

    is_node = False

    def __init__(self, name: str, server: EmbeddedServer) -> None:
        self.name = name
        self._server = server

    async def wait_for_death(self) -> ProcessDied:
        while self._server.running:
            await asyncio.sleep(_POLL)
        return ProcessDied(self.name, self._server.exit_code or 0, self._server.last_lines())

    async def start(self) -> str:
        from runtime.launch.embedded.programs import EmbeddedError

        try:
            # From the thread of the event loop: the server stops when the thread that started it ends.
            self._server.spawn()
        except (EmbeddedError, OSError) as error:
            raise RestartFailed(self.name, str(error)) from None
        return self._server.describe(self.name)

    def was_ready(self) -> bool:
        return True


class Supervisor:
    """Keep the processes of a deployment running, each independently.

    A process that dies is restarted with exponential backoff. One that dies
    `restarts + 1` times in a row is given up, and the rest goes on without it. The row ends when a process
    has been ready and has lived for `STEADY` seconds.
    """

    def __init__(self, children: Iterable[Child], restarts: int, report: Report, given_up: list[str]) -> None:
        self._children = list(children)
        self._restarts = restarts
        self._report = report
        self._given_up = given_up

    @classmethod
    def of(cls, deployment: Launched, restarts: int, report: Report, given_up: list[str]) -> Supervisor:
        """Make a supervisor of all processes of a running deployment.

        The names of those that are not restarted any more are added to `given_up`.
        """
        servers = deployment.servers
        return cls(
            (
                *(ServerChild(name, servers[name]) for name in servers.running),
                *(NodeChild(each) for each in deployment.processes.values()),
            ),
            restarts,
            report,
            given_up,
        )

    async def run(self) -> LaunchError:
        """Restart processes that die; returns when every node has been given up."""
        nodes = [each for each in self._children if each.is_node]
        supervising = {each.name: asyncio.create_task(self._supervise(each)) for each in self._children}
        try:
            if not nodes:
                await asyncio.Event().wait()
            await asyncio.gather(*(supervising[each.name] for each in nodes))
        finally:
            for task in supervising.values():
                task.cancel()
            await asyncio.gather(*supervising.values(), return_exceptions=True)
        return LaunchError("Every node has been given up.")

    async def _supervise(self, child: Child) -> None:
        in_a_row, started = 0, time.monotonic()
        died: ProcessDied | RestartFailed = await child.wait_for_death()
        while True:
            if child.was_ready() and time.monotonic() - started >= STEADY:
                in_a_row = 0
            if in_a_row == self._restarts:
                self._given_up.append(child.name)
                self._report(_format_give_up(died, in_a_row))
                return
            pause = min(_FIRST_PAUSE * 2**in_a_row, _LONGEST_PAUSE)
            in_a_row += 1
            self._report(
                f"{child.name}: {died.what}; restart {in_a_row} of at most {self._restarts} "
                f"in a row follows in {pause:g} s"
            )
            await asyncio.sleep(pause)
            started = time.monotonic()
            try:
                self._report(await child.start())
                died = await child.wait_for_death()
            except RestartFailed as failed:
                died = failed


def _format_give_up(died: ProcessDied | RestartFailed, restarts: int) -> str:
    after = f" after {restarts} restart{'s' if restarts > 1 else ''} in a row" if restarts else ""
    said = "".join(f"\n  {line}" for line in died.last_lines)
    return f"{died.name}: {died.what}{after} and is given up; the rest goes on." + (
        f" Its last lines:{said}" if said else " It said nothing."
    )
