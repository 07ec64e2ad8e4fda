"""Command line `nox -s bench`: measure the designs of a system in turns and write a report."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from pydantic import ValidationError
from rich.console import Console

from bench import workload as workloads
from bench.calibration import Costs, calibrate, take_median
from bench.capacity import model_capacity
from bench.designs.anatomy import Anatomy, dissect
from bench.designs.fairness import UnfairComparison, require_fair, require_fair_plan
from bench.designs.findings import CapacityModel, DesignFindings
from bench.designs.manifest import (
    MachineInfo,
    Manifest,
    describe_commit,
    describe_design,
    describe_machine,
    format_notes,
)
from bench.designs.measurement import Measurement, measure
from bench.designs.progress import ProgressDisplay, estimate_seconds
from bench.designs.results import DesignResult
from bench.designs.sites import (
    ComposeContainers,
    LocalProcesses,
    RunningDeployment,
    SiteProvider,
    require_addresses,
)
from bench.generator.fleet import GeneratorFailed
from bench.report import page, summary, tables
from bench.workload import Mix, Workload
from runtime.launch import LaunchError
from runtime.node.systems import UnknownName, find_deployment, find_system
from runtime.transport.grpc.carrier import CARRIERS, DEFAULT

RESULTS = Path(__file__).parents[1] / "results"
_ANATOMY_S = 7.0
_CALIBRATION_S = 8.0


def parse_numbers(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> tuple[float, ...] | None:
    """Parse `1,8,32` as numbers."""
    if text is None:
        return None
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers, such as 1,8,32.") from None


def parse_pairs(_context: click.Context, _option: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    """Parse repeated `NAME=VALUE` options."""
    for each in given:
        if "=" not in each:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE.")
    return dict(each.split("=", 1) for each in given)


def parse_mix(_context: click.Context, _option: click.Parameter, text: str | None) -> Mix | None:
    """Parse `1:2:1` as a mix."""
    try:
        return None if text is None else Mix.parse(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not a mix, such as 1:2:1 ({format_reason(error)}).".replace("..", ".")
        ) from None


def format_reason(error: ValueError) -> str:
    """Format the first reason of a validation error, without the words of the library."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    where = " ".join(str(each) for each in first["loc"])
    reason = first["msg"].removeprefix("Value error, ")
    return f"{where}: {reason}" if where else reason


@click.command("bench")
@click.argument("designs", default="taskqueue", metavar="[DESIGNS]")
@click.option("--quick", is_flag=True, help="About three minutes instead of the whole workload.")
@click.option("--workload", "path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--step", "steps", multiple=True, help="Only this step of the workload; may be repeated.")
@click.option("--concurrency", callback=parse_numbers, help="Users of every closed loop, such as 1,8,32.")
@click.option("--rate", callback=parse_numbers, help="Requests per second of every open loop.")
@click.option(
    "--mix", callback=parse_mix, help="submit:status:result[:cancel[:list]] of every step, such as 1:2:1."
)
@click.option("--job-ms", type=click.IntRange(min=0), help="Duration of a job.")
@click.option("--warm-up", "warm_up_s", type=click.FloatRange(min=0))
@click.option("--run", "run_s", type=click.FloatRange(min=0, min_open=True))
@click.option("--repeats", type=click.IntRange(min=1))
@click.option("--clients", type=click.IntRange(min=1), help="Number of client processes.")
@click.option("--seed", type=int)
@click.option("--tls/--no-tls", default=None)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=parse_pairs,
    metavar="NAME=VALUE",
    help="A variable of the nodes.",
)
@click.option("--parts/--no-parts", default=True, help="Traces of a submit and the capacity model.")
@click.option(
    "--carrier",
    type=click.Choice(CARRIERS),
    default=DEFAULT,
    help="The gRPC carrier of the nodes; clients use grpcio.",
)
@click.option("--containers", is_flag=True, help="Run the nodes in containers, by their compose files.")
@click.option(
    "--target",
    metavar="ADDRESSES",
    help="Measure a running deployment; the addresses of its nodes in order, separated by commas.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The authority of the certificates of --target; without it, no TLS.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="The folder for the results.")
def bench(
    designs: str,
    quick: bool,
    path: Path | None,
    steps: Sequence[str],
    concurrency: tuple[float, ...] | None,
    rate: tuple[float, ...] | None,
    mix: Mix | None,
    job_ms: int | None,
    settings: dict[str, str],
    parts: bool,
    carrier: str,
    containers: bool,
    target: str | None,
    ca_file: Path | None,
    out: Path | None,
    **options: float | None,
) -> None:
    """Measure DESIGNS: a system with all its designs, or one of them as <system>.<deployment>."""
    console = Console()
    try:
        deployments = list_deployments(designs)
        provider = choose_provider(console, deployments, settings, containers, target, ca_file, carrier)
        parts = parts and carrier == DEFAULT
        if provider.kind != "processes":
            parts = False
            secure = provider.kind == "containers" or ca_file is not None
            if options["tls"] not in (None, secure):
                state = "on" if secure else "off"
                raise ValueError(f"TLS is {state} there. Leave out --tls and --no-tls.")
            options["tls"] = secure
        chosen = workloads.read_workload(
            path or workloads.FOLDER / f"{designs.partition('.')[0]}.yaml", quick=quick
        )
        chosen = chosen.select_steps(steps) if steps else chosen
        chosen = chosen.with_steps(mix=mix.model_dump() if mix else None, job_ms=job_ms)
        chosen = chosen.with_steps(["closed"], levels=concurrency).with_steps(["open"], levels=rate)
        chosen = chosen.with_options(**options)
        findings = asyncio.run(
            DesignsRun(console, deployments, chosen, settings, quick, parts, provider, carrier).measure()
        )
    except ValueError as error:
        raise click.ClickException(format_reason(error)) from error
    except (UnfairComparison, UnknownName, GeneratorFailed, LaunchError) as error:
        raise click.ClickException(str(error)) from error
    folder = out or RESULTS / findings.manifest.stamp
    findings.save(folder)
    tables.write_csv(findings, folder)
    console.print(summary.make_table(findings))
    console.print(f"Report: {page.write_page(findings, folder)}", soft_wrap=True, highlight=False)


def choose_provider(
    console: Console,
    deployments: Sequence[str],
    settings: Mapping[str, str],
    containers: bool,
    target: str | None,
    ca_file: Path | None,
    carrier: str = DEFAULT,
) -> SiteProvider:
    """Choose where the nodes run; raise ValueError where options contradict each other."""
    if carrier != DEFAULT and (containers or target is not None):
        raise ValueError("--carrier goes without --containers and --target: those nodes have their own.")
    if target is None:
        if ca_file is not None:
            raise ValueError("--ca-file goes with --target: launched nodes have certificates of their own.")
        return ComposeContainers(console, settings) if containers else LocalProcesses(settings, carrier)
    if containers or settings:
        raise ValueError("--target goes without --containers and --set: its nodes run already.")
    if len(deployments) > 1:
        raise ValueError(f"--target is one deployment. Name it: {' or '.join(deployments)}.")
    addresses = [each.strip() for each in target.split(",")]
    require_addresses(deployments[0], find_deployment(deployments[0])[1], addresses)
    return RunningDeployment(addresses, ca_file)


def list_deployments(designs: str) -> list[str]:
    """List the designs of a system, or the one that is named."""
    if "." in designs:
        find_deployment(designs)
        return [designs]
    # A deployment with another engine than that of the lifecycles is a design with another store.
    system = find_system(designs)
    engines = {each.engine for each in system.lifecycles.values()}
    return [f"{designs}.{name}" for name, each in system.deployments.items() if each.engine in engines]


class DesignsRun:
    """One invocation of the benchmark."""

    def __init__(
        self,
        console: Console,
        deployments: Sequence[str],
        workload: Workload,
        settings: Mapping[str, str],
        quick: bool,
        parts: bool,
        provider: SiteProvider,
        carrier: str = DEFAULT,
    ) -> None:
        self._console = console
        self._deployments = deployments
        self._workload = workload
        self._settings = settings
        self._quick = quick
        self._parts = parts
        self._provider = provider
        self._carrier = carrier
        self._order: list[str] = []
        self._stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())

    async def measure(self) -> DesignFindings:
        """Measure all designs; raise if they cannot be compared."""
        compared = len(self._deployments) > 1
        if compared:
            require_fair_plan(self._deployments, self._workload, self._settings)
        machine = describe_machine()
        seconds = estimate_seconds(self._workload, len(self._deployments))
        if self._parts:
            seconds += len(self._deployments) * _ANATOMY_S + self._workload.repeats * _CALIBRATION_S
        with ProgressDisplay(self._console, seconds) as display:
            measurements, costs = await self._measure_in_turns(display)
            manifest = self._build_manifest(machine, measurements)
            if compared:
                require_fair(manifest)
            anatomies = await self._dissect_all(display) if self._parts else {}
        designs = {
            _strip_system(name): DesignResult(
                deployment=name, steps=tuple(step for each in runs for step in each.steps)
            )
            for name, runs in measurements.items()
        }
        return DesignFindings(
            manifest=manifest,
            designs=designs,
            anatomies=anatomies,
            model=self._build_model(designs, take_median(costs), machine) if costs else None,
        )

    async def _measure_in_turns(
        self, display: ProgressDisplay
    ) -> tuple[dict[str, list[Measurement]], list[Costs]]:
        """Measure every design in every round, and the cost of one call at that time."""
        measurements: dict[str, list[Measurement]] = {name: [] for name in self._deployments}
        costs = []
        for repeat in range(self._workload.repeats):
            for name in self._deployments:
                self._order.append(name)
                display.start_phase(f"round {repeat + 1} of {self._workload.repeats}: {name}")
                measurements[name].append(
                    await measure(
                        name,
                        self._workload,
                        repeat,
                        self._provider,
                        watch=display.show_tick,
                        finished=display.finish_step,
                    )
                )
            if self._parts:
                display.start_phase(f"round {repeat + 1} of {self._workload.repeats}: cost of one call")
                costs.append(await asyncio.to_thread(calibrate, tls=self._workload.tls))
                display.advance(_CALIBRATION_S)
        return measurements, costs

    async def _dissect_all(self, display: ProgressDisplay) -> dict[str, Anatomy]:
        anatomies = {}
        for name in self._deployments:
            display.start_phase(f"one SubmitJob of {name}, hop by hop")
            anatomies[_strip_system(name)] = await dissect(name, tls=self._workload.tls)
            display.advance(_ANATOMY_S)
        return anatomies

    def _build_manifest(
        self, machine: MachineInfo, measured: Mapping[str, Sequence[Measurement]]
    ) -> Manifest:
        designs = {
            _strip_system(name): describe_design(
                name,
                self._workload,
                machine,
                [each.launch for each in runs],
                self._settings,
                max(sum(step.keyed for step in each.steps) for each in runs),
            )
            for name, runs in measured.items()
        }
        return Manifest(
            stamp=self._stamp,
            command=f"python -m bench {shlex.join(sys.argv[1:])}".strip(),
            commit=describe_commit(),
            quick=self._quick,
            place=self._provider.kind,
            carrier=self._carrier,
            machine=machine,
            workload=self._workload,
            workload_digest=self._workload.digest,
            order=tuple(self._order),
            designs=designs,
            notes=format_notes(designs, self._provider.kind),
        )

    def _build_model(
        self, designs: Mapping[str, DesignResult], costs: Costs, machine: MachineInfo
    ) -> CapacityModel | None:
        capacities = {}
        for name, design in designs.items():
            _, table = find_deployment(design.deployment)
            capacity = model_capacity(
                design, costs, machine.cores, in_process=table.in_process, slots=table.slots_total or 1
            )
            if capacity is not None:
                capacities[name] = capacity
        return CapacityModel(costs=costs, designs=capacities) if capacities else None


def _strip_system(deployment: str) -> str:
    return deployment.partition(".")[2]
