"""How many requests a design can take: from what a call costs and how many calls a request causes.

The protocol is data: who calls whom for a public request, and for running a job. The microservices pay each
of those calls as an RPC, a monolith node as a call within the process; both pay the handlers' own work.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from bench.calibration import Costs
from bench.designs.results import DesignResult, Record, StepResult
from bench.workload import Kind, Mix

CLIENT = "client"
Path = tuple[tuple[str, str], ...]

REQUESTS: Mapping[Kind, Path] = {
    "submit": (("gateway", "job"), ("gateway", "queue")),
    "status": (("gateway", "job"),),
    "result": (("gateway", "job"), ("gateway", "result")),
    "cancel": (("gateway", "job"),),
    "list": (("gateway", "job"),),
}
"""Calls between components that a request causes before it is answered; of jobs that have ended."""

JOB: Path = (
    ("worker", "coordinator"),  # FetchWork
    ("coordinator", "queue"),  # DequeueJob
    ("coordinator", "job"),  # GetJobRecord
    ("coordinator", "job"),  # TransitionJobStatus to RUNNING
    ("worker", "coordinator"),  # ReportWorkOutcome
    ("coordinator", "job"),  # GetJobRecord
    ("coordinator", "result"),  # StoreResult
    ("coordinator", "job"),  # TransitionJobStatus to its end
)
"""Calls between components from a job's dispatch to its end."""

ONE_PROCESS = 1.0
"""Processors that one node can use: its Python runs on one at a time."""
NETWORK_US = 200.0
"""A round trip between machines of one rack, for the extrapolation."""


class Check(Record):
    """What the model says of a measured step, beside what was measured."""

    step: str
    level: float
    cores_available: float
    """What others on the machine left."""
    jobs_per_submit: float
    """Jobs run for each job submitted: less than one where a backlog grew."""
    predicted_us: float
    measured_us: float
    """Processor time of a request, in clients and nodes, with its share of running jobs."""
    predicted_per_s: float
    measured_per_s: float

    @property
    def error(self) -> float:
        """By how much the prediction of the rate is off."""
        return self.predicted_per_s / self.measured_per_s - 1 if self.measured_per_s else 0.0


class Outlook(Record):
    """A design on six machines, each node alone on one, and clients elsewhere."""

    requests_per_s: float
    jobs_per_s: float
    limited_by: str
    node_us: Mapping[str, float]
    """Processor time of each node for a request."""
    submit_ms: float
    """A submit's way without waiting: its calls one after the other, with the network between."""


class Capacity(Record):
    """The model for one design."""

    deployment: str
    hops_per_request: float
    counted_hops_per_request: float
    """Calls between components that the nodes really counted; that the protocol above is right."""
    checks: tuple[Check, ...]
    six_machines: Outlook


def model(design: DesignResult, costs: Costs, cores: int, *, in_process: bool, slots: int) -> Capacity | None:
    """Predicts the steps of a design that leave the machine no rest, and looks further."""
    checked = [each for each in design.steps if _saturating(each)]
    if not checked:
        return None
    busiest = max(checked, key=lambda each: each.load.level)
    return Capacity(
        deployment=design.deployment,
        hops_per_request=round(hops(busiest.load.mix, _jobs_per_submit(busiest)), 2),
        counted_hops_per_request=round(_counted_hops(busiest), 2),
        checks=tuple(check(each, costs, cores, in_process=in_process) for each in checked),
        six_machines=outlook(busiest.load.mix, costs, in_process=in_process, slots=slots),
    )


def hops(mix: Mix, jobs_per_submit: float = 1.0) -> float:
    """Calls between components for each public request."""
    deal = mix.deal()
    of_requests = sum(len(REQUESTS[kind]) for kind in deal) / len(deal)
    return of_requests + mix.submit / len(deal) * jobs_per_submit * len(JOB)


def request_us(mix: Mix, costs: Costs, *, in_process: bool, jobs_per_submit: float = 1.0) -> float:
    """Processor time of a request in clients and nodes together, with its share of running jobs."""
    return sum(node_us(mix, costs, in_process=in_process, jobs_per_submit=jobs_per_submit).values())


def node_us(mix: Mix, costs: Costs, *, in_process: bool, jobs_per_submit: float = 1.0) -> dict[str, float]:
    """The same for each process: the client, and the nodes of a design (a monolith is one node here)."""
    deal, found = mix.deal(), defaultdict[str, float](float)
    runs = mix.submit / len(deal) * jobs_per_submit
    for kind in deal:
        found[CLIENT] += costs.caller_us / len(deal)
        found["gateway"] += costs.server_us / len(deal)
        _pay(found, REQUESTS[kind], _own_work(kind, costs), 1 / len(deal), costs)
    _pay(found, JOB, _own_work("job", costs), runs, costs)
    if in_process:
        inside = sum(_inside(kind, costs) for kind in deal) / len(deal) + runs * _inside("job", costs)
        return {CLIENT: costs.caller_us, "monolith": costs.server_us + inside}
    return dict(found)


def check(step: StepResult, costs: Costs, cores: int, *, in_process: bool) -> Check:
    """One measured step against the model."""
    load, ratio = step.load, _jobs_per_submit(step)
    available = max(0.1, cores - (step.other_cpu_s or 0.0) / load.run_s)
    alone = request_us(load.mix, costs, in_process=in_process, jobs_per_submit=ratio)
    predicted = alone * costs.crowding
    used = step.client_cpu_s + sum(node.cpu_s for node in step.nodes)
    return Check(
        step=load.step,
        level=load.level,
        cores_available=round(available, 2),
        jobs_per_submit=round(ratio, 2),
        predicted_us=round(predicted, 1),
        measured_us=round(used / max(step.primary.answered, 1) * 1e6, 1),
        predicted_per_s=round(available / predicted * 1e6, 1),
        measured_per_s=step.primary.per_s,
    )


def outlook(mix: Mix, costs: Costs, *, in_process: bool, slots: int) -> Outlook:
    """Six machines of this kind: the busiest node or the slots decide."""
    per_node = {
        name: round(each, 1)
        for name, each in node_us(mix, costs, in_process=in_process).items()
        if name != CLIENT
    }
    submits = mix.submit / len(mix.deal())
    name, busiest = max(per_node.items(), key=lambda each: each[1])
    nodes = slots if in_process else 1
    limits = {f"the {name} node": nodes * ONE_PROCESS * 1e6 / busiest}
    way = costs.rpc_us + NETWORK_US
    run_us = _inside("job", costs) if in_process else len(JOB) * way + _own_work("job", costs)
    limits["the slots"] = slots * 1e6 / run_us / submits
    by = min(limits, key=lambda each: limits[each])
    steps_us = 0.0 if in_process else len(REQUESTS["submit"]) * way
    return Outlook(
        requests_per_s=round(limits[by], 0),
        jobs_per_s=round(limits[by] * submits, 0),
        limited_by=by if not in_process or by == "the slots" else "all six nodes alike",
        node_us=per_node,
        submit_ms=round((way + steps_us + _inside("submit", costs)) / 1000, 2),
    )


def _pay(found: dict[str, float], path: Path, own_us: float, times: float, costs: Costs) -> None:
    """Adds the calls of a path to those who make and take them; own work is shared among the takers."""
    for caller, callee in path:
        found[caller] += costs.caller_us * times
        found[callee] += (costs.server_us + own_us / len(path)) * times


def _own_work(kind: str, costs: Costs) -> float:
    """What the handlers themselves do: a call without a network, less all its steps from hand to hand."""
    steps = len(JOB) if kind == "job" else len(REQUESTS[kind])  # type: ignore[index]
    return max(0.0, _inside(kind, costs) - steps * costs.local_us)


def _inside(kind: str, costs: Costs) -> float:
    """What a request or a job costs within one process, beyond taking it in."""
    known = costs.inside_us
    if kind == "job":
        return known["job"] - known["submit"]
    return max(0.0, known.get(kind, known["status"]) - costs.local_us)


def _saturating(step: StepResult) -> bool:
    """A single user waits more than it asks; listings are not in the model."""
    return step.load.loop == "closed" and step.load.level > 1 and not step.load.mix.list


def _jobs_per_submit(step: StepResult) -> float:
    return step.jobs.done / step.jobs.submitted if step.jobs.submitted else 0.0


def _counted_hops(step: StepResult) -> float:
    counted: Counter[str] = Counter()
    for node in step.nodes:
        counted.update(node.calls)
    public = sum(count for name, count in counted.items() if name.startswith("TaskQueuePublicService."))
    inside = sum(
        count
        for name, count in counted.items()
        if not name.startswith("TaskQueuePublicService.") and not name.endswith(".WorkerHeartbeat")
    )
    return inside / public if public else 0.0
