"""All tables of orchestrator for the engine.

Generated from spec/orchestrator (sha256:159d75815b2c6e54). Do not edit; run `nox -s generate`.
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
from runtime.model.system import System

SYSTEM: Final = System(
    name="orchestrator",
    digest="159d75815b2c6e542e960c6b229c7d2aa2a376f8630641ed6aadcf2fa6ca62ce",
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
