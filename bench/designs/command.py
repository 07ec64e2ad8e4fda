"""`nox -s bench`: measures the designs of a system in turns and writes a report."""

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
from bench.calibration import Costs, calibrate, middle
from bench.capacity import model
from bench.designs.anatomy import Anatomy, dissect
from bench.designs.fairness import Unfair, require_fair, require_fair_plan
from bench.designs.findings import Findings, Model
from bench.designs.manifest import Machine, Manifest, commit, describe_design, describe_machine, notes
from bench.designs.measure import Measured, measure
from bench.designs.progress import Told, planned_seconds
from bench.designs.results import DesignResult
from bench.designs.sites import Containers, LocalProcesses, Place, Running, require_addresses
from bench.generator.fleet import GeneratorFailed
from bench.report import page, summary, tables
from bench.workload import Mix, Workload
from runtime.launch import LaunchError
from runtime.node.systems import UnknownName, find_deployment, find_system
from runtime.transport.grpc.carrier import CARRIERS, DEFAULT

RESULTS = Path(__file__).parents[1] / "results"
_ANATOMY_S = 7.0
_CALIBRATION_S = 8.0


def numbers(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[float, ...] | None:
    """`1,8,32` as numbers."""
    if text is None:
        return None
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers, such as 1,8,32.") from None


def pairs(_context: click.Context, _option: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE`, as often as it is given."""
    for each in given:
        if "=" not in each:
            raise click.BadParameter(f"{each!r} is not NAME=VALUE.")
    return dict(each.split("=", 1) for each in given)


def mixed(_context: click.Context, _option: click.Parameter, text: str | None) -> Mix | None:
    """`1:2:1` as a mix."""
    try:
        return None if text is None else Mix.parse(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not a mix, such as 1:2:1 ({first_reason(error)}).".replace("..", ".")
        ) from None


def first_reason(error: ValueError) -> str:
    """What is wrong, in the words of the model that refused it and none of its library's."""
    if not isinstance(error, ValidationError):
        return str(error)
    found = error.errors()[0]
    where = " ".join(str(each) for each in found["loc"])
    reason = found["msg"].removeprefix("Value error, ")
    return f"{where}: {reason}" if where else reason


@click.command("bench")
@click.argument("designs", default="taskqueue", metavar="[DESIGNS]")
@click.option("--quick", is_flag=True, help="About three minutes instead of the whole workload.")
@click.option("--workload", "path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--step", "steps", multiple=True, help="Only this step of the workload; may be repeated.")
@click.option("--concurrency", callback=numbers, help="Users of every closed loop, such as 1,8,32.")
@click.option("--rate", callback=numbers, help="Requests per second of every open loop.")
@click.option(
    "--mix", callback=mixed, help="submit:status:result[:cancel[:list]] of every step, such as 1:2:1."
)
@click.option("--job-ms", type=click.IntRange(min=0), help="How long jobs take.")
@click.option("--warm-up", "warm_up_s", type=click.FloatRange(min=0))
@click.option("--run", "run_s", type=click.FloatRange(min=0, min_open=True))
@click.option("--repeats", type=click.IntRange(min=1))
@click.option("--clients", type=click.IntRange(min=1), help="Processes that send.")
@click.option("--seed", type=int)
@click.option("--tls/--no-tls", default=None)
@click.option(
    "--set", "settings", multiple=True, callback=pairs, metavar="NAME=VALUE", help="A variable of the nodes."
)
@click.option("--parts/--no-parts", default=True, help="Traces of a submit and the capacity model.")
@click.option(
    "--carrier",
    type=click.Choice(CARRIERS),
    default=DEFAULT,
    help="What carries gRPC at the nodes; clients have grpcio.",
)
@click.option("--containers", is_flag=True, help="Run the nodes in containers, by their compose files.")
@click.option(
    "--target",
    metavar="ADDRESSES",
    help="Measure a deployment that runs already; its nodes in order, separated by commas.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The authority of the certificates of --target; without it, no TLS.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Where to write the results.")
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
    """Measures DESIGNS: a system with all its designs, or one of them as <system>.<deployment>."""
    console = Console()
    try:
        deployments = deployments_of(designs)
        place = choose_place(console, deployments, settings, containers, target, ca_file, carrier)
        parts = parts and carrier == DEFAULT
        if place.kind != "processes":
            parts = False
            secure = place.kind == "containers" or ca_file is not None
            if options["tls"] not in (None, secure):
                raise ValueError(f"TLS is {'on' if secure else 'off'} there, whatever is asked for.")
            options["tls"] = secure
        chosen = workloads.read(path or workloads.FOLDER / f"{designs.partition('.')[0]}.yaml", quick=quick)
        chosen = chosen.only(steps) if steps else chosen
        chosen = chosen.with_steps(mix=mix.model_dump() if mix else None, job_ms=job_ms)
        chosen = chosen.with_steps(["closed"], levels=concurrency).with_steps(["open"], levels=rate)
        chosen = chosen.changed(**options)
        found = asyncio.run(
            Run(console, deployments, chosen, settings, quick, parts, place, carrier).findings()
        )
    except ValueError as error:
        raise click.ClickException(first_reason(error)) from error
    except (Unfair, UnknownName, GeneratorFailed, LaunchError) as error:
        raise click.ClickException(str(error)) from error
    folder = out or RESULTS / found.manifest.stamp
    found.save(folder)
    tables.write(found, folder)
    console.print(summary.table(found))
    console.print(f"Report: {page.write(found, folder)}", soft_wrap=True, highlight=False)


def choose_place(
    console: Console,
    deployments: Sequence[str],
    settings: Mapping[str, str],
    containers: bool,
    target: str | None,
    ca_file: Path | None,
    carrier: str = DEFAULT,
) -> Place:
    """Where the nodes are; raises ValueError where options contradict each other."""
    if carrier != DEFAULT and (containers or target is not None):
        raise ValueError("--carrier goes without --containers and --target: their nodes have their own.")
    if target is None:
        if ca_file is not None:
            raise ValueError("--ca-file goes with --target: the nodes that are launched have their own.")
        return Containers(console, settings) if containers else LocalProcesses(settings, carrier)
    if containers or settings:
        raise ValueError("--target goes without --containers and --set: what runs there runs already.")
    if len(deployments) > 1:
        raise ValueError(f"--target is one deployment. Name it: {' or '.join(deployments)}.")
    addresses = [each.strip() for each in target.split(",")]
    require_addresses(deployments[0], find_deployment(deployments[0])[1], addresses)
    return Running(addresses, ca_file)


def deployments_of(designs: str) -> list[str]:
    """Every design of a system, or the one that is named."""
    if "." in designs:
        find_deployment(designs)
        return [designs]
    return [f"{designs}.{name}" for name in find_system(designs).deployments]


class Run:
    """One invocation."""

    def __init__(
        self,
        console: Console,
        deployments: Sequence[str],
        workload: Workload,
        settings: Mapping[str, str],
        quick: bool,
        parts: bool,
        place: Place,
        carrier: str = DEFAULT,
    ) -> None:
        self._console = console
        self._deployments = deployments
        self._workload = workload
        self._settings = settings
        self._quick = quick
        self._parts = parts
        self._place = place
        self._carrier = carrier
        self._order: list[str] = []
        self._stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())

    async def findings(self) -> Findings:
        """Measures everything; raises if it could not be compared."""
        compared = len(self._deployments) > 1
        if compared:
            require_fair_plan(self._deployments, self._workload, self._settings)
        machine = describe_machine()
        seconds = planned_seconds(self._workload, len(self._deployments))
        if self._parts:
            seconds += len(self._deployments) * _ANATOMY_S + self._workload.repeats * _CALIBRATION_S
        with Told(self._console, seconds) as told:
            measured, costs = await self._in_turns(told)
            manifest = self._manifest(machine, measured)
            if compared:
                require_fair(manifest)
            anatomies = await self._taken_apart(told) if self._parts else {}
        designs = {
            _short(name): DesignResult(
                deployment=name, steps=tuple(step for each in runs for step in each.steps)
            )
            for name, runs in measured.items()
        }
        return Findings(
            manifest=manifest,
            designs=designs,
            anatomies=anatomies,
            model=self._model(designs, middle(costs), machine) if costs else None,
        )

    async def _in_turns(self, told: Told) -> tuple[dict[str, list[Measured]], list[Costs]]:
        """Every design in every round, and what one call costs at that time."""
        found: dict[str, list[Measured]] = {name: [] for name in self._deployments}
        costs = []
        for repeat in range(self._workload.repeats):
            for name in self._deployments:
                self._order.append(name)
                told.phase(f"round {repeat + 1} of {self._workload.repeats}: {name}")
                found[name].append(
                    await measure(
                        name,
                        self._workload,
                        repeat,
                        self._place,
                        watch=told.tick,
                        finished=told.step,
                    )
                )
            if self._parts:
                told.phase(f"round {repeat + 1} of {self._workload.repeats}: what one call costs")
                costs.append(await asyncio.to_thread(calibrate, tls=self._workload.tls))
                told.worth(_CALIBRATION_S)
        return found, costs

    async def _taken_apart(self, told: Told) -> dict[str, Anatomy]:
        anatomies = {}
        for name in self._deployments:
            told.phase(f"one SubmitJob of {name}, hop by hop")
            anatomies[_short(name)] = await dissect(name, tls=self._workload.tls)
            told.worth(_ANATOMY_S)
        return anatomies

    def _manifest(self, machine: Machine, measured: Mapping[str, Sequence[Measured]]) -> Manifest:
        designs = {
            _short(name): describe_design(
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
            commit=commit(),
            quick=self._quick,
            place=self._place.kind,
            carrier=self._carrier,
            machine=machine,
            workload=self._workload,
            workload_digest=self._workload.digest,
            order=tuple(self._order),
            designs=designs,
            notes=notes(designs, self._place.kind),
        )

    def _model(self, designs: Mapping[str, DesignResult], costs: Costs, machine: Machine) -> Model | None:
        found = {}
        for name, design in designs.items():
            _, table = find_deployment(design.deployment)
            capacity = model(
                design, costs, machine.cores, in_process=table.in_process, slots=table.slots_total or 1
            )
            if capacity is not None:
                found[name] = capacity
        return Model(costs=costs, designs=found) if found else None


def _short(deployment: str) -> str:
    return deployment.partition(".")[2]
