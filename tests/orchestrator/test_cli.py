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
"""The time to connect counts as well, which is long on a busy machine."""


@pytest.fixture(scope="module")
def operated_stack(new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """An API that accepts an operator, and a worker."""
    with Stack(new_database(), tmp_path_factory.mktemp("logs")) as stack:
        stack.node("api", ACCEPTED_TOKENS=f"operator={DIGEST}").begin()
        stack.node("worker").begin()
        for node in stack.nodes:
            node.wait()
        yield stack


def run(stack: Stack, *arguments: str, token: str | None = TOKEN) -> Result:
    """Run a command as an operator would."""
    names = ("CHARTER_CA_FILE", "CHARTER_DEPLOYMENT", "CHARTER_CERT_FILE", "CHARTER_KEY_FILE")
    env = {**dict.fromkeys(names), "CHARTER_ADDRESS": stack.api.address, "CHARTER_TOKEN": token}
    return CliRunner().invoke(charter, ["orchestrator", *arguments, "--deadline-ms", PATIENCE_MS], env=env)


def submit_and_wait(stack: Stack, job_type: str, payload: str = "{}") -> str:
    """Submit a job and wait until it has ended; return its id."""
    arguments = ("--job-type", job_type, "--payload", payload, "--idempotency-key", new_key())
    result = run(stack, "submit-job", *arguments, "--watch", "--json")
    assert result.exit_code == (ENDED_IN_FAILURE if job_type == "fatal" else 0), result.output
    job_id: str = json.loads(result.stdout)["job_id"]
    return job_id


@pytest.mark.req("ORC-X11")
def test_an_operator_lists_reads_and_retries_jobs(operated_stack: Stack) -> None:
    """Jobs with readable names and times, the history of one, and a failed one as a new job."""
    completed, failed = submit_and_wait(operated_stack, "echo"), submit_and_wait(operated_stack, "fatal")

    for word in ("FAILED", "failed", "status_failed", "STATUS_FAILED"):
        listed = run(operated_stack, "list-jobs", "--status", word)
        assert listed.exit_code == 0, listed.output
    (row,) = [line.split() for line in listed.stdout.splitlines() if failed in line]
    assert row[:3] == [failed, "fatal", "FAILED"]
    assert len(row[3]) == len("2026-01-01")
    assert completed not in listed.stdout

    history = json.loads(run(operated_stack, "get-job-history", failed, "--json").stdout)
    assert [each["to_state"] for each in history["transitions"]] == [
        *("CREATED", "QUEUED", "RUNNING", "RETRY", "DEAD"),
    ]
    assert history["last_error"] == "SIMULATED_FAILURE"

    again = run(operated_stack, "retry-job", failed, "--idempotency-key", new_key(), "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["job_id"] not in (failed, completed)


@pytest.mark.req("ORC-X11")
def test_a_purge_deletes_old_terminal_jobs_only(operated_stack: Stack) -> None:
    """A job that ended a year ago is deleted with its history; one of today stays."""
    old, new = submit_and_wait(operated_stack, "echo"), submit_and_wait(operated_stack, "echo")
    operated_stack.sql.run(
        f"UPDATE jobs SET updated_at = clock_timestamp() - interval '400 days' WHERE job_id = '{old}'"
    )

    def purge() -> int:
        """Purge, and return how many; a row that another session has locked stays until the next purge."""
        return int(
            json.loads(run(operated_stack, "purge-jobs", "--older-than-days", "365", "--json").stdout)[
                "purged"
            ]
        )

    assert wait_until(purge, "it is purged") == 1
    assert run(operated_stack, "get-job", old).exit_code != 0
    assert run(operated_stack, "get-job", new).exit_code == 0


@pytest.mark.req("ORC-X11")
def test_only_an_operator_is_permitted(operated_stack: Stack) -> None:
    """The error of a caller without credentials says what is missing."""
    refused = run(operated_stack, "purge-jobs", "--older-than-days", "365", token=None)
    assert refused.exit_code != 0
    assert "needs a proven caller" in refused.stderr
