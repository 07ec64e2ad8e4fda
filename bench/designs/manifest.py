"""Manifest of a measurement: machine, versions, settings and order, to judge or repeat it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from bench.designs.results import ResultRecord
from bench.designs.sites import Launch, SiteKind
from bench.workload import Workload
from runtime.node.systems import find_deployment

PACKAGES = ("grpcio", "hdrhistogram", "prometheus-client", "protobuf", "psutil", "uvloop")
_DEDUP_VARIABLE = "MAX_DEDUP_KEYS"


class MachineInfo(ResultRecord):
    """The machine, and its load before the run."""

    id: str
    """A hash that distinguishes machines without naming them."""
    cores: int
    processor: str
    memory_mb: int
    system: str
    python: str
    packages: Mapping[str, str]
    load_before: tuple[float, float, float]
    cpu_percent_before: float


class DedupUse(ResultRecord):
    """The submit keys that a design remembers, and those that the load used."""

    per_process: int
    in_all: int
    keyed_submits: int
    """The most of any launch, with warm-up."""

    @property
    def is_within_bound(self) -> bool:
        return self.keyed_submits <= self.per_process


class DesignManifest(ResultRecord):
    """The deployment of one design."""

    deployment: str
    spec_digest: str
    slots: int | None
    """None where they are not visible from outside."""
    slots_in_spec: int
    tls: bool
    workload_digest: str
    seed: int
    settings: Mapping[str, str]
    machine_id: str
    launches: tuple[tuple[str, ...], ...]
    """The addresses that clients used, in the order that decides which node owns a job."""
    nodes: tuple[str, ...]
    dedup: DedupUse


class Manifest(ResultRecord):
    """One invocation of the benchmark."""

    stamp: str
    command: str
    commit: str
    quick: bool
    place: SiteKind
    """The kind of site on which the nodes ran."""
    carrier: str
    """The gRPC carrier of the nodes."""
    machine: MachineInfo
    workload: Workload
    workload_digest: str
    order: tuple[str, ...]
    """The designs in the order of their measurements."""
    designs: Mapping[str, DesignManifest]
    notes: tuple[str, ...]


def describe_machine() -> MachineInfo:
    """Describe the machine as it is now; samples its CPU use for a second."""
    return MachineInfo(
        id=_hash_machine_id(),
        cores=os.cpu_count() or 1,
        processor=_read_processor_name(),
        memory_mb=psutil.virtual_memory().total // 1_000_000,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        packages={name: importlib.metadata.version(name) for name in PACKAGES},
        load_before=_round_load(os.getloadavg()),
        cpu_percent_before=psutil.cpu_percent(interval=1.0),
    )


def describe_design(
    deployment: str,
    workload: Workload,
    machine: MachineInfo,
    launches: Sequence[Launch],
    settings: Mapping[str, str],
    keyed_submits: int,
) -> DesignManifest:
    """Describe the deployment of a design, by the variables that its processes really had."""
    system, table = find_deployment(deployment)
    per_process = int(settings.get(_DEDUP_VARIABLE) or system.variables[_DEDUP_VARIABLE].default or 0)
    processes = sum(node.replicas for node in table.nodes.values() if _DEDUP_VARIABLE in node.variables)
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
        dedup=DedupUse(per_process=per_process, in_all=per_process * processes, keyed_submits=keyed_submits),
    )


_PLACES: Mapping[SiteKind, str] = {
    "processes": "Nodes and clients share one machine, so that nodes lack the CPU that clients use.",
    "containers": "Nodes run in containers of the generated compose files, each with one processor at most, "
    "and clients come in by the published ports; all share one machine.",
    "running": "The nodes were running already: their CPU and memory are not in the numbers.",
}


def format_notes(designs: Mapping[str, DesignManifest], place: SiteKind) -> tuple[str, ...]:
    """Format the notes that a reader of the numbers needs."""
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


def describe_commit() -> str:
    """Describe the commit that is measured, and whether the files differ from it."""
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


def _hash_machine_id() -> str:
    path = Path("/etc/machine-id")
    known = path.read_text() if path.exists() else ""
    return hashlib.sha256(f"{platform.node()}/{known}".encode()).hexdigest()[:16]


def _read_processor_name() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _round_load(load: tuple[float, float, float]) -> tuple[float, float, float]:
    return (round(load[0], 2), round(load[1], 2), round(load[2], 2))
