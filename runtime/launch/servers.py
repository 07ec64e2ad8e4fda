"""Embedded servers of a deployment: started before its nodes, and stopped after them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.launch.errors import LaunchError
from runtime.model.system import Deployment, System

if TYPE_CHECKING:
    from runtime.launch.embedded.server import EmbeddedServer

Report = Callable[[str], None]


class Servers:
    """The embedded servers of one run. Without a data folder, a temporary one is removed after the run."""

    def __init__(self, system: System, deployment: Deployment, folder: Path | None, report: Report) -> None:
        self._system = system
        self._deployment = deployment
        self._folder = folder
        self._report = report
        self._running: dict[str, EmbeddedServer] = {}
        self._temporary: Path | None = None

    def __getitem__(self, name: str) -> EmbeddedServer:
        """Return a server that was started for this run, by its name in the deployment."""
        return self._running[name]

    @property
    def running(self) -> list[str]:
        """The names of the servers that were started for this run."""
        return [*self._running]

    async def start(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Start the servers whose variables are unset; return the variables with their URLs."""
        from runtime.launch.embedded.kinds import KINDS
        from runtime.launch.embedded.programs import EmbeddedError

        found: dict[str, str] = {}
        for name, variable in self._deployment.servers.items():
            if settings.get(variable):
                continue
            server = KINDS[name](self.data_folder() / name)
            try:
                await asyncio.to_thread(server.prepare)
                # From the thread of the event loop: the server stops when the thread that started it ends.
                server.spawn()
                self._running[name] = server
                await asyncio.to_thread(server.wait)
                url = await server.provision(self._system, self._deployment.engine)
            except EmbeddedError as error:
                raise LaunchError(f"{error}\nSet {variable} to use a server that runs already.") from None
            self._report(server.describe(name))
            found |= {variable: url, **server.variables}
        return found

    async def stop(self) -> None:
        """Stop all servers, and remove temporary data."""
        for name, server in self._running.items():
            await asyncio.to_thread(server.stop)
            self._report(f"{name}: stopped")
        self._running.clear()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def data_folder(self) -> Path:
        """Return the data folder of this run, for servers and for nodes with files of their own."""
        if self._folder is not None:
            return self._folder
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="charter-data-"))
            # Where we are root, the servers run as another user, who needs to traverse it.
            self._temporary.chmod(0o711)
        return self._temporary
