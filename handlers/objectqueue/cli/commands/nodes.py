"""`qo worker` and `qo monitor`: run nodes of the deployment in this process, configured by flags."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from handlers.objectqueue.cli.location import Location, location_options
from handlers.objectqueue.cli.parameters import SHARDS, WORKER_ID

_MODES = click.Choice(["index-only", "hybrid", "log-scan"])
_SECONDS = click.FloatRange(min=0)


def _monitor_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags of a monitor, which may run alone or in a worker."""
    for option in (
        click.option(
            "--metrics-port",
            type=click.IntRange(0, 65535),
            help="Serve health and metrics there. [METRICS_PORT]",
        ),
        click.option(
            "--sweep-interval",
            type=_SECONDS,
            help="Seconds between two repairs of the indexes; 0 is never. [QO_MONITOR_SWEEP_INTERVAL]",
        ),
        click.option(
            "--worker-health-threshold",
            type=_SECONDS,
            help="Seconds of silence after which a worker is dead. [QO_MONITOR_WORKER_HEALTH_THRESHOLD]",
        ),
        click.option(
            "--check-interval",
            type=_SECONDS,
            help="Seconds between two looks for time-outs. [QO_MONITOR_CHECK_INTERVAL]",
        ),
    ):
        command = option(command)
    return command


@click.command()
@click.option(
    "--id",
    "worker_id",
    type=WORKER_ID,
    help="Name of the worker; no two that live have the same. [QO_WORKER_ID]",
)
@click.option(
    "--shards", type=SHARDS, help="Shards that it serves, such as 0,1,a; all unless said. [QO_SHARDS]"
)
@click.option("--index-mode", type=_MODES, help="Where it looks for tasks. [QO_INDEX_MODE]")
@click.option("--no-monitor", is_flag=True, default=None, help="Leave the monitor out. [QO_NO_MONITOR]")
@click.option("--concurrency", type=click.IntRange(1, 256), help="Tasks at a time. [QO_CONCURRENCY]")
@click.option("--handlers", help="Module with the job functions, or module:registry. [QO_HANDLERS]")
@click.option(
    "--fail-unknown-types",
    is_flag=True,
    default=None,
    help="Fail tasks of types that it does not know. [QO_FAIL_UNKNOWN_TYPES]",
)
@click.option(
    "--renew-leases",
    is_flag=True,
    default=None,
    help="Let runs take longer than their time limit. [QO_RENEW_LEASES]",
)
@_monitor_options
@location_options
def worker(location: Location, worker_id: str | None, concurrency: int | None, **options: Any) -> None:
    """Run tasks until it is stopped.

    There is a monitor inside unless --no-monitor is given.
    """
    flags = {
        "QO_WORKER_ID": worker_id,
        "QO_SHARDS": options.pop("shards"),
        "QO_INDEX_MODE": options.pop("index_mode"),
        "QO_NO_MONITOR": _format_flag(options.pop("no_monitor")),
        "QO_CONCURRENCY": _format_number(concurrency),
        "QO_HANDLERS": options.pop("handlers"),
        "QO_FAIL_UNKNOWN_TYPES": _format_flag(options.pop("fail_unknown_types")),
        "QO_RENEW_LEASES": _format_flag(options.pop("renew_leases")),
    }
    _serve("worker", location.with_variables(**flags, **_monitor_variables(**options)))


@click.command()
@_monitor_options
@location_options
def monitor(location: Location, **options: Any) -> None:
    """Put back what was abandoned and repair the indexes.

    It runs until it is stopped. Every worker has one inside, unless --no-monitor is given.
    """
    _serve("monitor", location.with_variables(**_monitor_variables(**options)))


def _monitor_variables(
    check_interval: float | None,
    worker_health_threshold: float | None,
    sweep_interval: float | None,
    metrics_port: int | None,
) -> dict[str, str | None]:
    return {
        "QO_MONITOR_CHECK_INTERVAL": _format_number(check_interval),
        "QO_MONITOR_WORKER_HEALTH_THRESHOLD": _format_number(worker_health_threshold),
        "QO_MONITOR_SWEEP_INTERVAL": _format_number(sweep_interval),
        "METRICS_PORT": _format_number(metrics_port),
    }


def _serve(node: str, location: Location) -> None:
    from runtime.serve import main

    os.environ.update(location.environ)
    # The log of a node is no result, so it goes to standard error.
    with contextlib.redirect_stdout(sys.stderr):
        code = main([f"objectqueue.local.{node}"])
    raise click.exceptions.Exit(code)


def _format_flag(flag: bool | None) -> str | None:
    return "true" if flag else None


def _format_number(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"
