"""Runners as processes: they run what they take, through outages of whatever they need."""

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
CALM = {**BRISK, "ABANDONED_AGE": "600"}
"""Whatever stands still, no job is taken from its runner."""
LIVELY = {"ABANDONED_AGE": "3"}
"""For a runner of a calm queue: it gives its signs of life as often as a brisk one would want them."""


@pytest.fixture(scope="module")
def works(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Works]:
    """A queue and a store, and one runner with two slots."""
    with Works(tmp_path_factory.mktemp("works"), **CALM) as made:
        made.runner("steady", RUN_OUTPUT_BYTES="65536", **LIVELY).wait()
        yield made


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Works]:
    """A queue and a store without a runner."""
    with Works(tmp_path_factory.mktemp("yard"), **CALM) as made:
        yield made


@pytest.fixture
def lonely(yard: Works) -> Iterator[Works]:
    """The same for each test; the runners that it starts go with it."""
    yield yard
    yard.dismiss()


@pytest.fixture
def brisk(tmp_path: Path) -> Iterator[Works]:
    """A queue of its own, from which jobs are soon abandoned."""
    with Works(tmp_path, **BRISK) as made:
        yield made


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
def test_a_long_run_is_not_abandoned_and_others_run_beside_it(lonely: Works) -> None:
    """It gives one sign of life after the other, and the second slot goes on meanwhile."""
    lonely.runner("lasting", RUN_SECONDS="600", **LIVELY).wait()
    long = lonely.submit("loop")
    lonely.in_status(long, "active")
    beside = [lonely.ended(lonely.submit("echo", b"%d" % each)) for each in range(3)]
    assert [each["status"] for each in beside] == ["completed"] * 3
    for _ in range(4):
        before = lonely.job(long)
        wait_until(lambda before=before: lonely.job(long)["updated_at"] > before["updated_at"])  # type: ignore[misc]
    found = lonely.job(long)
    assert (found["status"], found["runner_id"], found["run_attempts"]) == ("active", "lasting", 1)
    lonely.cancel(long)


@pytest.mark.req("QQ-X01")
def test_a_job_that_nobody_wants_any_more_is_ended(works: Works) -> None:
    """A runner that has lost its job stops running it, and is free for another."""
    job = works.submit("loop")
    works.in_status(job, "active")
    assert works.cancel(job)["status"] == "failed"
    lost = wait_until(lambda: works.runners[0].events("job_lost"))
    assert lost[-1]["job_id"] == job
    assert works.ended(works.submit("noop"))["status"] == "completed"


@pytest.mark.req("QQ-047", "QQ-007")
def test_a_runner_that_is_killed_does_not_lose_its_job(brisk: Works) -> None:
    """Another runner runs it, and what the first one ran ends with it."""
    first = brisk.runner("first", RUN_SECONDS="600").wait()
    job = brisk.submit("loop")
    brisk.in_status(job, "active")
    assert first.process is not None
    ran = wait_until(psutil.Process(first.process.pid).children)
    first.kill()
    _, left = psutil.wait_procs(ran, timeout=60)
    assert not left
    second = brisk.runner("second", RUN_SECONDS="0.3").wait()
    assert brisk.reason(job).startswith("OUT_OF_TIME")
    found = brisk.job(job)
    # Where the machine stands still for as long as a job may be silent, another attempt is counted.
    assert found["runner_id"] == "second" and found["run_attempts"] >= 3
    assert second.stop() == 0


@pytest.mark.req("QQ-X11")
def test_a_runner_that_is_stopped_gives_its_job_back(lonely: Works) -> None:
    """At once when it has no patience; with some it finishes what it can."""
    hasty = lonely.runner("hasty", RUN_SECONDS="600", SHUTDOWN_GRACE_SECONDS="0").wait()
    job = lonely.submit("loop")
    lonely.in_status(job, "active")
    assert hasty.stop() == 0
    assert lonely.job(job)["status"] == "pending"
    patient = lonely.runner("patient", RUN_SECONDS="1.5").wait()
    lonely.in_status(job, "active")
    assert patient.stop() == 0
    assert (lonely.job(job)["status"], lonely.job(job)["runner_id"]) == ("failed", "patient")


@pytest.mark.req("QQ-X11", "QQ-036", "QQ-104")
def test_more_stops_than_attempts_end_no_job(tmp_path: Path) -> None:
    """Being stopped counts as no attempt, however often it happens, and the history names each stop."""
    stops, attempts = 4, 3
    with Works(tmp_path, **{**CALM, "MAX_ATTEMPTS": str(attempts)}) as works:
        job = works.submit("loop")
        for _ in range(stops):
            runner = works.runner("deployed", RUN_SECONDS="600", SHUTDOWN_GRACE_SECONDS="0").wait()
            works.in_status(job, "active")
            assert runner.stop() == 0
            assert works.job(job)["status"] == "pending"
        works.runner("last", RUN_SECONDS="0.3").wait()
        assert works.reason(job).startswith("OUT_OF_TIME"), "it ran to an end of its own"
        edges = [each["transition"] for each in works.job(job, "/report")["changes"]]
        # A slot of a runner that is stopped may take what another has given back, and gives it back too.
        again = (len(edges) - 3) // 2
        assert edges == ["", *["claim", "release"] * again, "claim", "fail"] and again >= stops
        assert works.job(job)["run_attempts"] == again + 1, "each taking has a number of its own"


@pytest.mark.req("QQ-X01", "QQ-019", "QQ-022")
def test_queue_and_store_may_be_away_for_a_while(lonely: Works) -> None:
    """The queue works without the store; a runner keeps its job until both are back."""
    program, given = lonely.put(binary("echo")), lonely.put(b"patience")
    lonely.store.kill()
    job = lonely.wish(program, given)
    runner = lonely.runner("patient").wait()
    wait_until(lambda: runner.events("store_away"))
    assert lonely.job(job)["status"] == "active"
    lonely.queue.kill()
    lonely.queue.begin().wait()
    lonely.store.begin().wait()
    found = lonely.ended(job)
    assert lonely.content(found["output_addr"]) == b"patience"
    assert lonely.ended(lonely.wish(program, given))["status"] == "completed"


@pytest.mark.req("QQ-X01", "QQ-093", "QQ-103", "QQ-104")
def test_of_two_runners_on_one_job_the_first_loses(brisk: Works) -> None:
    """One that was asleep for too long learns that its job is another's, and drops it."""
    # With one slot: another would wait for a job all the while, and get this one while it sleeps.
    sleeper = brisk.runner("sleeper", RUN_SECONDS="600", RUNNER_CONCURRENCY="1").wait()
    job = brisk.submit("loop")
    brisk.in_status(job, "active")
    sleeper.signal(signal.SIGSTOP)
    brisk.in_status(job, "pending")
    brisk.runner("other", RUN_SECONDS="0.3").wait()
    # The sleeper must not be awake to take it where the other one stands still for too long.
    assert brisk.reason(job).startswith("OUT_OF_TIME")
    sleeper.signal(signal.SIGCONT)
    lost = wait_until(lambda: sleeper.events("job_lost"))
    assert lost[0]["job_id"] == job
    assert brisk.job(job)["runner_id"] == "other"


@pytest.mark.req("QQ-X01", "QQ-X08", "QQ-048", "QQ-050")
def test_a_runner_finds_queue_and_store_on_the_network(tmp_path: Path) -> None:
    """It is told nothing of where they are, only what proves it."""
    tokens = ",".join(f"{name}={hashlib.sha256(name.encode()).hexdigest()}" for name in ("client", "runner"))
    settings = {
        "MDNS_ENABLED": "true",
        "DEPLOYMENT_NAME": f"runners-{uuid4().hex}",
        "ACCEPTED_TOKENS": tokens,
    }
    with Works(tmp_path, "client", **settings, **CALM) as works:
        seeker = works.runner("seeker", QUEUE_ADDR="", STORE_URL="", CALLER_TOKEN="runner").wait()
        found = " ".join(each["message"] for each in seeker.events("found_upstream"))
        assert f":{works.queue.ports['port']}:" in found and works.store.url in found
        job = works.ended(works.submit("words", b"found it"))
        assert works.content(job["output_addr"]) == b"2\n"
