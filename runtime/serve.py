"""`python -m runtime.serve <system>.<deployment>.<node>`: run one node until a signal stops it."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from runtime.model.system import System
from runtime.node.handler_check import HandlersMissing, require_handlers
from runtime.node.handler_modules import HandlersRefused, add_handlers
from runtime.node.node import Node
from runtime.node.process_exit import exit_process
from runtime.node.settings import SettingsError
from runtime.node.systems import load_system
from runtime.node.wiring import WiringError
from runtime.observe import log as events
from runtime.observe.log import Log, open_buffered_stdout
from runtime.stores.store import StoreUnusable
from runtime.world import RealWorld

__all__ = ["load_system", "main"]

_NEW_OBJECTS = 20_000
USAGE = "usage: python -m runtime.serve <system>.<deployment>.<node> [--handlers MODULE]"


def main(arguments: list[str]) -> int:
    """Run a node; 0 after an orderly stop, 1 when it cannot run, 2 for invalid arguments or settings."""
    arguments, handlers = _split_handlers(arguments)
    parts = arguments[0].split(".") if len(arguments) == 1 else []
    if len(parts) != 3:
        print(USAGE, file=sys.stderr)
        return 2
    name, deployment, node = parts
    try:
        system = load_system(name)
        variables = system.deployments[deployment].nodes[node].variables
    except (ModuleNotFoundError, KeyError) as error:
        print(f"There is no node {arguments[0]} ({error}).\n{USAGE}", file=sys.stderr)
        return 2
    try:
        os.environ.update(add_handlers({}, variables, handlers, arguments[0]))
    except HandlersRefused as error:
        print(f"{error}\n{USAGE}", file=sys.stderr)
        return 2
    return _run(system, deployment, node)


def _split_handlers(arguments: list[str]) -> tuple[list[str], str | None]:
    """Split `--handlers MODULE` or `--handlers=MODULE` from the arguments."""
    for place, word in enumerate(arguments):
        option, equals, value = word.partition("=")
        if option == "--handlers" and (equals or place + 1 < len(arguments)):
            rest = arguments[place + 1 if equals else place + 2 :]
            return [*arguments[:place], *rest], value if equals else arguments[place + 1]
    return arguments, None


def _run(system: System, deployment: str, name: str) -> int:
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:  # uvloop has no wheels for Windows
        runner = asyncio.Runner()
    # What still runs when the loop ends may log something, so the output is closed last.
    with open_buffered_stdout() as lines, runner:
        log = Log(name, "INFO", RealWorld(), lines)
        try:
            return runner.run(_serve(system, deployment, name, lines))
        except SettingsError as error:
            log.write(
                events.SETTINGS_INVALID,
                f"{_format_count(error.problems)} wrong: {error}",
                fields={"problems": error.problems},
            )
            return 2
        except HandlersMissing as error:
            print(error, file=sys.stderr)
            log.write(events.START_FAILED, str(error), fields={"problems": error.problems})
            return 2
        except (OSError, StoreUnusable, WiringError) as error:
            log.write(events.START_FAILED, str(error))
            return 1


def _format_count(problems: Sequence[str]) -> str:
    return "A setting is" if len(problems) == 1 else f"{len(problems)} settings are"


async def _serve(system: System, deployment: str, name: str, lines: TextIO) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            lines.flush()
            os._exit(1)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    require_handlers(system, system.deployments[deployment].nodes[name].hosts)
    environ = await _locate_upstreams(system, deployment, name, stop)
    if environ is None:
        return 0
    node = Node(system, deployment, name, environ, RealWorld(), lines)
    if not await node.wait_for_stores(stop):
        await node.stop()
        return 0
    await node.start()
    freeze_startup_objects()
    failed = await _wait_for_stop_or_failure(node, stop)
    await node.stop()
    return int(failed)


def freeze_startup_objects() -> None:
    """Exclude the objects of a started node from garbage collection, and collect the rest less often.

    A call leaves hardly any cycles behind, and in a node that keeps entities in memory the collector would
    traverse all of them again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 50)


async def _locate_upstreams(
    system: System, deployment: str, name: str, stop: asyncio.Event
) -> Mapping[str, str] | None:
    """Return the environment with the addresses of discovered upstreams; None if it is stopped first."""
    from runtime.node.finding import find_unset_upstreams, locate_upstreams

    design = system.deployments[deployment]
    if not find_unset_upstreams(system, design, design.nodes[name], os.environ):
        return os.environ
    log = Log(name, "INFO", RealWorld())
    finding = asyncio.create_task(locate_upstreams(system, design, design.nodes[name], os.environ, log))
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({finding, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not finding.done():
        finding.cancel()
        return None
    return {**os.environ, **finding.result()}


async def _wait_for_stop_or_failure(node: Node, stop: asyncio.Event) -> bool:
    """Wait for a signal, or for background work to end by itself, a failure; return whether it did."""
    waiting = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait({waiting, *node.background}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    return waiting not in done


if __name__ == "__main__":
    exit_process(main(sys.argv[1:]))
