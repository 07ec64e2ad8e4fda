"""Canned findings of both designs, for tests of tables and reports."""

from __future__ import annotations

from collections import Counter
from functools import cache

from bench.calibration import Costs
from bench.capacity import model_capacity
from bench.designs.anatomy import Anatomy, Segment
from bench.designs.findings import CapacityModel, DesignFindings
from bench.designs.manifest import MachineInfo, Manifest, describe_design, format_notes
from bench.designs.results import DesignResult, IntervalResult, Jobs, NodeUse, StepResult, summarize_requests
from bench.designs.sites import Launch
from bench.percentiles import LatencyHistogram
from bench.workload import FOLDER, Load, RequestKind, Workload, read_workload

WORKLOAD = read_workload(FOLDER / "taskqueue.yaml", quick=True)
MACHINE = MachineInfo(
    id="0123456789abcdef",
    cores=2,
    processor="a processor",
    memory_mb=1000,
    system="Linux 6",
    python="3.11.7",
    packages={"grpcio": "1.85.1"},
    load_before=(0.1, 0.2, 0.3),
    cpu_percent_before=1.5,
)
COSTS = Costs(
    bare_server_us=400,
    bare_caller_us=300,
    server_us=450,
    caller_us=350,
    local_us=20,
    inside_us={"local": 20, "submit": 200, "job": 700, "status": 70, "result": 90},
    crowding=1.25,
)
LAUNCHES = {
    "microservices": Launch(
        "taskqueue.microservices",
        ("127.0.0.1:50051",),
        dict.fromkeys(("gateway", "job", "queue", "coordinator", "worker", "result"), "127.0.0.1:1"),
        6,
    ),
    "monolith": Launch(
        "taskqueue.monolith",
        tuple(f"127.0.0.1:{50051 + each}" for each in range(6)),
        {f"monolith-{each}": f"127.0.0.1:{50051 + each}" for each in range(6)},
        6,
    ),
}


def create_histogram(*milliseconds: float) -> LatencyHistogram:
    """Create a histogram of these times."""
    found = LatencyHistogram()
    for each in milliseconds:
        found.record(each / 1000)
    return found


def create_step(load: Load, repeat: int, nodes: list[str]) -> StepResult:
    """Create a step in which every kind of the mix was answered ten times, in 1 to 10 ms."""
    kinds: list[RequestKind] = list(dict.fromkeys(load.mix.expand()))
    latencies = {kind: create_histogram(*range(1, 11)) for kind in kinds}
    answered = Counter(dict.fromkeys(kinds, 10))
    jobs = create_histogram(5, 10, 20, 40)
    listings = summarize_requests(latencies, answered, {}, load.run_s, secondary=True)
    return StepResult(
        load=load,
        repeat=repeat,
        primary=summarize_requests(latencies, answered, {}, load.run_s, secondary=False),
        secondary=listings if listings.answered else None,
        jobs=Jobs(
            done_per_s=1.0,
            done=4,
            submitted=4,
            backlog=0,
            unfinished=0,
            end_to_end=jobs.summarize(),
            end_to_end_histogram=jobs.encode(),
            waited=jobs.summarize(),
            observed=jobs.summarize(),
            observed_histogram=jobs.encode(),
        ),
        nodes=tuple(
            NodeUse(name=name, cpu_s=0.01, rss_mb=50, calls={"TaskQueuePublicService.SubmitJob": 10})
            for name in nodes
        ),
        clients=2,
        client_cpu_s=0.02,
        other_cpu_s=0.0,
        lag=create_histogram(0.1).summarize(),
        keyed=3,
        moments=tuple(IntervalResult(seconds=each / 2, per_s=20, p50_ms=2, p99_ms=9) for each in range(1, 9)),
    )


def create_manifest(workload: Workload = WORKLOAD) -> Manifest:
    """Create a manifest of two designs, measured in turns."""
    designs = {
        name: describe_design(launch.deployment, workload, MACHINE, [launch] * 2, {}, 30)
        for name, launch in LAUNCHES.items()
    }
    return Manifest(
        stamp="20260210T000000Z",
        command="python -m bench taskqueue --quick",
        commit="0123456789ab",
        quick=True,
        place="processes",
        carrier="grpcio",
        machine=MACHINE,
        workload=workload,
        workload_digest=workload.digest,
        order=("taskqueue.microservices", "taskqueue.monolith") * 2,
        designs=designs,
        notes=format_notes(designs, "processes"),
    )


@cache
def create_findings() -> DesignFindings:
    """Create the findings of a run of both designs."""
    designs = {
        name: DesignResult(
            deployment=launch.deployment,
            steps=tuple(
                create_step(load, repeat, list(launch.nodes))
                for repeat in range(2)
                for load in WORKLOAD.loads()
            ),
        )
        for name, launch in LAUNCHES.items()
    }
    capacities = {
        name: model_capacity(design, COSTS, 2, in_process=name == "monolith", slots=6)
        for name, design in designs.items()
    }
    segments = (Segment(name="client → gateway", median_us=300), Segment(name="job: CreateJob", median_us=90))
    return DesignFindings(
        manifest=create_manifest(),
        designs=designs,
        anatomies={
            name: Anatomy(deployment=name, calls=3, segments=segments, total_median_us=390)
            for name in designs
        },
        model=CapacityModel(costs=COSTS, designs={name: each for name, each in capacities.items() if each}),
    )
