"""The location of the queue, by flags or environment variables, and the exit codes of `qo`."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

FAILED = 1
USAGE = 2
NOT_FOUND = 3
CONFLICT = 4
NOT_ENDED = 5
"""The exit code where the time was over before the task ended."""
CODES = {
    "INVALID_ARGUMENT": USAGE,
    "NOT_FOUND": NOT_FOUND,
    "ALREADY_EXISTS": CONFLICT,
    "FAILED_PRECONDITION": CONFLICT,
    "ABORTED": CONFLICT,
}
"""Exit codes by the gRPC codes that the spec gives its conditions; all others are FAILED."""

_FLAGS = {
    "endpoint": ("S3_ENDPOINT", "URL of the store; unset is where the provider has it."),
    "bucket": ("S3_BUCKET", "Name of the bucket."),
    "region": ("S3_REGION", "Region of the bucket."),
    "queue": ("QO_QUEUE", "Which of several queues in the bucket."),
}


NOT_SET_UP = "`qo init` makes a bucket ready."


class CommandError(click.ClickException):
    """A failure that is printed as one line, with an exit code."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # each error has its own exit code


@dataclass(frozen=True)
class Location:
    """The environment with the values of the flags, and the output format."""

    environ: Mapping[str, str]
    as_json: bool

    def with_variables(self, **variables: str | None) -> Location:
        """Return a copy with more variables; None leaves a variable as it is."""
        updates = {name: value for name, value in variables.items() if value is not None}
        return Location({**self.environ, **updates}, self.as_json)


def location_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags that locate the queue to a command, which gets a `Location`."""

    @functools.wraps(command)
    def with_location(*arguments: Any, as_json: bool, **options: Any) -> Any:
        flags = {variable: options.pop(name) for name, (variable, _) in _FLAGS.items()}
        location = Location(dict(os.environ), as_json).with_variables(**flags)
        return command(*arguments, location=location, **options)

    decorated: Callable[..., Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(
        with_location
    )
    for name, (variable, meaning) in reversed(_FLAGS.items()):
        decorated = click.option(f"--{name}", metavar="TEXT", help=f"{meaning} [{variable}]")(decorated)
    return decorated
