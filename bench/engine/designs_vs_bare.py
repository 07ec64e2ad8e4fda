"""Benchmark `nox -s bench -- designs-vs-bare`: both designs against bare gRPC in one run, with bars.

Every ratio is of two sides measured right after each other, and the median of several such pairs. Beside the
ratio of rates is that of CPU time, which other programs on the machine disturb less. A submit is compared
with a bare echo with its messages. A job, from its submit to the answer with its result, is compared with the
same client on echoes that answer both at once, for as many calls as the job took over the network.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
from rich.console import Console

from bench.capacity import JOB, REQUESTS
from bench.engine.servers import Side, start_processes, use_carrier
from bench.machine import allocate_port, describe_host
from bench.report.terminal import narrow_table
from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.messages import (
    JobSpec,
    SubmitJobRequest,
)
from runtime.client import Client
from runtime.launch import Launched, launched
from runtime.transport.grpc.carrier import CARRIERS, DEFAULT

RESULTS = Path(__file__).parents[1] / "results"
NODES = 6
PAIRS = 5
CALLS = 3200
IN_FLIGHT = 32
LOADS = 2
"""Client processes against six nodes; a single one does not saturate them."""
_BUSY_MS = 600_000

RPCS: Mapping[str, Callable[[float], float]] = {
    "monolith": lambda early: 2 + early,
    "microservices": lambda early: (
        (1 + len(REQUESTS["submit"])) + len(JOB) + (1 + len(REQUESTS["result"])) + 2 * early
    ),
}
"""Calls over the network for a job, from submit to result, with that many polls before the end."""


@dataclass(frozen=True, slots=True)
class RpcRate:
    """A rate per second, and the CPU time of all processes for each call or job."""

    per_s: float
    cpu_us: float
    rpcs: float = 1.0
    """Calls over the network for each of them."""

    def scale_to_rpcs(self, rpcs: float) -> RpcRate:
        """Scale to that many calls over the network for each of them."""
        return RpcRate(self.per_s * self.rpcs / rpcs, self.cpu_us * rpcs / self.rpcs, rpcs)


def main(_arguments: list[str]) -> int:
    """Run all comparisons; return 1 if one misses its bar."""
    console = Console()
    before = describe_host()
    found = {}
    for carrier in CARRIERS:
        with use_carrier(carrier):
            for name, row in asyncio.run(_compare_all(console, carrier)).items():
                found[f"{name}, {carrier}"] = row
    rows = {
        f"{title}, {carrier}": (found[f"{name}, {carrier}"], bar if carrier == DEFAULT else None)
        for carrier in CARRIERS
        for title, name, bar in (
            ("SubmitJob, one node", "one node", 0.80),
            ("SubmitJob, six nodes", "six nodes", 0.75),
            ("jobs, monolith", "monolith jobs", 0.70),
            ("jobs, microservices", "microservices jobs", 0.70),
        )
    }
    columns = ("RPCs", "bare/s", "ours/s", "ratio", "bar", "CPU µs", "ours", "ratio")
    table = narrow_table("comparison", *columns)
    for name, (row, bar) in rows.items():
        table.add_row(
            *(name, f"{row['rpcs']:.1f}"),
            *(f"{row[key]:,.0f}" for key in ("bare_per_s", "ours_per_s")),
            *(f"{row['ratio']:.2f}", f">= {bar:.2f}" if bar else ""),
            *(f"{row[key]:,.0f}" for key in ("bare_cpu_us", "ours_cpu_us")),
            f"{row['cpu_ratio']:.2f}",
        )
    console.print(table)
    bars = {name: {"ratio": row["ratio"], "at_least": bar} for name, (row, bar) in rows.items()}
    report = {"machine": before, "command": "nox -s bench -- designs-vs-bare", "bars": bars, **found}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "designs-vs-bare.json").write_text(json.dumps(report, indent=2) + "\n")
    missed = [name for name, (row, bar) in rows.items() if bar and row["ratio"] < bar]
    console.print(f"Missed: {'; '.join(missed)}" if missed else "Every bar is met.")
    return int(bool(missed))


async def _compare_all(console: Console, carrier: str) -> dict[str, dict[str, float]]:
    console.print(f"carried by {carrier}")
    found = {}
    async with launched("taskqueue.monolith", ports="auto", tls=False) as nodes, nodes.client() as client:
        # Keep all slots busy, so that no job runs during the submits.
        for _ in range(NODES):
            await _submit(client, _BUSY_MS)
        with _start_echoes(1) as echo:
            found["one node"] = await _measure_pairs(
                console,
                "one node",
                lambda: _measure_submits(echo, 1),
                lambda: _measure_submits(_select_side(nodes, 1), 1),
            )
        with _start_echoes(NODES) as echoes:
            found["six nodes"] = await _measure_pairs(
                console,
                "six nodes",
                lambda: _measure_submits(echoes, LOADS),
                lambda: _measure_submits(_select_side(nodes), LOADS),
            )
    for name, rpcs in RPCS.items():
        with _start_echoes(NODES) as echoes:
            async with launched(f"taskqueue.{name}", ports="auto", tls=False) as running:
                found[f"{name} jobs"] = await _measure_pairs(
                    console,
                    f"{name} jobs",
                    partial(_measure_jobs, echoes, RPCS["monolith"]),
                    partial(_measure_jobs, _select_side(running), rpcs),
                )
    return found


async def _measure_pairs(
    console: Console,
    name: str,
    bare: Callable[[], Awaitable[RpcRate]],
    ours: Callable[[], Awaitable[RpcRate]],
) -> dict[str, float]:
    """Measure both sides in turns, with bare gRPC scaled to as many calls as ours took."""
    measured = [(await bare(), await ours()) for _ in range(PAIRS)]
    rows = [(plain.scale_to_rpcs(own.rpcs), own) for plain, own in measured]
    found = {
        "rpcs": statistics.median(own.rpcs for _, own in rows),
        "bare_per_s": statistics.median(plain.per_s for plain, _ in rows),
        "ours_per_s": statistics.median(own.per_s for _, own in rows),
        "ratio": statistics.median(own.per_s / plain.per_s for plain, own in rows),
        "bare_cpu_us": statistics.median(plain.cpu_us for plain, _ in rows),
        "ours_cpu_us": statistics.median(own.cpu_us for _, own in rows),
        "cpu_ratio": statistics.median(plain.cpu_us / own.cpu_us for plain, own in rows),
    }
    console.print(f"{name}: {found['ratio']:.2f}x, by CPU time {found['cpu_ratio']:.2f}x")
    return {key: round(value, 3) for key, value in found.items()}


async def _measure_submits(side: Side, clients: int) -> RpcRate:
    """Measure submits from that many client processes."""
    before = side.cpu()
    reports = await asyncio.gather(*(_run_client(side.address, IN_FLIGHT // clients) for _ in range(clients)))
    calls = sum(each["calls"] for each in reports)
    cpu_us = (side.cpu() - before) / calls * 1e6 + statistics.fmean(
        each["client_cpu_us_per_call"] for each in reports
    )
    return RpcRate(sum(each["calls_per_s"] for each in reports), cpu_us)


async def _measure_jobs(side: Side, rpcs: Callable[[float], float]) -> RpcRate:
    """Measure jobs from their submit to the answer with their result."""
    before = side.cpu()
    reports = await asyncio.gather(
        *(_run_client(side.address, IN_FLIGHT // LOADS, "job") for _ in range(LOADS))
    )
    jobs, early = sum(each["calls"] for each in reports), statistics.fmean(each["early"] for each in reports)
    clients_us = statistics.fmean(each["client_cpu_us_per_call"] for each in reports)
    cpu_us = (side.cpu() - before) / jobs * 1e6 + clients_us
    return RpcRate(sum(each["calls_per_s"] for each in reports), cpu_us, rpcs(early))


async def _run_client(address: str, in_flight: int, method: str = "submit") -> Mapping[str, float]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.engine.load", address, method, str(CALLS), str(in_flight), ""),
        stdout=subprocess.PIPE,
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"a client ended with code {process.returncode}")
    report: dict[str, float] = json.loads(output)
    return report


async def _submit(client: Client, work_ms: int) -> None:
    request = SubmitJobRequest(spec=JobSpec(job_type="bench", work_duration_ms=work_ms))
    await client.of(TaskQueuePublicServiceClient).submit_job(request, client.call())


def _select_side(running: Launched, nodes: int | None = None) -> Side:
    """Select all processes of a deployment, or its first few addresses and their processes."""
    addresses: Sequence[str] = running.env["CHARTER_ADDRESS"].split(",")[:nodes]
    pids = [process.pid for process in list(running.processes.values())[:nodes] if process.pid is not None]
    return Side([psutil.Process(pid) for pid in pids], ",".join(addresses))


@contextmanager
def _start_echoes(count: int) -> Iterator[Side]:
    ports = {f"submit-{number}": allocate_port() for number in range(count)}
    commands: dict[str, tuple[list[str], dict[str, str]]] = {
        name: (["bench.engine.bare_services", "submit", str(port)], {}) for name, port in ports.items()
    }
    with start_processes(commands, ports) as started:
        yield Side(started, ",".join(f"127.0.0.1:{port}" for port in ports.values()))
