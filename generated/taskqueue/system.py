"""All tables of taskqueue for the engine.

Generated from spec/taskqueue (sha256:2c9462dde7cbf380). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Final

from generated.taskqueue.callers import MATRIX, PRINCIPALS
from generated.taskqueue.clients import CLIENTS
from generated.taskqueue.deployments import DEPLOYMENTS
from generated.taskqueue.errors import CONDITIONS, ROLES, UPSTREAM
from generated.taskqueue.events import EVENTS
from generated.taskqueue.lifecycle import LIFECYCLES
from generated.taskqueue.methods import SERVICES
from generated.taskqueue.policy import KEEPALIVE
from generated.taskqueue.settings import RULES, SETTINGS, VARIABLES
from generated.taskqueue.storage import STORAGE
from runtime.model.system import System

SYSTEM: Final = System(
    name="taskqueue",
    digest="2c9462dde7cbf380720192894c64dcf1ceb1554785fd83c792cc797911935a0f",
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
    connections=4096,
    shutdown_grace_ms=5000,
    log_fields=("job_id", "worker_id"),
    settings=SETTINGS,
    clients=CLIENTS,
    enum_prefixes={"taskqueue.internal.v1.Presence": "PRESENCE_"},
)
