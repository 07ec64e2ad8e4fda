"""The parameter types of `qo`: check options and arguments before any request."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

STATUSES = ("pending", "running", "completed", "failed", "archived")
_SHARDS = "0123456789abcdef"
_UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_SPAN = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)?")
_SECONDS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_S = 10 * 365 * 86400.0


class TaskId(click.ParamType[str]):
    """The id of a task, in any case."""

    name = "task_id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).strip().lower()
        if _UUID4.fullmatch(text) is None:
            self.fail(f"{value!r} is no id of a task, which is a UUID of version 4.", param, ctx)
        return text


class Name(click.ParamType[str]):
    """A name that is not empty; the settings check the rest."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not str(value).strip():
            self.fail("an empty name is none.", param, ctx)
        return str(value)


class Shards(click.ParamType[str]):
    """Shards, separated by commas; or one."""

    def __init__(self, *, several: bool) -> None:
        self._several = several
        self.name = "shards" if several else "shard"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        prefix = incomplete.rpartition(",")[0] + "," if self._several and "," in incomplete else ""
        return [CompletionItem(prefix + each) for each in _SHARDS if (prefix + each).startswith(incomplete)]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        parts = [part.strip().lower() for part in str(value).split(",")]
        if any(len(part) != 1 or part not in _SHARDS for part in parts):
            self.fail(f"{value!r}: a shard is one of the digits 0 to f.", param, ctx)
        if len(parts) > 1 and not self._several:
            self.fail(f"{value!r} is more than one shard.", param, ctx)
        return ",".join(dict.fromkeys(parts))


class Span(click.ParamType[float]):
    """A time such as 30, 1.5s, 500ms, 2m, 1h or 3d, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        match = _SPAN.fullmatch(str(value).strip().lower())
        if match is None:
            self.fail(f"{value!r} is no duration such as 30, 500ms, 2m, 1h or 3d.", param, ctx)
        seconds = float(match[1]) * _SECONDS[match[2]]
        if seconds > _LONGEST_S:
            self.fail(f"{value!r} is more than ten years.", param, ctx)
        return seconds


class Moment(click.ParamType[datetime]):
    """A time of day and date in ISO 8601; without a zone it is that of this machine."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return datetime.fromisoformat(str(value)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time such as 2030-01-31T18:00:00Z.", param, ctx)


class Json(click.ParamType[str]):
    """JSON itself, @ and the name of a file with it, or - for standard input."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from runtime.model import json_text

        try:
            return json_text.encode_json(json_text.decode_json(_read_content(str(value))))
        except (json_text.NotJson, json_text.CannotWrite) as problem:
            self.fail(f"it is no JSON: {problem}", param, ctx)
        except OSError as error:
            self.fail(f"{error.filename}: {error.strerror}", param, ctx)


def _read_content(value: str) -> bytes:
    if value == "-":
        return sys.stdin.buffer.read()
    return Path(value[1:]).read_bytes() if value.startswith("@") else value.encode(errors="surrogateescape")


TASK_ID = TaskId()
WORKER_ID = Name()
SHARD = Shards(several=False)
SHARDS = Shards(several=True)
SPAN = Span()
MOMENT = Moment()
JSON = Json()
STATUS = click.Choice(STATUSES, case_sensitive=False)
