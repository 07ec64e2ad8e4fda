"""Runners as processes: they run what they take, through outages of whatever they need."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from handlers.queuey.samples import binary
from tests.queuey.processes import Works, until

BRISK = {"ABANDONED_AGE": "3", "SWEEP_INTERVAL": "0.1", "MAX_ATTEMPTS": "20", "RUN_SECONDS": "5"}


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Works]:
    """A queue and a store, and one runner with two slots."""
    with Works(tmp_path_factory.mktemp("works"), **BRISK) as made:
        made.runner("steady", RUN_OUTPUT_BYTES="65536").wait()
        yield made


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Works]:
    """A queue and a store without a runner."""
    with Works(tmp_path_factory.mktemp("yard"), **BRISK) as made:
        yield made


@pytest.fixture
def lonely(yard: Works) -> Iterator[Works]:
    """The same for each test; the runners that it starts go with it."""
    yield yard
    yard.dismiss()


@pytest.mark.req("QQ-X01", "QQ-X04", "QQ-001")
def test_what_is_submitted_is_run_and_its_output_kept(works: Works) -> None:
    """Input goes in, output comes out, and what the binary said besides is in the report."""
    counted = works.submit("words", b"four words it has")
    complained, ended = works.submit("complain"), works.submit("exit")
    job = works.ended(counted)
    assert (job["status"], job["runner_id"], job["run_attempts"]) == ("completed", "steady", 1)
    assert works.content(job["output_addr"]) == b"4\n"
    works.ended(complained)
    report = works.job(complained, "/report")
    assert works.content(report["stderr_addr"]) == b"this is not right\n"
    assert works.ended(ended)["status"] == "failed"
    report = works.job(ended, "/report")
    assert (report["exit_code"], report["reason"].partition(":")[0]) == (7, "EXITED")


@pytest.mark.req("QQ-X02")
def test_nothing_in_a_job_brings_a_runner_down(works: Works) -> None:
    """Whatever is wrong with a job fails that job; the next one is run."""
    garbage = works.put(b"\x7fELF and so on")
    wrong = {
        works.submit("trap"): "TRAPPED",
        works.submit("hog"): "TRAPPED",
        works.submit("flood"): "OUTPUT_TOO_LARGE",
        works.wish(garbage): "NOT_WASI",
        works.wish("0" * 64): "NOT_FOUND",
        works.wish("a" * 512): "NOT_FOUND",
        works.wish("../../../../etc/passwd"): "NOT_FOUND",
        works.wish(works.put(b"x"), "ü" * 300): "NOT_FOUND",
        works.submit("loop"): "OUT_OF_TIME",
    }
    last = works.submit("echo", b"still here")
    for job_id, reason in wrong.items():
        assert works.reason(job_id).partition(":")[0] == reason
    assert works.content(works.ended(last)["output_addr"]) == b"still here"
    assert not works.runners[0].events("background_fault")


@pytest.mark.req("QQ-X01", "QQ-038")
def test_a_long_run_is_not_abandoned_and_others_run_beside_it(works: Works) -> None:
    """A run takes far longer than a job may be silent, and the second slot goes on meanwhile."""
    long = works.submit("loop")
    works.in_status(long, "active")
    beside = [works.ended(works.submit("echo", b"%d" % each)) for each in range(3)]
    assert [each["status"] for each in beside] == ["completed"] * 3
    assert works.job(long)["status"] == "active"
    assert works.reason(long).startswith("OUT_OF_TIME")
    assert works.job(long)["run_attempts"] == 1


@pytest.mark.req("QQ-X01")
def test_a_job_that_nobody_wants_any_more_is_ended(works: Works) -> None:
    """A runner that has lost its job stops running it, and is free for another."""
    job = works.submit("loop")
    works.in_status(job, "active")
    assert works.cancel(job)["status"] == "failed"
    lost = until(lambda: works.runners[0].events("job_lost"))
    assert lost[-1]["job_id"] == job
    assert works.ended(works.submit("noop"))["status"] == "completed"


@pytest.mark.req("QQ-047", "QQ-007")
def test_a_runner_that_is_killed_does_not_lose_its_job(lonely: Works) -> None:
    """Another runner runs it, and what the first one ran ends with it."""
    first = lonely.runner("first", RUN_SECONDS="600").wait()
    job = lonely.submit("loop")
    lonely.in_status(job, "active")
    assert first.process is not None
    ran = until(psutil.Process(first.process.pid).children)
    first.kill()
    _, left = psutil.wait_procs(ran, timeout=60)
    assert not left
    second = lonely.runner("second", RUN_SECONDS="0.3").wait()
    assert lonely.reason(job).startswith("OUT_OF_TIME")
    found = lonely.job(job)
    # Where the machine stands still for as long as a job may be silent, another attempt is counted.
    assert found["runner_id"] == "second" and found["run_attempts"] >= 3
    assert second.stop() == 0


@pytest.mark.req("QQ-X11")
def test_a_runner_that_is_stopped_gives_its_job_back(lonely: Works) -> None:
    """At once when it has no patience; with some it finishes what it can."""
    hasty = lonely.runner("hasty", RUN_SECONDS="60", SHUTDOWN_GRACE_SECONDS="0", ABANDONED_AGE="60").wait()
    job = lonely.submit("loop")
    lonely.in_status(job, "active")
    assert hasty.stop() == 0
    assert lonely.job(job)["status"] == "pending"
    patient = lonely.runner("patient", RUN_SECONDS="1.5").wait()
    lonely.in_status(job, "active")
    assert patient.stop() == 0
    assert (lonely.job(job)["status"], lonely.job(job)["runner_id"]) == ("failed", "patient")


@pytest.mark.req("QQ-X01", "QQ-019", "QQ-022")
def test_queue_and_store_may_be_away_for_a_while(lonely: Works) -> None:
    """The queue works without the store; a runner keeps its job until both are back."""
    program, given = lonely.put(binary("echo")), lonely.put(b"patience")
    lonely.store.kill()
    job = lonely.wish(program, given)
    runner = lonely.runner("patient").wait()
    until(lambda: runner.events("store_away"))
    assert lonely.job(job)["status"] == "active"
    lonely.queue.kill()
    lonely.queue.begin().wait()
    lonely.store.begin().wait()
    found = lonely.ended(job)
    assert lonely.content(found["output_addr"]) == b"patience"
    assert lonely.ended(lonely.wish(program, given))["status"] == "completed"


@pytest.mark.req("QQ-X01", "QQ-093", "QQ-103", "QQ-104")
def test_of_two_runners_on_one_job_the_first_loses(lonely: Works) -> None:
    """One that was asleep for too long learns that its job is another's, and drops it."""
    # With one slot: another would wait for a job all the while, and get this one while it sleeps.
    sleeper = lonely.runner("sleeper", RUN_SECONDS="60", RUNNER_CONCURRENCY="1").wait()
    job = lonely.submit("loop")
    lonely.in_status(job, "active")
    sleeper.signal(signal.SIGSTOP)
    lonely.in_status(job, "pending")
    lonely.runner("other", RUN_SECONDS="2").wait()
    lonely.in_status(job, "active")
    sleeper.signal(signal.SIGCONT)
    lost = until(lambda: sleeper.events("job_lost"))
    assert lost[0]["job_id"] == job
    assert lonely.reason(job).startswith("OUT_OF_TIME")
    assert lonely.job(job)["runner_id"] == "other"


@pytest.mark.req("QQ-X01", "QQ-X08", "QQ-048", "QQ-050")
def test_a_runner_finds_queue_and_store_on_the_network(tmp_path: Path) -> None:
    """It is told nothing of where they are, only what proves it."""
    tokens = ",".join(f"{name}={hashlib.sha256(name.encode()).hexdigest()}" for name in ("client", "runner"))
    with Works(tmp_path, "client", MDNS_ENABLED="true", ACCEPTED_TOKENS=tokens, **BRISK) as works:
        for attempt in range(5):
            seeker = works.runner(f"seeker-{attempt}", QUEUE_ADDR="", STORE_URL="", CALLER_TOKEN="runner")
            told = " ".join(each["message"] for each in seeker.wait().events("found_upstream"))
            if f":{works.queue.ports['port']}:" in told and works.store.url in told:
                break
            seeker.kill()  # Somebody else on this network has a queue, too.
        job = works.ended(works.submit("words", b"found it"))
        assert works.content(job["output_addr"]) == b"2\n"
