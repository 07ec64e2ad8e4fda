"""All tables of priority for the engine.

Generated from spec/priority (sha256:5fb02a1f146da16d). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Final

from generated.priority.callers import MATRIX, PRINCIPALS
from generated.priority.clients import CLIENTS
from generated.priority.deployments import DEPLOYMENTS
from generated.priority.errors import CONDITIONS, ROLES, UPSTREAM
from generated.priority.events import EVENTS
from generated.priority.lifecycle import LIFECYCLES
from generated.priority.methods import SERVICES
from generated.priority.metrics import MEASURED
from generated.priority.policy import KEEPALIVE
from generated.priority.settings import RULES, SETTINGS, VARIABLES
from generated.priority.storage import STORAGE
from runtime.model.system import JsonStyle, System

SYSTEM: Final = System(
    name="priority",
    digest="5fb02a1f146da16db1f9223ed3dca11f2e2c695c1bcbe11ef92e6fd48c317067",
    services=SERVICES,
    matrix=MATRIX,
    principals=PRINCIPALS,
    lifecycles=LIFECYCLES,
    storage=STORAGE,
    conditions=CONDITIONS,
    roles=ROLES,
    upstream=UPSTREAM,
    events=EVENTS,
    variables=VARIABLES,
    variable_rules=RULES,
    deployments=DEPLOYMENTS,
    keepalive=KEEPALIVE,
    message_bytes=4194304,
    concurrent_streams=1024,
    connections=1024,
    shutdown_grace_ms=25000,
    log_fields=("task_id", "worker_id"),
    settings=SETTINGS,
    clients=CLIENTS,
    measured=MEASURED,
    json_fields=frozenset(
        (
            "priority.internal.v1.TaskRow.parameters",
            "priority.internal.v1.TaskRow.progress",
            "priority.internal.v1.TaskRow.result",
            "priority.v1.AssignedTask.parameters",
            "priority.v1.ReportProgressRequest.progress",
            "priority.v1.ReportResultRequest.result",
            "priority.v1.SubmitTaskRequest.parameters",
            "priority.v1.Task.progress",
            "priority.v1.Task.result",
            "priority.v1.TaskPayload.parameters",
            "priority.v1.TaskResult.result",
        )
    ),
    json_style=JsonStyle(snake=True, shows_unset=True, milliseconds=True, details=True),
    enum_spelling={
        "priority.v1.Priority": "lower",
        "priority.v1.TaskStatus": "lower",
        "priority.v1.WorkerStatus": "lower",
    },
)
