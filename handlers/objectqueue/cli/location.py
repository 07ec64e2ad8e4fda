"""Where the queue is, by flags or by variables, and the codes with which `qo` ends."""

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
GOES_ON = 5
"""The time to wait for a task was over first."""
CODES = {
    "INVALID_ARGUMENT": USAGE,
    "NOT_FOUND": NOT_FOUND,
    "ALREADY_EXISTS": CONFLICT,
    "FAILED_PRECONDITION": CONFLICT,
    "ABORTED": CONFLICT,
}
"""Exit codes by the codes that the spec gives its conditions; all others are trouble."""

_FLAGS = {
    "endpoint": ("S3_ENDPOINT", "URL of the store; unset is where the provider has it."),
    "bucket": ("S3_BUCKET", "Name of the bucket."),
    "region": ("S3_REGION", "Region of the bucket."),
    "queue": ("QO_QUEUE", "Which of several queues in the bucket."),
}


NOT_SET_UP = "`qo init` makes a bucket ready."


class Trouble(click.ClickException):
    """Something did not work, in one line."""

    def __init__(self, message: str, code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # a code of its own for each is what is meant


@dataclass(frozen=True)
class Where:
    """The environment with what the flags say, and how results are to be printed."""

    environ: Mapping[str, str]
    as_json: bool

    def also(self, **variables: str | None) -> Where:
        """The same with more variables; what is None stays as it was."""
        given = {name: value for name, value in variables.items() if value is not None}
        return Where({**self.environ, **given}, self.as_json)


def places(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the flags that say where the queue is; it is handed a `Where`."""

    @functools.wraps(command)
    def with_places(*arguments: Any, as_json: bool, **given: Any) -> Any:
        flags = {variable: given.pop(name) for name, (variable, _) in _FLAGS.items()}
        where = Where(dict(os.environ), as_json).also(**flags)
        return command(*arguments, where=where, **given)

    found: Callable[..., Any] = click.option("--json", "as_json", is_flag=True, help="Print JSON.")(
        with_places
    )
    for name, (variable, meaning) in reversed(_FLAGS.items()):
        found = click.option(f"--{name}", metavar="TEXT", help=f"{meaning} [{variable}]")(found)
    return found
