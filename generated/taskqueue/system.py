"""All tables of taskqueue for the engine.

Generated from spec/taskqueue (sha256:5dc1bc31b081eb9a). Do not edit; run `nox -s generate`.
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
    digest="5dc1bc31b081eb9a41a0860d819fa9b325d4432e1ad206cdb6f920c63bd420fe",
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
)
