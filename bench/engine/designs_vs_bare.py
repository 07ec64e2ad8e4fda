"""Both designs beside bare gRPC in one run: `nox -s bench -- designs-vs-bare` prints ratios and their bars.

Every ratio is of two things measured right after each other, and the middle of several such pairs. Beside the
ratio of rates stands that of processor time, which other programs on the machine disturb less. A submit is
held against a bare echo with its messages. A job, from its submit to its result in the client's hands, is
held against the same client with echoes that answer both at once, for as many calls as it took over the
network.
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
from bench.engine.servers import Side, carried_by, processes
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
"""Client processes against six nodes; one of them is no match for so many."""
_BUSY_MS = 600_000

RPCS: Mapping[str, Callable[[float], float]] = {
    "monolith": lambda early: 2 + early,
    "microservices": lambda early: (
        (1 + len(REQUESTS["submit"])) + len(JOB) + (1 + len(REQUESTS["result"])) + 2 * early
    ),
}
"""Calls over the network for a job, from submit to result, with so many questions asked too early."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Something that was done so many times a second, and what it cost in all processes together."""

    per_s: float
    cpu_us: float
    rpcs: float = 1.0
    """Calls over the network that each of them took."""

    def for_rpcs(self, rpcs: float) -> Rate:
        """What it would be if each took so many calls of the same kind."""
        return Rate(self.per_s * self.rpcs / rpcs, self.cpu_us * rpcs / self.rpcs, rpcs)


def main(_arguments: list[str]) -> int:
    """Run all comparisons; 1 if one misses its bar."""
    console = Console()
    before = describe_host()
    found = {}
    for carrier in CARRIERS:
        with carried_by(carrier):
            for name, row in asyncio.run(_all(console, carrier)).items():
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
    told = {"machine": before, "command": "nox -s bench -- designs-vs-bare", "bars": bars, **found}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "designs-vs-bare.json").write_text(json.dumps(told, indent=2) + "\n")
    missed = [name for name, (row, bar) in rows.items() if bar and row["ratio"] < bar]
    console.print(f"Missed: {'; '.join(missed)}" if missed else "Every bar is met.")
    return int(bool(missed))


async def _all(console: Console, carrier: str) -> dict[str, dict[str, float]]:
    console.print(f"carried by {carrier}")
    found = {}
    async with launched("taskqueue.monolith", ports="auto", tls=False) as nodes, nodes.client() as client:
        # With all slots taken a submit is only a submit: no job is run while others are taken in.
        for _ in range(NODES):
            await _submit(client, _BUSY_MS)
        with _echoes(1) as echo:
            found["one node"] = await _pairs(
                console, "one node", lambda: _calls(echo, 1), lambda: _calls(_side(nodes, 1), 1)
            )
        with _echoes(NODES) as echoes:
            found["six nodes"] = await _pairs(
                console, "six nodes", lambda: _calls(echoes, LOADS), lambda: _calls(_side(nodes), LOADS)
            )
    for name, rpcs in RPCS.items():
        with _echoes(NODES) as echoes:
            async with launched(f"taskqueue.{name}", ports="auto", tls=False) as running:
                found[f"{name} jobs"] = await _pairs(
                    console,
                    f"{name} jobs",
                    partial(_jobs, echoes, RPCS["monolith"]),
                    partial(_jobs, _side(running), rpcs),
                )
    return found


async def _pairs(
    console: Console,
    name: str,
    bare: Callable[[], Awaitable[Rate]],
    ours: Callable[[], Awaitable[Rate]],
) -> dict[str, float]:
    """Measure both in turns. What bare gRPC would allow is its RPCs a second over those of a thing."""
    measured = [(await bare(), await ours()) for _ in range(PAIRS)]
    rows = [(plain.for_rpcs(own.rpcs), own) for plain, own in measured]
    found = {
        "rpcs": statistics.median(own.rpcs for _, own in rows),
        "bare_per_s": statistics.median(plain.per_s for plain, _ in rows),
        "ours_per_s": statistics.median(own.per_s for _, own in rows),
        "ratio": statistics.median(own.per_s / plain.per_s for plain, own in rows),
        "bare_cpu_us": statistics.median(plain.cpu_us for plain, _ in rows),
        "ours_cpu_us": statistics.median(own.cpu_us for _, own in rows),
        "cpu_ratio": statistics.median(plain.cpu_us / own.cpu_us for plain, own in rows),
    }
    console.print(f"{name}: {found['ratio']:.2f}x, by processor time {found['cpu_ratio']:.2f}x")
    return {key: round(value, 3) for key, value in found.items()}


async def _calls(side: Side, clients: int) -> Rate:
    """Submit from so many client processes."""
    before = side.cpu()
    told = await asyncio.gather(*(_load(side.address, IN_FLIGHT // clients) for _ in range(clients)))
    calls = sum(each["calls"] for each in told)
    cpu_us = (side.cpu() - before) / calls * 1e6 + statistics.fmean(
        each["client_cpu_us_per_call"] for each in told
    )
    return Rate(sum(each["calls_per_s"] for each in told), cpu_us)


async def _jobs(side: Side, rpcs: Callable[[float], float]) -> Rate:
    """Jobs from their submit to their result in the client's hands."""
    before = side.cpu()
    told = await asyncio.gather(*(_load(side.address, IN_FLIGHT // LOADS, "job") for _ in range(LOADS)))
    jobs, early = sum(each["calls"] for each in told), statistics.fmean(each["early"] for each in told)
    clients_us = statistics.fmean(each["client_cpu_us_per_call"] for each in told)
    cpu_us = (side.cpu() - before) / jobs * 1e6 + clients_us
    return Rate(sum(each["calls_per_s"] for each in told), cpu_us, rpcs(early))


async def _load(address: str, in_flight: int, method: str = "submit") -> Mapping[str, float]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.engine.load", address, method, str(CALLS), str(in_flight), ""),
        stdout=subprocess.PIPE,
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"a client ended with code {process.returncode}")
    told: dict[str, float] = json.loads(output)
    return told


async def _submit(client: Client, work_ms: int) -> None:
    request = SubmitJobRequest(spec=JobSpec(job_type="bench", work_duration_ms=work_ms))
    await client.of(TaskQueuePublicServiceClient).submit_job(request, client.call())


def _side(running: Launched, nodes: int | None = None) -> Side:
    """All processes of a deployment, or the first so many of its addresses and all that serves them."""
    addresses: Sequence[str] = running.env["CHARTER_ADDRESS"].split(",")[:nodes]
    pids = [process.pid for process in list(running.processes.values())[:nodes] if process.pid is not None]
    return Side([psutil.Process(pid) for pid in pids], ",".join(addresses))


@contextmanager
def _echoes(count: int) -> Iterator[Side]:
    ports = {f"submit-{number}": allocate_port() for number in range(count)}
    commands: dict[str, tuple[list[str], dict[str, str]]] = {
        name: (["bench.engine.bare_services", "submit", str(port)], {}) for name, port in ports.items()
    }
    with processes(commands, ports) as started:
        yield Side(started, ",".join(f"127.0.0.1:{port}" for port in ports.values()))
