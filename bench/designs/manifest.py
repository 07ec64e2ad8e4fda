"""Under which circumstances something was measured, so that somebody else can judge or repeat it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from bench.designs.results import Record
from bench.designs.sites import Kind, Launch
from bench.workload import Workload
from runtime.node.systems import find_deployment

PACKAGES = ("grpcio", "hdrhistogram", "prometheus-client", "protobuf", "psutil", "uvloop")
_DEDUP_VARIABLE = "MAX_DEDUP_KEYS"


class Machine(Record):
    """What it ran on, and how busy that was before."""

    id: str
    """Tells machines apart without naming them."""
    cores: int
    processor: str
    memory_mb: int
    system: str
    python: str
    packages: Mapping[str, str]
    load_before: tuple[float, float, float]
    cpu_percent_before: float


class Dedup(Record):
    """How many submit keys each design remembers, and how many the load used."""

    per_process: int
    in_all: int
    keyed_submits: int
    """The most of any launch, with warm-up."""

    @property
    def within(self) -> bool:
        return self.keyed_submits <= self.per_process


class DesignManifest(Record):
    """How one design was deployed."""

    deployment: str
    spec_digest: str
    slots: int | None
    """None where they cannot be seen from outside."""
    slots_in_spec: int
    tls: bool
    workload_digest: str
    seed: int
    settings: Mapping[str, str]
    machine_id: str
    launches: tuple[tuple[str, ...], ...]
    """The addresses that clients used, in the order that decides who owns what; fixed for each launch."""
    nodes: tuple[str, ...]
    dedup: Dedup


class Manifest(Record):
    """One invocation of the benchmark."""

    stamp: str
    command: str
    commit: str
    quick: bool
    place: Kind
    """Where the nodes ran."""
    carrier: str
    """What carried gRPC at the nodes."""
    machine: Machine
    workload: Workload
    workload_digest: str
    order: tuple[str, ...]
    """Which design was measured when."""
    designs: Mapping[str, DesignManifest]
    notes: tuple[str, ...]


def describe_machine() -> Machine:
    """The machine as it is now; takes a second, in which it looks how busy it is."""
    return Machine(
        id=_machine_id(),
        cores=os.cpu_count() or 1,
        processor=_processor(),
        memory_mb=psutil.virtual_memory().total // 1_000_000,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        packages={name: importlib.metadata.version(name) for name in PACKAGES},
        load_before=_rounded(os.getloadavg()),
        cpu_percent_before=psutil.cpu_percent(interval=1.0),
    )


def describe_design(
    deployment: str,
    workload: Workload,
    machine: Machine,
    launches: Sequence[Launch],
    settings: Mapping[str, str],
    keyed_submits: int,
) -> DesignManifest:
    """How a design was deployed, by what its processes were really given."""
    system, table = find_deployment(deployment)
    per_process = int(settings.get(_DEDUP_VARIABLE) or system.variables[_DEDUP_VARIABLE].default or 0)
    keepers = sum(node.replicas for node in table.nodes.values() if _DEDUP_VARIABLE in node.variables)
    return DesignManifest(
        deployment=deployment,
        spec_digest=system.digest,
        slots=launches[0].slots,
        slots_in_spec=table.slots_total or 0,
        tls=workload.tls,
        workload_digest=workload.digest,
        seed=workload.seed,
        settings=dict(settings),
        machine_id=machine.id,
        launches=tuple(launch.addresses for launch in launches),
        nodes=tuple(launches[0].nodes),
        dedup=Dedup(per_process=per_process, in_all=per_process * keepers, keyed_submits=keyed_submits),
    )


_PLACES: Mapping[Kind, str] = {
    "processes": "Nodes and clients share one machine, so that what clients use is not there for the nodes.",
    "containers": "Nodes run in containers of the generated compose files, each with one processor at most, "
    "and clients come in by the published ports; all share one machine.",
    "running": "The nodes were up already: what they use of their machines is not in the numbers.",
}


def notes(designs: Mapping[str, DesignManifest], place: Kind) -> tuple[str, ...]:
    """What a reader has to know of the comparison and the numbers alone do not say."""
    bounds = "; ".join(
        f"{name} remembers {design.dedup.in_all} submit keys in all "
        f"({design.dedup.per_process} a process) and got {design.dedup.keyed_submits} at most in a launch"
        for name, design in designs.items()
    )
    return (
        f"Deduplication: {bounds}.",
        _PLACES[place],
        "End-to-end times come from the stamps of the records, which are whole milliseconds.",
    )


def commit() -> str:
    """The commit that was measured, and whether the files differ from it."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def _machine_id() -> str:
    path = Path("/etc/machine-id")
    known = path.read_text() if path.exists() else ""
    return hashlib.sha256(f"{platform.node()}/{known}".encode()).hexdigest()[:16]


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _rounded(load: tuple[float, float, float]) -> tuple[float, float, float]:
    return (round(load[0], 2), round(load[1], 2), round(load[2], 2))
