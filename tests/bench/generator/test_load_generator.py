"""The load generator against real deployments: seconds of load at two levels, chosen by options alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.designs.command import bench
from bench.designs.findings import DesignFindings
from bench.designs.nodes import compute_use
from bench.designs.sites import LocalProcesses, Site
from bench.generator.fleet import Fleet
from bench.workload import Load, Mix
from tests.support.taskqueue.forked_deployments import ForkedNodeProcess

SUBMIT, STATUS = "TaskQueuePublicService.SubmitJob", "TaskQueuePublicService.GetJobStatus"


@pytest.fixture(scope="module", autouse=True)
def forked_nodes() -> Iterator[None]:
    """Fork the nodes, which takes a tenth of the time of an interpreter of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("runtime.launch.deployment.NodeProcess", ForkedNodeProcess)
        yield


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> DesignFindings:
    """Both designs with 2 and then 6 users; for longer where a busy machine left a call unanswered."""
    for seconds in (0.4, 5, 20):
        folder = tmp_path_factory.mktemp("bench")
        options = f"--run {seconds} --concurrency 2,6 --warm-up 0.1 --repeats 1 --clients 1 --no-parts"
        ran = CliRunner().invoke(
            bench, ["taskqueue", "--step", "ladder", *options.split(), "--out", str(folder)]
        )
        assert ran.exit_code == 0, ran.output
        assert "Report:" in ran.output
        assert (Path(folder) / "report.html").exists()
        found = DesignFindings.load(folder)
        steps = [step for design in found.designs.values() for step in design.steps]
        if all(step.primary.answered and not step.primary.failed for step in steps):
            break
    return found


@pytest.mark.req("TQ-218", "TQ-202")
def test_two_levels_of_concurrency_run_by_option_only(found: DesignFindings) -> None:
    """At each of them both designs answer, finish jobs, and are measured, without a failure."""
    addresses = {name: len(design.launches[0]) for name, design in found.manifest.designs.items()}
    assert addresses == {"microservices": 1, "monolith": 6}
    for design in found.designs.values():
        assert [step.load.level for step in design.steps] == [2, 6]
        for step in design.steps:
            assert step.primary.answered > 0
            assert step.primary.failed == {}
            assert step.jobs.submitted > 0
            assert step.jobs.end_to_end.count == step.jobs.submitted
            assert step.client_cpu_s > 0
            assert sum(node.cpu_s for node in step.nodes) > 0


@dataclass(frozen=True)
class RunningSite:
    """A deployment that no benchmark has launched, and the event loop that runs it."""

    site: Site
    runner: asyncio.Runner

    def count_calls(self) -> tuple[list[Mapping[str, int]], int]:
        """Count the calls that each node answers to one client process, and its submits without an answer.

        They are counted before the process starts to call and after it has ended.
        """
        return self.runner.run(self._count_calls())

    async def _count_calls(self) -> tuple[list[Mapping[str, int]], int]:
        load = Load(
            step="ladder",
            loop="closed",
            level=6,
            mix=Mix(submit=1, status=2, result=1),
            job_ms=0,
            payload_bytes=64,
            keyed_share=0,
            seed=1,
            warm_up_s=0.1,
            run_s=0.5,
        )
        async with Fleet(self.site.target, 1) as fleet:
            before = await self.site.meter.read_before()
            outcome = await fleet.send(load)
            codes = sum(outcome.failures.values(), Counter[str]())
            assert "NOT_FOUND" not in codes, "a node was asked about a job that another one has"
            calls = [node.calls for node in compute_use(before, await self.site.meter.read_after())]
            return calls, outcome.failures.get("submit", Counter[str]()).total()


@contextmanager
def run_site(deployment: str) -> Iterator[RunningSite]:
    with asyncio.Runner() as runner:
        opened = LocalProcesses({}).open(deployment, True)
        site = runner.run(opened.__aenter__())
        try:
            yield RunningSite(site, runner)
        finally:
            runner.run(opened.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def microservices() -> Iterator[RunningSite]:
    with run_site("taskqueue.microservices") as running:
        yield running


@pytest.fixture(scope="module")
def monolith() -> Iterator[RunningSite]:
    with run_site("taskqueue.monolith") as running:
        yield running


@pytest.mark.req("TQ-200", "TQ-019")
def test_the_microservices_are_called_at_their_gateway_only(microservices: RunningSite) -> None:
    """One address, which is the gateway's; no other node answers a public method."""
    assert len(microservices.site.target.addresses) == 1
    calls, _ = microservices.count_calls()
    assert len([each for each in calls if SUBMIT in each]) == 1


@pytest.mark.req("TQ-200", "TQ-195", "TQ-194")
def test_the_monolith_is_called_at_the_owner_of_each_job(monolith: RunningSite) -> None:
    """Submits go round all six nodes, and questions about a job go to the node that has it."""
    assert len(monolith.site.target.addresses) == 6
    calls, unanswered = monolith.count_calls()
    submits = [each.get(SUBMIT, 0) for each in calls]
    assert len(submits) == 6
    assert max(submits) - min(submits) <= 1 + unanswered
    assert sum(submits) > 0
    assert sum(each.get(STATUS, 0) for each in calls) > 0


@pytest.mark.req("TQ-218", "TQ-219")
@pytest.mark.parametrize("design", ["microservices", "monolith"])
def test_load_is_put_on_a_deployment_that_runs_already(
    design: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """By its addresses and its authority alone; clients and jobs are measured, and the nodes are not."""
    running: RunningSite = request.getfixturevalue(design)
    options = "--step ladder --concurrency 2 --warm-up 0.1 --run 0.5 --repeats 1 --clients 1"
    target = running.site.target
    where = ("--target", ",".join(target.addresses), "--ca-file", str(target.ca_file))
    ran = CliRunner().invoke(bench, [f"taskqueue.{design}", *options.split(), *where, "--out", str(tmp_path)])
    assert ran.exit_code == 0, ran.output
    found = DesignFindings.load(tmp_path)
    assert found.manifest.place == "running"
    (measured,) = found.designs.values()
    (step,) = measured.steps
    assert step.primary.answered > 0
    assert step.primary.failed == {}
    assert step.jobs.submitted > 0
    assert step.nodes == ()
    assert (tmp_path / "loads.csv").exists()


@pytest.mark.req("TQ-199")
def test_unequal_slots_are_refused_before_anything_starts(tmp_path: Path) -> None:
    """The command ends with the reason, and writes nothing."""
    ran = CliRunner().invoke(bench, ["taskqueue", "--set", "WORKER_SLOTS=1", "--out", str(tmp_path / "none")])
    assert ran.exit_code == 1
    assert "taskqueue.microservices has 1 slots in all, and the spec's budget is 6." in ran.output
    assert not (tmp_path / "none").exists()
