"""All tables of objectqueue for the engine.

Generated from spec/objectqueue (sha256:bf30565a014f0db2). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Final

from generated.objectqueue.callers import MATRIX, PRINCIPALS
from generated.objectqueue.clients import CLIENTS
from generated.objectqueue.deployments import DEPLOYMENTS
from generated.objectqueue.errors import CONDITIONS, ROLES, UPSTREAM
from generated.objectqueue.events import EVENTS
from generated.objectqueue.lifecycle import LIFECYCLES
from generated.objectqueue.methods import SERVICES
from generated.objectqueue.policy import KEEPALIVE
from generated.objectqueue.settings import RULES, SETTINGS, VARIABLES
from runtime.model.system import JsonStyle, System

SYSTEM: Final = System(
    name="objectqueue",
    digest="bf30565a014f0db2421b04033c5e9ba410471c38d3942551527e61e2a8602882",
    services=SERVICES,
    matrix=MATRIX,
    principals=PRINCIPALS,
    lifecycles=LIFECYCLES,
    conditions=CONDITIONS,
    roles=ROLES,
    upstream=UPSTREAM,
    events=EVENTS,
    variables=VARIABLES,
    variable_rules=RULES,
    deployments=DEPLOYMENTS,
    keepalive=KEEPALIVE,
    message_bytes=67108864,
    concurrent_streams=1024,
    connections=4096,
    shutdown_grace_ms=40000,
    log_fields=("task_id",),
    settings=SETTINGS,
    clients=CLIENTS,
    json_fields=frozenset(
        (
            "objectqueue.v1.SubmitTaskRequest.input",
            "objectqueue.v1.Task.input",
            "objectqueue.v1.Task.output",
            "objectqueue.v1.Task.progress",
        )
    ),
    json_style=JsonStyle(snake=True, shows_unset=True),
    variable_prefix="QO_",
    enum_spelling={"objectqueue.v1.TaskStatus": "title", "objectqueue.v1.WorkerStatus": "title"},
)
