"""Capacity model: requests per second of a design, from the cost of a call and the calls of a request.

The protocol is data: the pairs of caller and callee of a public request, and of running a job. The
microservices pay each of those calls as an RPC, a monolith node as a call within the process; both pay for
the handlers' own work.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from bench.calibration import Costs
from bench.designs.results import DesignResult, ResultRecord, StepResult
from bench.workload import Mix, RequestKind

CLIENT = "client"
Path = tuple[tuple[str, str], ...]

REQUESTS: Mapping[RequestKind, Path] = {
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
"""CPU cores that one node can use: its Python runs on one at a time."""
NETWORK_US = 200.0
"""A round trip between machines of one rack, for the extrapolation."""


class StepCheck(ResultRecord):
    """A step as the model predicts it, beside the measurement."""

    step: str
    level: float
    cores_available: float
    """Cores less the CPU that other processes of the machine used."""
    jobs_per_submit: float
    """Jobs run for each job submitted: less than one where a backlog grew."""
    predicted_us: float
    measured_us: float
    """CPU time of a request, in clients and nodes, with its part of running jobs."""
    predicted_per_s: float
    measured_per_s: float

    @property
    def error(self) -> float:
        """The relative error of the predicted rate."""
        return self.predicted_per_s / self.measured_per_s - 1 if self.measured_per_s else 0.0


class Extrapolation(ResultRecord):
    """A design on six machines: a node on each, and clients elsewhere."""

    requests_per_s: float
    jobs_per_s: float
    limited_by: str
    node_us: Mapping[str, float]
    """CPU time of each node for a request."""
    submit_ms: float
    """A submit without queueing: its calls one after the other, with the network between."""


class Capacity(ResultRecord):
    """The model for one design."""

    deployment: str
    hops_per_request: float
    counted_hops_per_request: float
    """Calls between components as the nodes counted them; a check of the protocol above."""
    checks: tuple[StepCheck, ...]
    six_machines: Extrapolation


def model_capacity(
    design: DesignResult, costs: Costs, cores: int, *, in_process: bool, slots: int
) -> Capacity | None:
    """Predict the steps of a design that saturate the machine, and extrapolate to six machines."""
    checked = [each for each in design.steps if _is_saturating(each)]
    if not checked:
        return None
    busiest = max(checked, key=lambda each: each.load.level)
    return Capacity(
        deployment=design.deployment,
        hops_per_request=round(count_hops(busiest.load.mix, _compute_jobs_per_submit(busiest)), 2),
        counted_hops_per_request=round(_compute_counted_hops(busiest), 2),
        checks=tuple(check_step(each, costs, cores, in_process=in_process) for each in checked),
        six_machines=extrapolate(busiest.load.mix, costs, in_process=in_process, slots=slots),
    )


def count_hops(mix: Mix, jobs_per_submit: float = 1.0) -> float:
    """Count the calls between components for each public request."""
    kinds = mix.expand()
    of_requests = sum(len(REQUESTS[kind]) for kind in kinds) / len(kinds)
    return of_requests + mix.submit / len(kinds) * jobs_per_submit * len(JOB)


def estimate_request_us(mix: Mix, costs: Costs, *, in_process: bool, jobs_per_submit: float = 1.0) -> float:
    """Estimate the CPU time of a request in clients and nodes, with its part of running jobs."""
    return sum(estimate_node_us(mix, costs, in_process=in_process, jobs_per_submit=jobs_per_submit).values())


def estimate_node_us(
    mix: Mix, costs: Costs, *, in_process: bool, jobs_per_submit: float = 1.0
) -> dict[str, float]:
    """Estimate the CPU time of a request by process: the client, and each node (a monolith is one node)."""
    kinds, by_node = mix.expand(), defaultdict[str, float](float)
    runs = mix.submit / len(kinds) * jobs_per_submit
    for kind in kinds:
        by_node[CLIENT] += costs.caller_us / len(kinds)
        by_node["gateway"] += costs.server_us / len(kinds)
        _add_path(by_node, REQUESTS[kind], _estimate_handlers_us(kind, costs), 1 / len(kinds), costs)
    _add_path(by_node, JOB, _estimate_handlers_us("job", costs), runs, costs)
    if in_process:
        in_process_us = sum(_estimate_in_process_us(kind, costs) for kind in kinds) / len(
            kinds
        ) + runs * _estimate_in_process_us("job", costs)
        return {CLIENT: costs.caller_us, "monolith": costs.server_us + in_process_us}
    return dict(by_node)


def check_step(step: StepResult, costs: Costs, cores: int, *, in_process: bool) -> StepCheck:
    """Compare one measured step with the model."""
    load, ratio = step.load, _compute_jobs_per_submit(step)
    available = max(0.1, cores - (step.other_cpu_s or 0.0) / load.run_s)
    alone = estimate_request_us(load.mix, costs, in_process=in_process, jobs_per_submit=ratio)
    predicted = alone * costs.crowding
    used = step.client_cpu_s + sum(node.cpu_s for node in step.nodes)
    return StepCheck(
        step=load.step,
        level=load.level,
        cores_available=round(available, 2),
        jobs_per_submit=round(ratio, 2),
        predicted_us=round(predicted, 1),
        measured_us=round(used / max(step.primary.answered, 1) * 1e6, 1),
        predicted_per_s=round(available / predicted * 1e6, 1),
        measured_per_s=step.primary.per_s,
    )


def extrapolate(mix: Mix, costs: Costs, *, in_process: bool, slots: int) -> Extrapolation:
    """Extrapolate to six machines of this kind: the busiest node or the slots are the limit."""
    per_node = {
        name: round(each, 1)
        for name, each in estimate_node_us(mix, costs, in_process=in_process).items()
        if name != CLIENT
    }
    submits = mix.submit / len(mix.expand())
    name, busiest = max(per_node.items(), key=lambda each: each[1])
    nodes = slots if in_process else 1
    limits = {f"the {name} node": nodes * ONE_PROCESS * 1e6 / busiest}
    hop_us = costs.rpc_us + NETWORK_US
    run_us = (
        _estimate_in_process_us("job", costs)
        if in_process
        else len(JOB) * hop_us + _estimate_handlers_us("job", costs)
    )
    limits["the slots"] = slots * 1e6 / run_us / submits
    by = min(limits, key=lambda each: limits[each])
    steps_us = 0.0 if in_process else len(REQUESTS["submit"]) * hop_us
    return Extrapolation(
        requests_per_s=round(limits[by], 0),
        jobs_per_s=round(limits[by] * submits, 0),
        limited_by=by if not in_process or by == "the slots" else "all six nodes alike",
        node_us=per_node,
        submit_ms=round((hop_us + steps_us + _estimate_in_process_us("submit", costs)) / 1000, 2),
    )


def _add_path(by_node: dict[str, float], path: Path, own_us: float, times: float, costs: Costs) -> None:
    """Add the calls of a path to their callers and callees; the handlers' work is split over the callees."""
    for caller, callee in path:
        by_node[caller] += costs.caller_us * times
        by_node[callee] += (costs.server_us + own_us / len(path)) * times


def _estimate_handlers_us(kind: str, costs: Costs) -> float:
    """Estimate the CPU time of the handlers alone: a call without a network, less its in-process calls."""
    steps = len(JOB) if kind == "job" else len(REQUESTS[kind])  # type: ignore[index]
    return max(0.0, _estimate_in_process_us(kind, costs) - steps * costs.local_us)


def _estimate_in_process_us(kind: str, costs: Costs) -> float:
    """Estimate the cost of a request or a job within one process, without receiving it."""
    known = costs.inside_us
    if kind == "job":
        return known["job"] - known["submit"]
    return max(0.0, known.get(kind, known["status"]) - costs.local_us)


def _is_saturating(step: StepResult) -> bool:
    """Whether a step keeps the machine busy: one user mostly waits, and listings are not in the model."""
    return step.load.loop == "closed" and step.load.level > 1 and not step.load.mix.list


def _compute_jobs_per_submit(step: StepResult) -> float:
    return step.jobs.done / step.jobs.submitted if step.jobs.submitted else 0.0


def _compute_counted_hops(step: StepResult) -> float:
    counted: Counter[str] = Counter()
    for node in step.nodes:
        counted.update(node.calls)
    public = sum(count for name, count in counted.items() if name.startswith("TaskQueuePublicService."))
    internal = sum(
        count
        for name, count in counted.items()
        if not name.startswith("TaskQueuePublicService.") and not name.endswith(".WorkerHeartbeat")
    )
    return internal / public if public else 0.0
