"""The same calls against either design, in virtual time, and answers made comparable.

Differences between designs are allowed here only: ids and times are their own, and a listing
shows one node's jobs where each node lists its own (`ListJobs` is compared as the union over all nodes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from generated.taskqueue.clients import TaskQueuePublicServiceClient
from generated.taskqueue.lifecycle import JOB
from generated.taskqueue.messages import (
    CancelJobRequest,
    GetJobResultRequest,
    GetJobStatusRequest,
    JobSpec,
    ListJobsRequest,
    PageRequest,
    SubmitJobRequest,
)
from generated.taskqueue.system import SYSTEM
from runtime.call import Call, Invoke, Request, Response
from runtime.call.conditions import Condition, Failure
from runtime.call.routing import Router
from runtime.model.system import Method
from runtime.model.text import sha256_hex
from runtime.simulation import SimulatedDeployment, SimulatedWorld, simulate

SLOTS = 6
LONG_MS = 4_000
"""So long that nothing else in a round of calls outlasts it."""
TIMES = ("created_at_ms", "started_at_ms", "finished_at_ms", "accepted_at_ms")

QUIET = {"LOG_LEVEL": "ERROR", "HEARTBEAT_INTERVAL_MS": "3000", "WORKER_TIMEOUT_MS": "9000"}

Step = tuple[str, dict[str, Any]]
"""A call by name, with arguments that name jobs by the number of their submit."""


class RoutedChannel:
    """Calls the nodes of a simulated deployment as an outside client would: each call to the owner."""

    def __init__(self, deployment: SimulatedDeployment) -> None:
        self.nodes = [name for name in deployment.nodes if deployment.table.ingress[0] in name]
        self._deployment = deployment
        self._router = Router(deployment.table.routing, deployment.world)

    def bind(
        self, method: Method, request: type[Request], response: type[Response]
    ) -> Invoke[Request, Response]:
        bound = {
            node: self._deployment.channel("client", node=node).bind(method, request, response)
            for node in self.nodes
        }

        async def invoke(message: Request, call: Call) -> Response:
            return await bound[self._router.choose(method, message, self.nodes)](message, call)

        return invoke


@dataclass
class Run:
    """One design going through a sequence of calls."""

    deployment: SimulatedDeployment
    answers: list[Any] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._channel = RoutedChannel(self.deployment)
        self._public = TaskQueuePublicServiceClient(self._channel)

    async def step(self, name: str, arguments: dict[str, Any]) -> None:
        """Make one call and record its answer."""
        try:
            answer = await getattr(self, f"_{name}")(**arguments)
        except Failure as failure:
            code = failure.code if isinstance(failure, Condition) else None
            answer = {
                "failed": failure.grpc,
                "condition": code,
                "message": self._replace_ids(failure.message),
            }
        self.answers.append((name, answer))

    async def _block(self) -> None:
        """Fill every slot with a long job, so that the next job waits in either design."""
        for _ in range(SLOTS):
            await self._submit(job_type="long", work_duration_ms=LONG_MS)
        await self.deployment.world.sleep(0.7)

    async def _settle(self) -> None:
        """Waits until every job is over."""
        for job_id in self.ids:
            request = GetJobStatusRequest(job_id=job_id)
            while (await self._public.get_job_status(request, self._call())).status not in JOB.terminal:
                await self.deployment.world.sleep(0.5)

    async def _submit(self, key: str = "", **spec: Any) -> Any:
        request = SubmitJobRequest(spec=JobSpec(**spec) if spec else None, client_request_id=key)
        answer = await self._public.submit_job(request, self._call())
        self.ids.append(answer.job_id)
        return self._make_comparable(answer)

    async def _status(self, job: int) -> Any:
        request = GetJobStatusRequest(job_id=self._id(job))
        return self._make_comparable(await self._public.get_job_status(request, self._call()))

    async def _result(self, job: int) -> Any:
        request = GetJobResultRequest(job_id=self._id(job))
        return self._make_comparable(await self._public.get_job_result(request, self._call()))

    async def _cancel(self, job: int, reason: str) -> Any:
        request = CancelJobRequest(job_id=self._id(job), reason=reason)
        return self._make_comparable(await self._public.cancel_job(request, self._call()))

    async def _list(self, statuses: Sequence[int], sort: int, size: int, token: str) -> Any:
        """The union over all nodes, as a set: the one difference that is allowed."""
        found: list[Any] = []
        for node in self._channel.nodes:
            client = TaskQueuePublicServiceClient(self.deployment.channel("client", node=node))
            page = PageRequest(page_size=size, page_token=token)
            request = ListJobsRequest(status_filter=statuses, sort=sort, page=page)  # type: ignore[arg-type]
            while True:
                answer = await client.list_jobs(request, self._call())
                found += [self._make_comparable(job) for job in answer.jobs]
                if not answer.page.next_page_token:
                    break
                request.page.page_token = answer.page.next_page_token
        return sorted(found, key=str) if not token else None

    def _call(self) -> Call:
        return self.deployment.call("client")

    def _id(self, job: int) -> str:
        return self.ids[job % len(self.ids)] if self.ids and job >= 0 else ""

    def _make_comparable(self, answer: Message) -> dict[str, Any]:
        """An answer with ids as the number of their submit, and times as whether they are set."""
        fields: dict[str, Any] = MessageToDict(answer, preserving_proto_field_name=True)
        for name in TIMES:
            if name in fields:
                fields[name] = int(fields[name]) > 0
        if "output_bytes" in fields:
            # The bytes of a job follow from its id; that they are its own is seen by the checksum.
            content = getattr(answer, "output_bytes")  # noqa: B009
            assert fields["checksum"] == sha256_hex(content)
            fields["output_bytes"], fields["checksum"] = len(content), "fits"
        if "job_id" in fields:
            fields["job_id"] = self.ids.index(fields["job_id"]) if fields["job_id"] in self.ids else "new"
        return fields

    def _replace_ids(self, message: str) -> str:
        for number, job_id in enumerate(self.ids):
            message = message.replace(job_id, f"job {number}")
        return message


def collect_answers(design: str, steps: Sequence[Step], seed: int = 0) -> list[Any]:
    """The answers of a design to a sequence of calls."""

    async def scenario(world: SimulatedWorld) -> list[Any]:
        deployment = SimulatedDeployment(SYSTEM, design, world, environ=QUIET)
        await world.sleep(0.3)
        run = Run(deployment)
        for name, arguments in steps:
            await run.step(name, arguments)
        await run.step("settle", {})
        for number in range(len(run.ids)):
            await run.step("status", {"job": number})
            await run.step("result", {"job": number})
        await deployment.stop()
        return run.answers

    return simulate(scenario, seed)
