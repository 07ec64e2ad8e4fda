"""Runners as processes: they run the jobs that they claim, through outages of queue and store."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from handlers.queuey.samples import binary
from tests.support.eventually import wait_until
from tests.support.queuey.processes import Works

BRISK = {"ABANDONED_AGE": "3", "SWEEP_INTERVAL": "0.1", "MAX_ATTEMPTS": "20", "RUN_SECONDS": "5"}
"""Jobs of a runner that is gone come back soon, and so do those of one that stands still for a while."""
LONG_AGE = {**BRISK, "ABANDONED_AGE": "600"}
"""Settings under which no job is abandoned, however long a process stands still."""
LIVELY = {"ABANDONED_AGE": "3"}
"""For a runner of such a queue: it sends heartbeats as often as under short settings."""


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Works]:
    """A queue and a store, and one runner with two slots."""
    with Works(tmp_path_factory.mktemp("works"), **LONG_AGE) as works:
        works.runner("steady", RUN_SECONDS="2", RUN_OUTPUT_BYTES="65536", **LIVELY).wait()
        yield works


@pytest.fixture(scope="module")
def idle_works(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Works]:
    """A queue and a store without a runner."""
    with Works(tmp_path_factory.mktemp("yard"), **LONG_AGE) as works:
        yield works


@pytest.fixture
def runnerless(idle_works: Works) -> Iterator[Works]:
    """The same for each test; the runners that it starts are stopped after it."""
    yield idle_works
    idle_works.dismiss()


@pytest.fixture
def brisk(tmp_path: Path) -> Iterator[Works]:
    """A queue of its own, where jobs are soon abandoned."""
    with Works(tmp_path, **BRISK) as works:
        yield works


@pytest.mark.req("QQ-X01", "QQ-X04", "QQ-001")
def test_a_submitted_job_is_run_and_its_output_stored(works: Works) -> None:
    """Standard input and output, and the standard error of the binary is in the report."""
    counted = works.submit("words", b"four words it has")
    complained, ended = works.submit("complain"), works.submit("exit")
    job = works.wait_until_ended(counted)
    assert (job["status"], job["runner_id"], job["run_attempts"]) == ("completed", "steady", 1)
    assert works.content(job["output_addr"]) == b"4\n"
    works.wait_until_ended(complained)
    report = works.job(complained, "/report")
    assert works.content(report["stderr_addr"]) == b"this is not right\n"
    assert works.wait_until_ended(ended)["status"] == "failed"
    report = works.job(ended, "/report")
    assert (report["exit_code"], report["reason"].partition(":")[0]) == (7, "EXITED")


@pytest.mark.req("QQ-X02")
def test_no_job_crashes_a_runner(works: Works) -> None:
    """Whatever is wrong with a job fails that job; the next one is run."""
    garbage = works.put(b"\x7fELF and so on")
    wrong = {
        works.submit("trap"): "TRAPPED",
        works.submit("hog"): "TRAPPED",
        works.submit("flood"): "OUTPUT_TOO_LARGE",
        works.create_job(garbage): "NOT_WASI",
        works.create_job("0" * 64): "NOT_FOUND",
        works.create_job("a" * 512): "NOT_FOUND",
        works.create_job("../../../../etc/passwd"): "NOT_FOUND",
        works.create_job(works.put(b"x"), "ü" * 300): "NOT_FOUND",
        works.submit("loop"): "OUT_OF_TIME",
    }
    last = works.submit("echo", b"still here")
    for job_id, reason in wrong.items():
        assert works.read_reason(job_id).partition(":")[0] == reason
    assert works.content(works.wait_until_ended(last)["output_addr"]) == b"still here"
    assert not works.runners[0].events("background_fault")


@pytest.mark.req("QQ-X01", "QQ-038")
def test_a_long_run_is_not_abandoned_and_others_run_beside_it(runnerless: Works) -> None:
    """It sends one heartbeat after the other, and the second slot works meanwhile."""
    runnerless.runner("lasting", RUN_SECONDS="600", **LIVELY).wait()
    long = runnerless.submit("sleep")
    runnerless.wait_for_status(long, "active")
    beside = [runnerless.wait_until_ended(runnerless.submit("echo", b"%d" % each)) for each in range(3)]
    assert [each["status"] for each in beside] == ["completed"] * 3
    for _ in range(4):
        before = runnerless.job(long)
        wait_until(lambda before=before: runnerless.job(long)["updated_at"] > before["updated_at"])  # type: ignore[misc]
    found = runnerless.job(long)
    assert (found["status"], found["runner_id"], found["run_attempts"]) == ("active", "lasting", 1)
    runnerless.cancel(long)


@pytest.mark.req("QQ-X01")
def test_a_cancelled_job_is_stopped(works: Works) -> None:
    """A runner that has lost its job stops running it, and is free for another."""
    job = works.submit("sleep")
    works.wait_for_status(job, "active")
    assert works.cancel(job)["status"] == "failed"
    lost = wait_until(lambda: works.runners[0].events("job_lost"))
    assert lost[-1]["job_id"] == job
    assert works.wait_until_ended(works.submit("noop"))["status"] == "completed"


@pytest.mark.req("QQ-047", "QQ-007")
def test_a_runner_that_is_killed_does_not_lose_its_job(brisk: Works) -> None:
    """Another runner runs it, and the process of the first one ends."""
    first = brisk.runner("first", RUN_SECONDS="600").wait()
    job = brisk.submit("sleep")
    brisk.wait_for_status(job, "active")
    assert first.process is not None
    ran = wait_until(psutil.Process(first.process.pid).children)
    first.kill()
    _, alive = psutil.wait_procs(ran, timeout=60)
    assert not alive
    second = brisk.runner("second", RUN_SECONDS="0.3").wait()
    assert brisk.read_reason(job).startswith("OUT_OF_TIME")
    found = brisk.job(job)
    # Where the machine stands still for as long as a job may be silent, another attempt is counted.
    assert found["runner_id"] == "second" and found["run_attempts"] >= 3
    assert second.stop() == 0


@pytest.mark.req("QQ-X11")
def test_a_runner_that_is_stopped_releases_its_job(runnerless: Works) -> None:
    """At once without a grace; with one it finishes the jobs that it can."""
    hasty = runnerless.runner("hasty", RUN_SECONDS="600", SHUTDOWN_GRACE_SECONDS="0").wait()
    job = runnerless.submit("sleep")
    runnerless.wait_for_status(job, "active")
    assert hasty.stop() == 0
    assert runnerless.job(job)["status"] == "pending"
    patient = runnerless.runner("patient", RUN_SECONDS="0.3").wait()
    runnerless.wait_for_status(job, "active")
    assert patient.stop() == 0
    assert (runnerless.job(job)["status"], runnerless.job(job)["runner_id"]) == ("failed", "patient")


@pytest.mark.req("QQ-X11", "QQ-036", "QQ-104")
def test_a_shutdown_does_not_count_as_an_attempt(tmp_path: Path) -> None:
    """However often it happens; the history names each stop."""
    stops, attempts = 4, 3
    with Works(tmp_path, **{**LONG_AGE, "MAX_ATTEMPTS": str(attempts)}) as works:
        job = works.submit("sleep")
        for _ in range(stops):
            runner = works.runner("deployed", RUN_SECONDS="600", SHUTDOWN_GRACE_SECONDS="0").wait()
            works.wait_for_status(job, "active")
            assert runner.stop() == 0
            assert works.job(job)["status"] == "pending"
        works.runner("last", RUN_SECONDS="0.3").wait()
        assert works.read_reason(job).startswith("OUT_OF_TIME"), "it ran to an end of its own"
        edges = [each["transition"] for each in works.job(job, "/report")["changes"]]
        # A slot of a runner that stops may claim a job that another has released, and releases it, too.
        again = (len(edges) - 3) // 2
        assert edges == ["", *["claim", "release"] * again, "claim", "fail"] and again >= stops
        assert works.job(job)["run_attempts"] == again + 1, "each taking has a number of its own"


@pytest.mark.req("QQ-X01", "QQ-019", "QQ-022")
def test_queue_and_store_may_be_down_for_a_while(runnerless: Works) -> None:
    """The queue works without the store; a runner keeps its job until both are back."""
    program, input_ = runnerless.put(binary("echo")), runnerless.put(b"patience")
    runnerless.store.kill()
    job = runnerless.create_job(program, input_)
    runner = runnerless.runner("patient").wait()
    wait_until(lambda: runner.events("store_away"))
    assert runnerless.job(job)["status"] == "active"
    runnerless.queue.kill()
    runnerless.queue.begin().wait()
    runnerless.store.begin().wait()
    found = runnerless.wait_until_ended(job)
    assert runnerless.content(found["output_addr"]) == b"patience"
    assert runnerless.wait_until_ended(runnerless.create_job(program, input_))["status"] == "completed"


@pytest.mark.req("QQ-X01", "QQ-093", "QQ-103", "QQ-104")
def test_of_two_runners_of_one_job_the_first_loses(brisk: Works) -> None:
    """One that was suspended for too long detects that its job was claimed by another, and drops it."""
    # With one slot: another would wait for a job all the while, and get this one while it sleeps.
    sleeper = brisk.runner("sleeper", RUN_SECONDS="600", RUNNER_CONCURRENCY="1").wait()
    job = brisk.submit("sleep")
    brisk.wait_for_status(job, "active")
    sleeper.signal(signal.SIGSTOP)
    brisk.wait_for_status(job, "pending")
    brisk.runner("other", RUN_SECONDS="0.3").wait()
    # The suspended one must not run to claim it where the other one stands still for too long.
    assert brisk.read_reason(job).startswith("OUT_OF_TIME")
    sleeper.signal(signal.SIGCONT)
    lost = wait_until(lambda: sleeper.events("job_lost"))
    assert lost[0]["job_id"] == job
    assert brisk.job(job)["runner_id"] == "other"


@pytest.mark.req("QQ-X01", "QQ-X08", "QQ-048", "QQ-050")
def test_a_runner_discovers_queue_and_store(tmp_path: Path) -> None:
    """It has no address of them, only its credentials."""
    tokens = ",".join(f"{name}={hashlib.sha256(name.encode()).hexdigest()}" for name in ("client", "runner"))
    settings = {
        "MDNS_ENABLED": "true",
        "DEPLOYMENT_NAME": f"runners-{uuid4().hex}",
        "ACCEPTED_TOKENS": tokens,
    }
    with Works(tmp_path, "client", **settings, **LONG_AGE) as works:
        seeker = works.runner("seeker", QUEUE_ADDR="", STORE_URL="", CALLER_TOKEN="runner").wait()
        found = " ".join(each["message"] for each in seeker.events("found_upstream"))
        assert f":{works.queue.ports['port']}:" in found and works.store.url in found
        job = works.wait_until_ended(works.submit("words", b"found it"))
        assert works.content(job["output_addr"]) == b"2\n"
