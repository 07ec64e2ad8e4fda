"""All tables of orchestrator for the engine.

Generated from spec/orchestrator (sha256:fdaebfd770cb5849). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Final

from generated.orchestrator.callers import MATRIX, PRINCIPALS
from generated.orchestrator.clients import CLIENTS
from generated.orchestrator.deployments import DEPLOYMENTS
from generated.orchestrator.errors import CONDITIONS, ROLES, UPSTREAM
from generated.orchestrator.events import EVENTS
from generated.orchestrator.lifecycle import LIFECYCLES
from generated.orchestrator.methods import SERVICES
from generated.orchestrator.policy import KEEPALIVE
from generated.orchestrator.settings import RULES, SETTINGS, VARIABLES
from generated.orchestrator.storage import STORAGE
from runtime.model.system import System

SYSTEM: Final = System(
    name="orchestrator",
    digest="fdaebfd770cb5849f7f85cb4ee4ae4a49a427e767b976e687f7cea442107c4a3",
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
    log_fields=("job_id",),
    settings=SETTINGS,
    clients=CLIENTS,
    json_fields=frozenset(
        (
            "orchestrator.internal.v1.JobRow.payload",
            "orchestrator.internal.v1.JobRow.result",
            "orchestrator.v1.SubmitJobRequest.payload",
        )
    ),
    enum_prefixes={"orchestrator.v1.Status": "STATUS_"},
)
