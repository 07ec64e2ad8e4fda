"""The load generator against real deployments: seconds of load at two levels, chosen by options alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.designs.command import bench
from bench.designs.findings import Findings

SUBMIT, STATUS = "TaskQueuePublicService.SubmitJob", "TaskQueuePublicService.GetJobStatus"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Both designs with 2 and then 6 users."""
    folder = tmp_path_factory.mktemp("bench")
    options = "--step ladder --concurrency 2,6 --warm-up 0.1 --run 1 --repeats 1 --clients 1 --no-parts"
    ran = CliRunner().invoke(bench, ["taskqueue", *options.split(), "--out", str(folder)])
    assert ran.exit_code == 0, ran.output
    assert "Report:" in ran.output
    assert (Path(folder) / "report.html").exists()
    return Findings.load(folder)


@pytest.mark.req("TQ-218", "TQ-202")
def test_two_levels_of_concurrency_run_by_option_only(found: Findings) -> None:
    """At each of them both designs answer, finish jobs, and are measured, without a failure."""
    for design in found.designs.values():
        assert [step.load.level for step in design.steps] == [2, 6]
        for step in design.steps:
            assert step.primary.answered > 0
            assert step.primary.failed == {}
            assert step.jobs.submitted > 0
            assert step.jobs.end_to_end.count == step.jobs.submitted
            assert step.client_cpu_s > 0
            assert sum(node.cpu_s for node in step.nodes) > 0


@pytest.mark.req("TQ-200", "TQ-019")
def test_the_microservices_are_called_at_their_gateway_only(found: Findings) -> None:
    """One address, which is the gateway's; nobody else answers a public method."""
    launch = found.manifest.designs["microservices"].launches[0]
    assert len(launch) == 1
    for step in found.designs["microservices"].steps:
        calls = {node.name: node.calls for node in step.nodes}
        assert calls["gateway"][SUBMIT] > 0
        assert all(SUBMIT not in made for name, made in calls.items() if name != "gateway")


@pytest.mark.req("TQ-200", "TQ-195", "TQ-194")
def test_the_monolith_is_called_at_the_owner_of_each_job(found: Findings) -> None:
    """Submits go round all six nodes, and whoever asks about a job asks the node that has it."""
    assert len(found.manifest.designs["monolith"].launches[0]) == 6
    for step in found.designs["monolith"].steps:
        submits = [node.calls.get(SUBMIT, 0) for node in step.nodes]
        assert min(submits) > 0
        assert max(submits) - min(submits) <= step.load.level + 1
        assert sum(node.calls.get(STATUS, 0) for node in step.nodes) > 0
        assert step.primary.failed == {}


@pytest.mark.req("TQ-199")
def test_unequal_slots_are_refused_before_anything_starts(tmp_path: Path) -> None:
    """The command ends with the reason, and writes nothing."""
    ran = CliRunner().invoke(bench, ["taskqueue", "--set", "WORKER_SLOTS=1", "--out", str(tmp_path / "none")])
    assert ran.exit_code == 1
    assert "taskqueue.microservices has 1 slots in all, and the spec's budget is 6." in ran.output
    assert not (tmp_path / "none").exists()
