"""`qo` as a user runs it, and direct access to the bucket."""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from handlers.objectqueue.cli import qo
from tests.support.s3.fixtures import Bucket

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
UNKNOWN_ID = str(uuid.UUID(int=0x1, version=4))
"""The id of no task."""
ROOT = Path(__file__).parents[3]
QO = (sys.executable, "-c", "from handlers.objectqueue.cli import main; main()")
"""The command as a process of its own."""
DONE, TROUBLE, USAGE, NOT_FOUND, CONFLICT, GOES_ON = range(6)


class Shell:
    """A user at a terminal whose variables name a bucket."""

    def __init__(self, bucket: Bucket, **more: str) -> None:
        self.bucket = bucket
        self._env: Mapping[str, str] = {**bucket.variables, **more}

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a process of its own."""
        return {**os.environ, **self._env, "PYTHONPATH": str(ROOT)}

    def run(self, *arguments: str, stdin: str | bytes = b"", **more: str) -> Result:
        """Run a command, however it ends; it never prints a stack trace."""
        result = CliRunner(env={**self._env, **more}).invoke(qo, arguments, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    def out(self, *arguments: str, stdin: str | bytes = b"", **more: str) -> str:
        """The output of a command that succeeds."""
        result = self.run(*arguments, stdin=stdin, **more)
        assert result.exit_code == DONE, result.output
        return result.stdout.strip()

    def json(self, *arguments: str, **more: str) -> Any:
        """The output of a command that succeeds, as JSON."""
        return json.loads(self.out(*arguments, "--json", **more))

    def submit(self, *arguments: str) -> str:
        """Submit a task; return its id."""
        return self.out("submit", "--type", "echo", *arguments)

    def submit_in(self, status: str, **fields: Any) -> str:
        """Submit a task and bring it into some state; return its id."""
        task_id = self.submit("--input", '{"n": 1}')
        running, ended = status == "Running", status in ("Completed", "Failed", "Archived")
        usual = {
            "attempt": 0 if status == "Pending" else 1,
            "completed_at": self.task(task_id)["created_at"] if ended else None,
            "worker_id": None if status == "Pending" else "somebody",
            "lease_id": UNKNOWN_ID if running else None,
            "lease_expires_at": "2999-01-01T00:00:00.000000Z" if running else None,
            "archived_from": "Failed" if status == "Archived" else None,
        }
        self.rewrite(task_id, **{**usual, **fields, "status": status})
        return task_id

    def task(self, task_id: str) -> dict[str, Any]:
        """A task as the bucket has it."""
        task: dict[str, Any] = json.loads(self.bucket.read(format_key(task_id)))
        return task

    def rewrite(self, task_id: str, **fields: Any) -> None:
        """Change the object of a task without `qo`."""
        task = self.task(task_id)
        body = json.dumps({**task, **fields, "rev": task["rev"] + 1}).encode()
        self.bucket.write(format_key(task_id), body)

    def versions(self, task_id: str) -> int:
        """How often a task was written."""
        answer = self.bucket.raw.list_object_versions(Bucket=self.bucket.name, Prefix=format_key(task_id))
        return len(answer["Versions"])

    def list_ready_entries(self, task_id: str) -> list[str]:
        """The entries of a task in the ready index."""
        return [key for key in self.bucket.keys("ready/") if key.endswith(task_id)]


def format_key(task_id: str) -> str:
    return f"tasks/{task_id[0]}/{task_id}.json"
