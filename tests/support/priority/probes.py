"""A request for each method, over both transports, that reaches its handler if the caller may."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from generated.priority import messages as m
from generated.priority.system import SYSTEM
from runtime.model.system import Method

UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
METHODS: dict[str, Method] = {
    f"{name}.{method.name}": method for name, service in SYSTEM.services.items() for method in service.methods
}
_RUN = {"task_id": UNKNOWN_ID, "attempt": 1}


class Probe(NamedTuple):
    """A body and a message of the same content; parameters of the path are in the message alone."""

    body: dict[str, Any] | None
    message: Any


PROBES: dict[str, Probe] = {
    "TasksService.SubmitTask": Probe({"task_type": "t"}, m.SubmitTaskRequest(task_type="t")),
    "TasksService.SubmitTasks": Probe(
        {"tasks": [{"task_type": "t"}]}, m.SubmitTasksRequest(tasks=[m.SubmitTaskRequest(task_type="t")])
    ),
    "TasksService.GetTask": Probe(None, m.GetTaskRequest(task_id=UNKNOWN_ID)),
    "TasksService.ListTasks": Probe(None, m.ListTasksRequest()),
    "TasksService.CancelTask": Probe(None, m.CancelTaskRequest(task_id=UNKNOWN_ID)),
    "TasksService.GetQueueStats": Probe(None, m.GetQueueStatsRequest()),
    "WorkersService.RegisterWorker": Probe({"capabilities": []}, m.RegisterWorkerRequest()),
    "WorkersService.PollTasks": Probe(
        {"available_capacity": 1}, m.PollTasksRequest(worker_id=UNKNOWN_ID, available_capacity=1)
    ),
    "WorkersService.ReportResult": Probe(
        {**_RUN, "status": "completed"},
        m.ReportResultRequest(worker_id=UNKNOWN_ID, task_id=UNKNOWN_ID, attempt=1, status=m.COMPLETED),
    ),
    "WorkersService.Heartbeat": Probe({"status": "active"}, m.HeartbeatRequest(worker_id=UNKNOWN_ID)),
    "WorkersService.ExtendTask": Probe(
        {**_RUN, "seconds": 1},
        m.ExtendTaskRequest(worker_id=UNKNOWN_ID, task_id=UNKNOWN_ID, attempt=1, seconds=1),
    ),
    "WorkersService.ReportProgress": Probe(
        {**_RUN, "progress": {}},
        m.ReportProgressRequest(worker_id=UNKNOWN_ID, task_id=UNKNOWN_ID, attempt=1, progress="{}"),
    ),
    "WorkersService.ExchangeTasks": Probe(
        {"available_capacity": 1}, m.ExchangeTasksRequest(worker_id=UNKNOWN_ID, available_capacity=1)
    ),
    "WorkersService.DeregisterWorker": Probe(None, m.DeregisterWorkerRequest(worker_id=UNKNOWN_ID)),
    "AdminService.ListDeadLetters": Probe(None, m.ListDeadLettersRequest()),
    "AdminService.ReplayDeadLetter": Probe(None, m.ReplayDeadLetterRequest(task_id=UNKNOWN_ID)),
    "AdminService.ReplayDeadLetters": Probe({"most": 1}, m.ReplayDeadLettersRequest(most=1)),
    "AdminService.PurgeDeadLetter": Probe(None, m.PurgeDeadLetterRequest(task_id=UNKNOWN_ID)),
    "AdminService.PurgeDeadLetters": Probe(
        {"older_than_seconds": 1}, m.PurgeDeadLettersRequest(older_than_seconds=1)
    ),
    "AdminService.PauseQueue": Probe(None, m.PauseQueueRequest(priority=m.LOW)),
    "AdminService.ResumeQueue": Probe(None, m.ResumeQueueRequest(priority=m.LOW)),
    "AdminService.ListWorkers": Probe(None, m.ListWorkersRequest()),
    "AdminService.GetTaskHistory": Probe(None, m.GetTaskHistoryRequest(task_id=UNKNOWN_ID)),
}


def format_path(method: Method) -> str:
    """The path of a method over HTTP, with unknown ids."""
    assert method.route is not None
    return method.route.path.format(task_id=UNKNOWN_ID, worker_id=UNKNOWN_ID, priority="low")
