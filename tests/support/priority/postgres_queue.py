"""The queue of a deployment that keeps its tasks in PostgreSQL, with what tests do behind its back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.orchestrator.sql_session import Sql
from tests.support.priority.stack import Queue, Servers, Stack


class PostgresQueue(Queue):
    """The same calls; times are set back in the tables, as the owner who has switched the guards off."""

    def __init__(self, queue: Queue, owner: Sql) -> None:
        super().__init__({"client": queue.client, "worker": queue.worker, "admin": queue.admin}, None)
        self._owner = owner

    def empty(self) -> None:
        """Remove all tasks and workers, with their history."""
        self._owner.force("TRUNCATE tasks, task_history, tasks_values, tasks_paused, workers, worker_history")

    def silence(self, worker_id: str, seconds: float) -> None:
        self._set_back(f"workers SET last_heartbeat = {_ago(seconds)} WHERE worker_id = '{worker_id}'")

    def run_out_of_time(self, task_id: str) -> None:
        self._set_back(f"tasks SET deadline_at = {_ago(1)} WHERE task_id = '{task_id}'")

    def end_delay(self, task_id: str) -> None:
        self._set_back(f"tasks SET available_at = {_ago(1)} WHERE task_id = '{task_id}'")

    def _set_back(self, change: str) -> None:
        self._owner.force(f"UPDATE {change}")


class PostgresStack(Stack):
    """Processes without a Redis, whose database has a service role and an owner."""

    def __init__(self, database: str, logs: Path, deployment: str) -> None:
        super().__init__(Servers("", database, redis=_NoRedis()), logs, deployment)


class _NoRedis:
    def close(self) -> None:
        """There is nothing to close."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"there is no Redis that could {name}")


def _ago(seconds: float) -> str:
    return f"clock_timestamp() - interval '{seconds} seconds'"
