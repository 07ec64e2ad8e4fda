"""Restart what dies: the nodes and the embedded servers of a deployment that is kept up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from runtime.launch.errors import Died, LaunchError, NotRestarted
from runtime.launch.process import NodeProcess

if TYPE_CHECKING:
    from runtime.embedded.server import EmbeddedServer
    from runtime.launch.deployment import Launched

RESTARTS = 5
"""How often in a row a process is restarted before it is given up."""
STEADY = 60.0
"""Seconds after which a process that became ready is no longer one that dies again and again."""
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_POLL = 0.1

Tell = Callable[[str], None]


class Child(Protocol):
    """A process of the deployment that can be started again as it was: same port, credentials and data."""

    name: str
    is_node: bool

    async def died(self) -> Died:
        """Wait until it ends without having been asked to."""
        ...

    async def start(self) -> str:
        """Start it; one line that says where it is."""
        ...

    def was_ready(self) -> bool:
        """Whether it came as far as being ready since its last start."""
        ...


class NodeChild:
    """A node."""

    is_node = True

    def __init__(self, process: NodeProcess) -> None:
        self.name = process.name
        self._process = process

    async def died(self) -> Died:
        return await self._process.died()

    async def start(self) -> str:
        try:
            await self._process.start()
        except OSError as error:
            raise NotRestarted(self.name, str(error)) from None
        return self._process.told()

    def was_ready(self) -> bool:
        return self._process.said_ready()


class ServerChild:
    """An embedded server. Its data outlives it, and its port and password stay with its object."""

    is_node = False

    def __init__(self, name: str, server: EmbeddedServer) -> None:
        self.name = name
        self._server = server

    async def died(self) -> Died:
        while self._server.running:
            await asyncio.sleep(_POLL)
        return Died(self.name, self._server.exit_code or 0, self._server.last_lines())

    async def start(self) -> str:
        from runtime.embedded.programs import EmbeddedError

        try:
            # From the thread of the event loop: the server stops when the thread that started it ends.
            self._server.spawn()
        except (EmbeddedError, OSError) as error:
            raise NotRestarted(self.name, str(error)) from None
        return self._server.told(self.name)

    def was_ready(self) -> bool:
        return True


class Supervisor:
    """Keeps the processes of a deployment running, each for itself.

    A process that dies is restarted after a pause that doubles from death to death. One that dies
    `restarts + 1` times in a row is given up, and the rest goes on without it. The row ends when a process
    has been ready and has lived for `STEADY` seconds.
    """

    def __init__(self, children: Iterable[Child], restarts: int, tell: Tell, given_up: list[str]) -> None:
        self._children = list(children)
        self._restarts = restarts
        self._tell = tell
        self._given_up = given_up

    @classmethod
    def of(cls, deployment: Launched, restarts: int, tell: Tell, given_up: list[str]) -> Supervisor:
        """A supervisor of all processes of a deployment that is up.

        The names of those that are not restarted any more are added to `given_up`.
        """
        servers = deployment.servers
        return cls(
            (
                *(ServerChild(name, servers[name]) for name in servers.running),
                *(NodeChild(each) for each in deployment.processes.values()),
            ),
            restarts,
            tell,
            given_up,
        )

    async def run(self) -> LaunchError:
        """Restart what dies, for ever; returns when every node has been given up."""
        nodes = [each for each in self._children if each.is_node]
        keeping = {each.name: asyncio.create_task(self._keep(each)) for each in self._children}
        try:
            if not nodes:
                await asyncio.Event().wait()
            await asyncio.gather(*(keeping[each.name] for each in nodes))
        finally:
            for task in keeping.values():
                task.cancel()
            await asyncio.gather(*keeping.values(), return_exceptions=True)
        return LaunchError("Every node has been given up.")

    async def _keep(self, child: Child) -> None:
        in_a_row, started = 0, time.monotonic()
        died: Died | NotRestarted = await child.died()
        while True:
            if child.was_ready() and time.monotonic() - started >= STEADY:
                in_a_row = 0
            if in_a_row == self._restarts:
                self._given_up.append(child.name)
                self._tell(_last_word(died, in_a_row))
                return
            pause = min(_FIRST_PAUSE * 2**in_a_row, _LONGEST_PAUSE)
            in_a_row += 1
            self._tell(
                f"{child.name}: {died.what}; restart {in_a_row} of at most {self._restarts} "
                f"in a row follows in {pause:g} s"
            )
            await asyncio.sleep(pause)
            started = time.monotonic()
            try:
                self._tell(await child.start())
                died = await child.died()
            except NotRestarted as failed:
                died = failed


def _last_word(died: Died | NotRestarted, restarts: int) -> str:
    after = f" after {restarts} restart{'s' if restarts > 1 else ''} in a row" if restarts else ""
    said = "".join(f"\n  {line}" for line in died.last_lines)
    return f"{died.name}: {died.what}{after} and is given up; the rest goes on." + (
        f" Its last lines:{said}" if said else " It said nothing."
    )
