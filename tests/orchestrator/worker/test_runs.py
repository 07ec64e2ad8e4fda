"""The life of a job on one worker: claimed, run, settled."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.support.orchestrator.stack import Node, wait_until
from tests.support.orchestrator.stage import BEGUN, ENDED
from tests.support.orchestrator.worker_processes import LONG_LEASES, Crew, group_by_job, wait_for_lines

NAME = "the-only-one"


@pytest.fixture(scope="module", autouse=True)
def worker(crew: Crew) -> Iterator[Node]:
    """One worker with one slot and an ordinary lease."""
    (node,) = crew.start_workers(NAME, **LONG_LEASES, MAX_RETRIES="2")
    yield node
    assert node.running


@pytest.mark.req("ORC-022", "ORC-116", "ORC-117", "ORC-039", "ORC-040")
def test_a_job_is_claimed_with_its_lease_in_one_commit(crew: Crew) -> None:
    """The first version that is RUNNING has owner, expiry and attempt; the lease is LEASE_SECONDS long."""
    job = crew.insert_job()
    crew.wait_for_state(job, "SUCCESS")
    claimed = next(row for row in crew.versions(job) if row["state"] == "RUNNING")
    assert (claimed["lease_owner"], claimed["attempt"]) == (NAME, 1)
    assert (claimed["lease_expiry"] - claimed["updated_at"]).total_seconds() == 30


@pytest.mark.req("ORC-023", "ORC-130", "ORC-137", "ORC-006")
def test_a_run_that_returns_is_a_success(crew: Crew) -> None:
    """One update clears the lease and stores the result; the function got its payload, attempt and token."""
    job = crew.insert_job(deep={"ä": [1, None, "☃"]})
    row = crew.wait_for_state(job, "SUCCESS")
    assert (row["lease_owner"], row["lease_expiry"], row["next_attempt_at"]) == (None, None, None)
    assert (row["retry_count"], row["last_error"]) == (0, None)
    assert row["result"] == {"attempt": 1, "token": job, "got": {"deep": {"ä": [1, None, "☃"]}}}
    assert [each["state"] for each in crew.versions(job)] == ["CREATED", "QUEUED", "RUNNING", "SUCCESS"]
    assert [each["actor"] for each in crew.sql.history(job)] == ["", "", "worker", "worker"]


@pytest.mark.req("ORC-024", "ORC-131", "ORC-154", "ORC-025", "ORC-006", "ORC-014")
def test_a_run_that_fails_is_retried(crew: Crew) -> None:
    """It waits in RETRY with the error and a count, and is queued after its backoff; then it succeeds."""
    job = crew.insert_job(fail=[1], error="no luck" + "!" * 5000)
    crew.wait_for_state(job, "SUCCESS")
    versions = crew.versions(job)
    waits, queued = next(pair for pair in pairwise(versions) if pair[0]["state"] == "RETRY")
    assert (waits["retry_count"], waits["lease_owner"], waits["lease_expiry"]) == (1, None, None)
    assert waits["last_error"].startswith("no luck!") and len(waits["last_error"].encode()) <= 2000
    assert waits["next_attempt_at"] > waits["updated_at"]
    assert (queued["state"], queued["lease_owner"], queued["lease_expiry"]) == ("QUEUED", None, None)
    assert queued["updated_at"] > waits["next_attempt_at"]
    assert crew.stage.attempts(job) == [1, 2]
    assert crew.sql.job(job)["retry_count"] == 1


@pytest.mark.req("ORC-026", "ORC-031", "ORC-149", "ORC-150", "ORC-020")
def test_a_job_that_always_fails_is_dead_after_max_retries(crew: Crew) -> None:
    """With two retries it is run three times; the last failure and the end are one transaction."""
    job = crew.insert_job(fail=True)
    row = crew.wait_for_state(job, "DEAD")
    assert row["retry_count"] == 3
    assert crew.stage.attempts(job) == [1, 2, 3]
    assert crew.path(job)[-3:] == ["RUNNING", "RETRY", "DEAD"]
    last, end = crew.sql.history(job)[-2:]
    assert last["txid"] == end["txid"]
    counts = [row["retry_count"] for row in crew.versions(job) if row["state"] == "QUEUED"]
    assert counts == [0, 1, 2], "a count within the limit is queued again"


@pytest.mark.req("ORC-030", "ORC-152")
def test_a_fatal_failure_ends_a_job_at_once(crew: Crew) -> None:
    """One run, both edges in one transaction, so that RETRY is never visible; other failures are retried."""
    fatal, failing = crew.insert_job(fatal=True, error="for good"), crew.insert_job(fail=[1])
    row = crew.wait_for_state(fatal, "DEAD")
    assert (row["retry_count"], row["last_error"], row["next_attempt_at"]) == (1, "for good", None)
    assert crew.stage.attempts(fatal) == [1]
    *_, last, end = crew.sql.history(fatal)
    assert (last["to_state"], end["from_state"]) == ("RETRY", "RETRY")
    assert last["txid"] == end["txid"]
    crew.wait_for_state(failing, "SUCCESS")
    assert crew.stage.attempts(failing) == [1, 2]


@pytest.mark.req("ORC-147", "ORC-148")
def test_equal_failures_have_equal_backoffs(crew: Crew) -> None:
    """States, counts and backoffs of equal failures are the same: 50 ms and 100 ms, to the microsecond."""
    jobs = [crew.insert_job(fail=True) for _ in range(2)]
    crew.wait_until_ended(jobs)
    backoffs = [
        [
            (
                row["state"],
                row["retry_count"],
                row["next_attempt_at"] and (row["next_attempt_at"] - row["updated_at"]).total_seconds(),
            )
            for row in crew.versions(job)
        ]
        for job in jobs
    ]
    assert backoffs[0] == backoffs[1]
    waits = [wait for state, _, wait in backoffs[0] if state == "RETRY"]
    assert waits == [0.05, 0.1, 0.2]


@pytest.mark.req("ORC-135")
def test_an_unknown_type_fails_like_any_other(crew: Crew, worker: Node) -> None:
    """It is retried as often as others are, and the worker continues with the types that it knows."""
    job, stranger = crew.insert_job("of no known type"), crew.insert_job("*")
    known_job = crew.insert_job()
    crew.wait_for_state(known_job, "SUCCESS")
    for each in (job, stranger):
        row = crew.wait_for_state(each, "DEAD")
        assert row["last_error"].startswith("UNKNOWN_JOB_TYPE")
        assert row["attempt"] == 3
    assert worker.running


@pytest.mark.req("ORC-X05", "ORC-152")
def test_a_run_has_a_time_limit(crew: Crew) -> None:
    """A function that exceeds the timeout of its type has failed, and is retried."""
    job = crew.insert_job("hasty")
    row = crew.wait_for_state(job, "DEAD")
    assert row["last_error"].startswith("TIMED_OUT")
    assert crew.stage.attempts(job) == [1, 2, 3]


@pytest.mark.req("ORC-152", "ORC-127", "ORC-154")
@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("exit", "SystemExit"),
        ("cancel", "CancelledError"),
        ("odd", "Odd: of no known kind"),
        ("group", "BaseExceptionGroup"),
        ("unstorable text", "a NUL "),
        ("unstorable result", "RESULT_NOT_JSON"),
        ("surrogate result", "RESULT_NOT_JSON"),
        ("no json", "TypeError"),
    ],
)
def test_a_misbehaving_function_ends_its_own_run_only(
    crew: Crew, worker: Node, kind: str, error: str
) -> None:
    """Whatever it raises or returns ends its own run and nothing else."""
    job = crew.insert_job("odd", kind=kind)
    row = crew.wait_for_state(job, "DEAD")
    assert row["last_error"].startswith(error)
    after = crew.insert_job("plain")
    assert crew.wait_for_state(after, "SUCCESS")["result"] == "plain"
    assert worker.running


@pytest.mark.req("ORC-127", "ORC-125", "ORC-129", "ORC-119")
def test_one_slot_runs_jobs_in_the_order_of_creation(crew: Crew, worker: Node) -> None:
    """Twenty jobs by one slot: each is settled before the next is claimed, in the order of creation."""
    jobs = crew.insert_jobs(count=20)
    assert crew.wait_until_ended(jobs) == {"SUCCESS": 20}
    assert [run.job_id for run in crew.stage.runs(BEGUN, jobs)] == jobs
    rows = crew.sql.rows("SELECT * FROM versions WHERE job_id = ANY($1::uuid[]) ORDER BY number", jobs)
    steps = [(str(row["job_id"]), row["state"]) for row in rows if row["state"] in ("RUNNING", "SUCCESS")]
    assert steps == [(job, state) for job in jobs for state in ("RUNNING", "SUCCESS")]
    assert {row["attempt"] for versions in group_by_job(rows).values() for row in versions[-1:]} == {1}
    assert worker.running
    wait_for_lines(worker, "worker_started", worker_id=NAME)


@pytest.mark.req("ORC-128")
def test_no_transaction_is_open_while_a_job_runs(crew: Crew) -> None:
    """Its row can be locked by others, and every transaction of the worker ends before the job does."""
    job = crew.insert_job(gate="unlocked")
    crew.wait_for_run(job)
    try:
        assert crew.sql.job(job)["state"] == "RUNNING"
        crew.sql.run(f"SELECT FROM jobs WHERE job_id = '{job}' FOR UPDATE NOWAIT")
        begun = _list_idle_transactions(crew)
        wait_until(lambda: not begun & _list_idle_transactions(crew), "each of them ends")
    finally:
        crew.stage.open("unlocked")
    crew.wait_for_state(job, "SUCCESS")


def _list_idle_transactions(crew: Crew) -> set[tuple[object, ...]]:
    """List the transactions that wait for their client; those of other work last for a moment."""
    text = (
        "SELECT pid, xact_start FROM pg_stat_activity"
        " WHERE datname = current_database() AND state LIKE 'idle in%'"
    )
    return {tuple(row.values()) for row in crew.sql.rows(text)}


@pytest.mark.req("ORC-012", "ORC-019", "ORC-018", "ORC-020", "ORC-013")
def test_only_queued_jobs_are_claimed(crew: Crew) -> None:
    """A worker does not touch jobs that are CREATED, in RETRY or terminal, while it claims ten others."""
    created, waiting, ended_jobs, dead = crew.insert_jobs(count=4, state="CREATED")
    crew.transition(waiting, "QUEUED", "RUNNING", "RETRY", wait="1 hour")
    crew.transition(ended_jobs, "QUEUED", "RUNNING", "SUCCESS")
    crew.transition(dead, "QUEUED", "RUNNING", "RETRY", "DEAD")
    untouched = [crew.sql.job(each) for each in (created, waiting, ended_jobs, dead)]
    for _ in range(10):
        crew.wait_for_state(crew.insert_job(), "SUCCESS")
    assert [crew.sql.job(each) for each in (created, waiting, ended_jobs, dead)] == untouched
    assert crew.stage.runs(BEGUN, [created, waiting, ended_jobs, dead]) == []


@pytest.mark.req("ORC-008", "ORC-155", "ORC-047")
def test_every_version_of_every_row_is_consistent(crew: Crew) -> None:
    """Owner and expiry exactly while RUNNING, a wait exactly in RETRY, and one attempt more a claim."""
    rows = crew.sql.rows("SELECT * FROM versions ORDER BY number")
    for versions in group_by_job(rows).values():
        for row in versions:
            running = row["state"] == "RUNNING"
            assert (row["lease_owner"] is not None, row["lease_expiry"] is not None) == (running, running)
            assert (row["next_attempt_at"] is not None) == (row["state"] == "RETRY")
        attempts = [row["attempt"] for row in versions if row["state"] == "RUNNING"]
        assert attempts == list(range(1, len(attempts) + 1))


@pytest.mark.req("ORC-154")
def test_failed_runs_did_not_complete(crew: Crew) -> None:
    """Exactly the runs that were written as a success had come to their end."""
    wait_until(lambda: not crew.states()["RUNNING"], "nothing runs")
    ended = {run.job_id for run in crew.stage.runs(ENDED)}
    text = "SELECT job_id::text FROM jobs WHERE state = 'SUCCESS' AND job_type = 'act' AND attempt > 0"
    ran = {run.job_id for run in crew.stage.runs(BEGUN)}
    assert {row["job_id"] for row in crew.sql.rows(text)} & ran == ended
