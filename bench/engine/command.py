"""Benchmark of the engine: the same messages through hand-written gRPC and through the engine, in one run.

`nox -s bench -- engine` prints the ratios and writes them to `bench/results/engine.json`.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.engine.idle_nodes import find_exceeded, measure_idle_nodes
from bench.engine.retained_jobs import measure_retained_jobs
from bench.engine.servers import measure_calls, start_bare, start_engine
from bench.machine import describe_host
from bench.pickup import measure_pickup
from bench.report.terminal import narrow_table
from runtime.certs import make_certificates
from runtime.node.systems import load_system
from runtime.transport.grpc.carrier import CARRIERS

DEPLOYMENT = "taskqueue.microservices"
DEPLOYMENTS = (DEPLOYMENT, "taskqueue.monolith")
RESULTS = Path(__file__).parents[1] / "results"
PAIRS = 5
CALLS = 8000
"""Enough that CPU time, which is counted in ticks of 10 ms, is exact to a few hundredths."""
IN_FLIGHT = 32


def main(_arguments: list[str]) -> int:
    """Run all comparisons; return 1 if one misses its bar."""
    found: dict[str, Any] = {"machine": describe_host(), "command": "nox -s bench -- engine", "bars": {}}
    console = Console()
    with tempfile.TemporaryDirectory(prefix="charter-bench-") as folder:
        for name, method, tls, bars in (
            ("one call", "enqueue", False, {"grpcio": 0.85}),
            ("one call, TLS", "enqueue", True, {"grpcio": 0.85}),
            ("chain of three", "submit", False, {"grpcio": 0.85, "direct": 3.0}),
            ("chain of three, TLS", "submit", True, {"grpcio": 0.85, "direct": 3.0}),
        ):
            certificates = Path(folder, "certs") if tls else None
            if certificates is not None and not certificates.exists():
                make_certificates(load_system("taskqueue"), "microservices", certificates)
            for carrier, row in compare(method, certificates).items():
                title = f"{name}, {carrier}"
                found[title] = row
                found["bars"][title] = {"ratio": row["calls_per_s_ratio"], "at_least": bars.get(carrier)}
                console.print(f"{title}: {row['calls_per_s_ratio']:.2f}x")
    found["idle pickup"] = asyncio.run(measure_pickup(DEPLOYMENT))
    found["retained jobs"] = asyncio.run(measure_retained_jobs())
    found["idle nodes"] = {each: asyncio.run(measure_idle_nodes(each)) for each in DEPLOYMENTS}
    _show(console, found)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "engine.json").write_text(json.dumps(found, indent=2) + "\n")
    missed = [name for name, each in found["bars"].items() if each["ratio"] < (each["at_least"] or 0)]
    for name, figures in found["idle nodes"].items():
        missed += [f"{name}: {each}" for each in find_exceeded(figures)]
    console.print(f"Missed: {', '.join(missed)}" if missed else "Every bar is met.")
    return int(bool(missed))


def compare(method: str, certificates: Path | None) -> dict[str, dict[str, Any]]:
    """Compare interleaved runs of the baseline and of the engine with each carrier, by their medians."""
    with ExitStack() as running:
        sides = {"bare": running.enter_context(start_bare(method, certificates))}
        for carrier in CARRIERS:
            sides[carrier] = running.enter_context(start_engine(method, certificates, carrier))
        runs = [
            {
                name: measure_calls(side, method, certificates, CALLS, IN_FLIGHT)
                for name, side in sides.items()
            }
            for _ in range(PAIRS)
        ]
    medians = {
        name: {key: statistics.median(run[name][key] for run in runs) for key in runs[0][name]}
        for name in sides
    }
    return {
        carrier: {
            "bare": medians["bare"],
            "engine": medians[carrier],
            "calls_per_s_ratio": round(
                statistics.median(run[carrier]["calls_per_s"] / run["bare"]["calls_per_s"] for run in runs), 3
            ),
            "cpu_ratio": round(medians[carrier]["cpu_us_per_call"] / medians["bare"]["cpu_us_per_call"], 3),
            "pairs": PAIRS,
            "calls": CALLS,
            "in_flight": IN_FLIGHT,
        }
        for carrier in CARRIERS
    }


def _show(console: Console, found: Mapping[str, Any]) -> None:
    table = narrow_table("comparison", "bare/s", "ours/s", "ratio", "bar", "CPU µs", "ratio")
    for name, bar in found["bars"].items():
        row = found[name]
        table.add_row(
            name,
            f"{row['bare']['calls_per_s']:.0f}",
            f"{row['engine']['calls_per_s']:.0f}",
            f"{row['calls_per_s_ratio']:.2f}",
            f">= {bar['at_least']:.2f}" if bar["at_least"] else "",
            f"{row['bare']['cpu_us_per_call']:.0f} / {row['engine']['cpu_us_per_call']:.0f}",
            f"{row['cpu_ratio']:.2f}",
        )
    console.print(table)
    console.print(f"idle pickup: {found['idle pickup']}")
    console.print(f"retained jobs: {found['retained jobs']}")
    for name, figures in found["idle nodes"].items():
        console.print(
            f"{name}: ready after {figures['ready_s']} s; at most {figures['memory_mib']} MiB and "
            f"{figures['idle_percent']} % of a core for an idle node"
        )
