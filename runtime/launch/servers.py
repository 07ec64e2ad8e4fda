"""Servers that a deployment needs and that nobody has named: started with it, and stopped after it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.launch.errors import LaunchError
from runtime.model.system import Deployment

if TYPE_CHECKING:
    from runtime.embedded.server import EmbeddedServer

Tell = Callable[[str], None]


class Servers:
    """The servers of one run. Without a folder for their data it is made for the run and removed after it."""

    def __init__(self, system: str, deployment: Deployment, folder: Path | None, tell: Tell) -> None:
        self._system = system
        self._deployment = deployment
        self._folder = folder
        self._tell = tell
        self._running: dict[str, EmbeddedServer] = {}
        self._temporary: Path | None = None

    def __getitem__(self, name: str) -> EmbeddedServer:
        """A server that was started for this run, by the name that the deployment has for its kind."""
        return self._running[name]

    @property
    def running(self) -> list[str]:
        """The names of those that were started for this run."""
        return [*self._running]

    async def start(self, settings: Mapping[str, str]) -> dict[str, str]:
        """Starts what no variable names; the variables that say where they are."""
        from runtime.embedded.kinds import KINDS
        from runtime.embedded.programs import EmbeddedError

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
                url = await server.admit(self._system)
            except EmbeddedError as error:
                raise LaunchError(f"{error}\nSet {variable} to use a server that runs already.") from None
            self._tell(server.told(name))
            found |= {variable: url, **server.variables}
        return found

    async def stop(self) -> None:
        """Stops them in order, and removes data that was only for this run."""
        for name, server in self._running.items():
            await asyncio.to_thread(server.stop)
            self._tell(f"{name}: stopped")
        self._running.clear()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def data_folder(self) -> Path:
        """Where the data of this run goes, that of nodes which keep some themselves as well."""
        if self._folder is not None:
            return self._folder
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="charter-data-"))
            # The servers run as another user where we are root, who has to pass through it.
            self._temporary.chmod(0o711)
        return self._temporary
