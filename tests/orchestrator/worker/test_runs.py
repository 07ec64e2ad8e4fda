"""What becomes of a job in the hands of one worker: taken, run, written back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.support.orchestrator.stack import Node, wait_until
from tests.support.orchestrator.stage import BEGUN, ENDED
from tests.support.orchestrator.worker_processes import CALM, Crew, grouped, told

NAME = "the-only-one"


@pytest.fixture(scope="module", autouse=True)
def worker(crew: Crew) -> Iterator[Node]:
    """One worker with one slot and an ordinary lease."""
    (node,) = crew.work(NAME, **CALM, MAX_RETRIES="2")
    yield node
    assert node.running


@pytest.mark.req("ORC-022", "ORC-116", "ORC-117", "ORC-039", "ORC-040")
def test_a_job_is_taken_with_its_lease_in_one_commit(crew: Crew) -> None:
    """The first version that is RUNNING has owner, expiry and attempt; the lease is LEASE_SECONDS long."""
    job = crew.one()
    crew.until(job, "SUCCESS")
    taken = next(row for row in crew.versions(job) if row["state"] == "RUNNING")
    assert (taken["lease_owner"], taken["attempt"]) == (NAME, 1)
    assert (taken["lease_expiry"] - taken["updated_at"]).total_seconds() == 30


@pytest.mark.req("ORC-023", "ORC-130", "ORC-137", "ORC-006")
def test_a_run_that_returns_is_a_success(crew: Crew) -> None:
    """One update frees the lease and keeps the result; the function knew its payload, attempt and token."""
    job = crew.one(deep={"ä": [1, None, "☃"]})
    row = crew.until(job, "SUCCESS")
    assert (row["lease_owner"], row["lease_expiry"], row["next_attempt_at"]) == (None, None, None)
    assert (row["retry_count"], row["last_error"]) == (0, None)
    assert row["result"] == {"attempt": 1, "token": job, "got": {"deep": {"ä": [1, None, "☃"]}}}
    assert [each["state"] for each in crew.versions(job)] == ["CREATED", "QUEUED", "RUNNING", "SUCCESS"]
    assert [each["actor"] for each in crew.sql.history(job)] == ["", "", "worker", "worker"]


@pytest.mark.req("ORC-024", "ORC-131", "ORC-154", "ORC-025", "ORC-006", "ORC-014")
def test_a_run_that_fails_is_tried_again(crew: Crew) -> None:
    """It waits in RETRY with the error and a count, and is queued when its wait is over; then it succeeds."""
    job = crew.one(fail=[1], error="no luck" + "!" * 5000)
    crew.until(job, "SUCCESS")
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
def test_a_job_that_always_fails_is_dead_after_the_limit(crew: Crew) -> None:
    """With two retries it is run three times; the last failure and the end are one transaction."""
    job = crew.one(fail=True)
    row = crew.until(job, "DEAD")
    assert row["retry_count"] == 3
    assert crew.stage.attempts(job) == [1, 2, 3]
    assert crew.path(job)[-3:] == ["RUNNING", "RETRY", "DEAD"]
    last, end = crew.sql.history(job)[-2:]
    assert last["txid"] == end["txid"]
    counts = [row["retry_count"] for row in crew.versions(job) if row["state"] == "QUEUED"]
    assert counts == [0, 1, 2], "a count within the limit is queued again"


@pytest.mark.req("ORC-030", "ORC-152")
def test_a_fatal_failure_ends_a_job_at_once(crew: Crew) -> None:
    """One run, both edges in one transaction, so that nobody sees it wait; others are only tried again."""
    fatal, failing = crew.one(fatal=True, error="for good"), crew.one(fail=[1])
    row = crew.until(fatal, "DEAD")
    assert (row["retry_count"], row["last_error"], row["next_attempt_at"]) == (1, "for good", None)
    assert crew.stage.attempts(fatal) == [1]
    *_, last, end = crew.sql.history(fatal)
    assert (last["to_state"], end["from_state"]) == ("RETRY", "RETRY")
    assert last["txid"] == end["txid"]
    crew.until(failing, "SUCCESS")
    assert crew.stage.attempts(failing) == [1, 2]


@pytest.mark.req("ORC-147", "ORC-148")
def test_equal_failures_wait_equally_long(crew: Crew) -> None:
    """States, counts and waits of two that fail alike are the same: 50 ms and 100 ms, to the microsecond."""
    jobs = [crew.one(fail=True) for _ in range(2)]
    crew.ended(jobs)
    seen = [
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
    assert seen[0] == seen[1]
    waits = [wait for state, _, wait in seen[0] if state == "RETRY"]
    assert waits == [0.05, 0.1, 0.2]


@pytest.mark.req("ORC-135")
def test_a_type_that_nobody_knows_fails_like_any_other(crew: Crew, worker: Node) -> None:
    """It is tried as often as others are, and the worker goes on with those that it knows."""
    job, stranger = crew.one("of no known type"), crew.one("*")
    known = crew.one()
    crew.until(known, "SUCCESS")
    for each in (job, stranger):
        row = crew.until(each, "DEAD")
        assert row["last_error"].startswith("UNKNOWN_JOB_TYPE")
        assert row["attempt"] == 3
    assert worker.running


@pytest.mark.req("ORC-X05", "ORC-152")
def test_a_run_has_a_time_limit(crew: Crew) -> None:
    """A function that takes longer than its type allows has failed, and is tried again."""
    job = crew.one("hasty")
    row = crew.until(job, "DEAD")
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
def test_a_function_may_do_what_it_likes(crew: Crew, worker: Node, kind: str, error: str) -> None:
    """Whatever it raises or returns ends its own run and nothing else."""
    job = crew.one("odd", kind=kind)
    row = crew.until(job, "DEAD")
    assert row["last_error"].startswith(error)
    after = crew.one("plain")
    assert crew.until(after, "SUCCESS")["result"] == "plain"
    assert worker.running


@pytest.mark.req("ORC-127", "ORC-125", "ORC-129", "ORC-119")
def test_jobs_are_run_in_turn_and_the_oldest_first(crew: Crew, worker: Node) -> None:
    """Twenty jobs by one slot: each is written back before the next is taken, in the order of creation."""
    jobs = crew.put(count=20)
    assert crew.ended(jobs) == {"SUCCESS": 20}
    assert [run.job_id for run in crew.stage.runs(BEGUN, jobs)] == jobs
    rows = crew.sql.rows("SELECT * FROM versions WHERE job_id = ANY($1::uuid[]) ORDER BY number", jobs)
    steps = [(str(row["job_id"]), row["state"]) for row in rows if row["state"] in ("RUNNING", "SUCCESS")]
    assert steps == [(job, state) for job in jobs for state in ("RUNNING", "SUCCESS")]
    assert {row["attempt"] for versions in grouped(rows).values() for row in versions[-1:]} == {1}
    assert worker.running
    told(worker, "worker_started", worker_id=NAME)


@pytest.mark.req("ORC-128")
def test_no_transaction_is_open_while_a_job_runs(crew: Crew) -> None:
    """Its row can be locked by others, and no session of the worker is in a transaction."""
    job = crew.one(gate="unlocked")
    crew.begun(job)
    assert crew.sql.job(job)["state"] == "RUNNING"
    crew.sql.run(f"SELECT FROM jobs WHERE job_id = '{job}' FOR UPDATE NOWAIT")
    idle = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
    )
    assert crew.sql.value(idle) == 0
    crew.stage.open("unlocked")
    crew.until(job, "SUCCESS")


@pytest.mark.req("ORC-012", "ORC-019", "ORC-018", "ORC-020", "ORC-013")
def test_only_queued_jobs_are_taken(crew: Crew) -> None:
    """A worker leaves alone what is CREATED, waits in RETRY, or has ended, while it takes ten others."""
    created, waiting, done, dead = crew.put(count=4, state="CREATED")
    crew.bring(waiting, "QUEUED", "RUNNING", "RETRY", wait="1 hour")
    crew.bring(done, "QUEUED", "RUNNING", "SUCCESS")
    crew.bring(dead, "QUEUED", "RUNNING", "RETRY", "DEAD")
    untouched = [crew.sql.job(each) for each in (created, waiting, done, dead)]
    for _ in range(10):
        crew.until(crew.one(), "SUCCESS")
    assert [crew.sql.job(each) for each in (created, waiting, done, dead)] == untouched
    assert crew.stage.runs(BEGUN, [created, waiting, done, dead]) == []


@pytest.mark.req("ORC-008", "ORC-155", "ORC-047")
def test_every_version_of_every_row_was_in_order(crew: Crew) -> None:
    """Owner and expiry exactly while RUNNING, a wait exactly in RETRY, the attempt rising by one a taking."""
    rows = crew.sql.rows("SELECT * FROM versions ORDER BY number")
    for versions in grouped(rows).values():
        for row in versions:
            running = row["state"] == "RUNNING"
            assert (row["lease_owner"] is not None, row["lease_expiry"] is not None) == (running, running)
            assert (row["next_attempt_at"] is not None) == (row["state"] == "RETRY")
        taken = [row["attempt"] for row in versions if row["state"] == "RUNNING"]
        assert taken == list(range(1, len(taken) + 1))


@pytest.mark.req("ORC-154")
def test_runs_that_failed_did_not_come_to_their_end(crew: Crew) -> None:
    """What was written as a success had come to its end, and nothing else had."""
    wait_until(lambda: not crew.states()["RUNNING"], "nothing runs")
    ended = {run.job_id for run in crew.stage.runs(ENDED)}
    text = "SELECT job_id::text FROM jobs WHERE state = 'SUCCESS' AND job_type = 'act' AND attempt > 0"
    ran = {run.job_id for run in crew.stage.runs(BEGUN)}
    assert {row["job_id"] for row in crew.sql.rows(text)} & ran == ended
