"""`python -m runtime.launch up|demo <system>.<deployment>`: a deployment on this machine."""

from __future__ import annotations

import asyncio
import importlib
import os
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import click
from rich.console import Console

from runtime.launch.deployment import PATIENCE, Launched, launched
from runtime.launch.embedded.programs import data_folder
from runtime.launch.errors import LaunchError
from runtime.launch.planning.plan import list_settable
from runtime.launch.planning.replicas import WrongReplicas, expand_replica_options
from runtime.launch.status_view import StatusView
from runtime.launch.supervision import RESTARTS, Supervisor
from runtime.node.deployment_argument import ChosenDeployment, DeploymentCommand, deployment_argument
from runtime.node.handler_modules import HandlersRefused, add_handlers

Work = Callable[[Launched], Awaitable[int]]
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@click.group()
def command() -> None:
    """Run a deployment on this machine, each node as a process."""


def launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that `up` and `demo` share."""
    for option in reversed(
        (
            click.option(
                "--tls",
                type=click.Choice(["on", "off"]),
                default="on",
                show_default=True,
                help="on: mutual TLS with certificates of this run; off: a random token for each principal.",
            ),
            click.option(
                "--set",
                "settings",
                multiple=True,
                metavar="NAME=VALUE",
                callback=_parse_pairs,
                help="A variable for every node that reads it; can be given again.",
            ),
            click.option(
                "--replicas",
                multiple=True,
                metavar="NODE=COUNT",
                callback=_parse_counts,
                help="How many processes a node has, 0 for none; --<node>s COUNT says the same.",
            ),
            click.option(
                "--handlers",
                metavar="MODULE",
                help="Module with the job functions of the workers, or module:registry; several with commas.",
            ),
            click.option(
                "--logs",
                type=click.Path(file_okay=False, path_type=Path),
                help="Folder for the logs, a file for each node; a new temporary one if not given.",
            ),
            click.option(
                "--patience",
                type=click.FloatRange(min=0, min_open=True),
                default=PATIENCE,
                show_default=True,
                metavar="SECONDS",
                help="How long the nodes may take until all are healthy.",
            ),
        )
    ):
        function = option(function)
    return deployment_argument(function)


def _parse_pairs(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, str]:
    for text in given:
        if not text.partition("=")[0] or "=" not in text:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE.")
    return {name: value for name, _, value in (text.partition("=") for text in given)}


def _parse_counts(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> dict[str, int]:
    found = _parse_pairs(context, parameter, given)
    if wrong := [f"{name}={count}" for name, count in found.items() if not count.isdecimal()]:
        raise click.BadParameter(f"{wrong[0]!r} is not NODE=COUNT.")
    return {name: int(count) for name, count in found.items()}


class LaunchCommand(DeploymentCommand):
    """A command that takes `--<node>s 2` for `--replicas <node>=2`, for every node of the deployment."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, expand_replica_options(args))


@command.command(cls=LaunchCommand)
@click.option(
    "--ports",
    type=click.Choice(["spec", "auto"]),
    default="spec",
    show_default=True,
    help="spec: the ports of the spec, replicas on consecutive ones; auto: ports that are free.",
)
@click.option(
    "--restarts",
    type=click.IntRange(min=0),
    default=RESTARTS,
    show_default=True,
    metavar="COUNT",
    help="How often in a row a node or an embedded server that dies is restarted before it is given up.",
)
@launch_options
def up(
    chosen: ChosenDeployment,
    ports: Literal["spec", "auto"],
    restarts: int,
    tls: str,
    settings: dict[str, str],
    replicas: dict[str, int],
    handlers: str | None,
    logs: Path | None,
    patience: float,
) -> None:
    """Bring a deployment up and keep it up until Ctrl-C.

    What dies is restarted with backoff, on the same port and with the same credentials and data. What dies
    again and again is given up, and the rest goes on. The exit code is 0 after Ctrl-C, and 1 if anything was
    given up or something could not start at the beginning.

    Variables that the nodes read and that are set in the environment hold here too, as they do for compose.
    """
    view = StatusView()
    found = {name: os.environ[name] for name in list_settable(*chosen) if os.environ.get(name)}
    if taken := [name for name in found if name not in settings]:
        view.print_line(f"Taken from the environment: {', '.join(taken)}")

    async def work(deployment: Launched) -> int:
        view.print_ready(deployment)
        await view.watch(deployment)
        return 0

    deployment = _make_deployment(
        chosen,
        replicas,
        ports=ports,
        tls=tls == "on",
        settings=_resolve_handlers(chosen, {**found, **settings}, handlers),
        logs=logs,
        keep_logs=True,
        data=data_folder(str(chosen)),
        patience=patience,
        tell=view.print_line,
    )
    sys.exit(asyncio.run(supervise(deployment, work, view, restarts=restarts)))


@command.command(cls=LaunchCommand)
@launch_options
def demo(
    chosen: ChosenDeployment,
    tls: str,
    settings: dict[str, str],
    replicas: dict[str, int],
    handlers: str | None,
    logs: Path | None,
    patience: float,
) -> None:
    """Bring a deployment up on free ports, show what its system does, and take it down."""
    console = Console()
    try:
        shown = importlib.import_module(f"handlers.{chosen.system.name}.demo")
    except ModuleNotFoundError:
        raise click.UsageError(
            f"{chosen.system.name} has no demo: handlers/{chosen.system.name}/demo.py would be it."
        ) from None

    async def work(deployment: Launched) -> int:
        console.print(f"{deployment.name} is up: {len(deployment.processes)} processes", highlight=False)
        async with deployment.client(getattr(shown, "PRINCIPAL", None)) as client:
            outcome: int = await shown.demo(client, console)
        return outcome

    deployment = _make_deployment(
        chosen,
        replicas,
        ports="auto",
        tls=tls == "on",
        settings=_resolve_handlers(chosen, settings, handlers),
        logs=logs,
        keep_logs=True,
        patience=patience,
    )
    code = asyncio.run(supervise(deployment, work, StatusView()))
    if deployment.logs is not None and code != 0:
        console.print(f"Logs are in {deployment.logs}", highlight=False, soft_wrap=True)
    elif deployment.logs is not None and logs is None:
        shutil.rmtree(deployment.logs)
    sys.exit(code)


def _resolve_handlers(
    chosen: ChosenDeployment, settings: dict[str, str], handlers: str | None
) -> dict[str, str]:
    try:
        return add_handlers(settings, list_settable(*chosen), handlers, str(chosen))
    except HandlersRefused as error:
        raise click.UsageError(str(error)) from None


def _make_deployment(chosen: ChosenDeployment, replicas: dict[str, int], **options: Any) -> Launched:
    try:
        return launched(str(chosen), replicas=replicas, **options)
    except WrongReplicas as error:
        raise click.UsageError(str(error)) from None


async def supervise(
    deployment: Launched, work: Work, view: StatusView, *, restarts: int | None = None
) -> int:
    """Bring a deployment up, run `work` and take it down, whatever happens; return the exit code.

    The first signal stops everything in order, a second one kills. Where no number of restarts is given, a
    node that dies stops the deployment.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    signals = 0
    given_up: list[str] = []

    def on_signal() -> None:
        nonlocal signals
        signals += 1
        if signals == 1 and task is not None:
            view.print_line("Stopping; once more kills.")
            task.cancel()
        else:
            view.print_line("Killing.")
            deployment.kill_now()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal)
    try:
        return await _run_supervised(deployment, work, view, restarts, given_up)
    except LaunchError as error:
        view.print_line(str(error))
        return error.exit_code
    except asyncio.CancelledError:
        return 1 if given_up else min(signals, 2) - 1


async def _run_supervised(
    deployment: Launched, work: Work, view: StatusView, restarts: int | None, given_up: list[str]
) -> int:
    async with deployment:
        working = asyncio.ensure_future(work(deployment))
        dying: asyncio.Task[LaunchError]
        if restarts is None:
            dying = asyncio.create_task(deployment.wait_for_death())
        else:
            supervisor = Supervisor.of(deployment, restarts, view.print_line, given_up)
            dying = asyncio.create_task(supervisor.run())
        try:
            await asyncio.wait({working, dying}, return_when=asyncio.FIRST_COMPLETED)
            if dying.done():
                raise dying.result()
            return await working
        finally:
            working.cancel()
            dying.cancel()
            await asyncio.gather(working, dying, return_exceptions=True)


if __name__ == "__main__":
    command.main(prog_name="python -m runtime.launch")
