"""Status view of a running deployment: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import asyncio
import json
import shlex
import sys

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from runtime.launch.deployment import Launched
from runtime.launch.health import CallRate, is_healthy

_EVERY = 1.0


class StatusView:
    """Show the status of a deployment on standard error. Only the ready line goes to standard output."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)

    def print_line(self, line: str) -> None:
        """Print a line, above the table if there is one."""
        self._console.print(line, soft_wrap=True, markup=False)

    def print_ready(self, deployment: Launched) -> None:
        """Print that a deployment is up: one machine-readable line."""
        status = {"deployment": deployment.name, "endpoints": deployment.endpoints, "env": deployment.env}
        print(f"ready {json.dumps(status)}", flush=True)
        if self._console.is_terminal:
            variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in deployment.env.items())
            self.print_line(f"For a client in another terminal:\n  export {variables}")

    async def watch(self, deployment: Launched) -> None:
        """Refresh the table, or print each change of health, until cancelled."""
        if self._console.is_terminal:
            await self._refresh_table(deployment)
        else:
            await self._print_changes(deployment)

    async def _refresh_table(self, deployment: Launched) -> None:
        rates = {name: CallRate(process) for name, process in deployment.processes.items()}
        # Standard output may be a pipe; nothing of it must end up in the table.
        with Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty()
        ) as live:
            while True:
                health = await asyncio.gather(*(is_healthy(each) for each in deployment.processes.values()))
                calls = await asyncio.gather(*(rate.sample() for rate in rates.values()))
                live.update(_table(deployment, health, calls), refresh=True)
                await asyncio.sleep(_EVERY)

    async def _print_changes(self, deployment: Launched) -> None:
        known = dict.fromkeys(deployment.processes, True)
        while True:
            for name, process in deployment.processes.items():
                if (healthy := await is_healthy(process)) != known[name]:
                    known[name] = healthy
                    self.print_line(f"{name}: {'healthy' if healthy else 'unhealthy'}")
            await asyncio.sleep(_EVERY)


def _table(deployment: Launched, health: list[bool], calls: list[float | None]) -> Group:
    table = Table(title=deployment.name, title_justify="left", box=None, pad_edge=False)
    for heading, justify in (("node", "left"), ("pid", "right"), ("health", "left"), ("calls/s", "right")):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    table.add_column("listens on")
    for process, healthy, rate in zip(deployment.processes.values(), health, calls, strict=True):
        table.add_row(
            process.name,
            str(process.pid or "-"),
            Text("healthy", "green") if healthy else Text("unhealthy", "red"),
            "-" if rate is None else f"{rate:,.1f}",
            ", ".join(filter(None, (process.plan.url, process.plan.address))) or "-",
        )
    return Group(table, Text(f"Logs are in {deployment.logs}. Ctrl-C stops everything.", "dim"))
