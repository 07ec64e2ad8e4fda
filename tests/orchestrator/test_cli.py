"""The operator's command line: `charter orchestrator …` against running processes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from runtime.cli import charter
from runtime.cli.failures import ENDED_IN_FAILURE
from tests.orchestrator.conftest import NewDatabase
from tests.support.orchestrator.stack import Stack, new_key, wait_until

TOKEN = "the operator's own"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()
PATIENCE_MS = "60000"
"""Connecting counts as well, which takes long on a busy machine."""


@pytest.fixture(scope="module")
def watched(new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """An API that knows an operator, and a worker."""
    with Stack(new_database(), tmp_path_factory.mktemp("logs")) as made:
        made.node("api", ACCEPTED_TOKENS=f"operator={DIGEST}").begin()
        made.node("worker").begin()
        for node in made.nodes:
            node.wait()
        yield made


def run(stack: Stack, *arguments: str, token: str | None = TOKEN) -> Result:
    """A command as an operator would give it."""
    names = ("CHARTER_CA_FILE", "CHARTER_DEPLOYMENT", "CHARTER_CERT_FILE", "CHARTER_KEY_FILE")
    env = {**dict.fromkeys(names), "CHARTER_ADDRESS": stack.api.address, "CHARTER_TOKEN": token}
    return CliRunner().invoke(charter, ["orchestrator", *arguments, "--deadline-ms", PATIENCE_MS], env=env)


def submitted(stack: Stack, job_type: str, payload: str = "{}") -> str:
    """The id of a job that has come to its end."""
    arguments = ("--job-type", job_type, "--payload", payload, "--idempotency-key", new_key())
    result = run(stack, "submit-job", *arguments, "--watch", "--json")
    assert result.exit_code == (ENDED_IN_FAILURE if job_type == "fatal" else 0), result.output
    job_id: str = json.loads(result.stdout)["job_id"]
    return job_id


@pytest.mark.req("ORC-X11")
def test_an_operator_lists_looks_and_retries(watched: Stack) -> None:
    """Jobs with the names and times that people read, the history of one, and a failed one as a new job."""
    done, failed = submitted(watched, "echo"), submitted(watched, "fatal")

    for word in ("FAILED", "failed", "status_failed", "STATUS_FAILED"):
        listed = run(watched, "list-jobs", "--status", word)
        assert listed.exit_code == 0, listed.output
    (row,) = [line.split() for line in listed.stdout.splitlines() if failed in line]
    assert row[:3] == [failed, "fatal", "FAILED"]
    assert len(row[3]) == len("2026-01-01")
    assert done not in listed.stdout

    history = json.loads(run(watched, "get-job-history", failed, "--json").stdout)
    assert [each["to_state"] for each in history["transitions"]] == [
        *("CREATED", "QUEUED", "RUNNING", "RETRY", "DEAD"),
    ]
    assert history["last_error"] == "SIMULATED_FAILURE"

    again = run(watched, "retry-job", failed, "--idempotency-key", new_key(), "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["job_id"] not in (failed, done)


@pytest.mark.req("ORC-X11")
def test_a_purge_takes_what_ended_long_ago_and_nothing_else(watched: Stack) -> None:
    """A job that ended a year ago goes with its history; one of today stays."""
    old, new = submitted(watched, "echo"), submitted(watched, "echo")
    watched.sql.run(
        f"UPDATE jobs SET updated_at = clock_timestamp() - interval '400 days' WHERE job_id = '{old}'"
    )

    def purged() -> int:
        """How many were purged; one that another session has locked at the moment is left for the next."""
        return int(
            json.loads(run(watched, "purge-jobs", "--older-than-days", "365", "--json").stdout)["purged"]
        )

    assert wait_until(purged, "it is purged") == 1
    assert run(watched, "get-job", old).exit_code != 0
    assert run(watched, "get-job", new).exit_code == 0


@pytest.mark.req("ORC-X11")
def test_only_an_operator_is_let_through(watched: Stack) -> None:
    """Somebody without proof is told what is missing."""
    refused = run(watched, "purge-jobs", "--older-than-days", "365", token=None)
    assert refused.exit_code != 0
    assert "needs a proven caller" in refused.stderr
