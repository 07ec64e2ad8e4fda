"""All tables of queuey for the engine.

Generated from spec/queuey (sha256:77d78c72842295af). Do not edit; run `nox -s generate`.
"""

from __future__ import annotations

from typing import Final

from generated.queuey.callers import MATRIX, PRINCIPALS
from generated.queuey.clients import CLIENTS
from generated.queuey.deployments import DEPLOYMENTS
from generated.queuey.errors import CONDITIONS, ROLES, UPSTREAM
from generated.queuey.events import EVENTS
from generated.queuey.lifecycle import LIFECYCLES
from generated.queuey.methods import SERVICES
from generated.queuey.policy import KEEPALIVE
from generated.queuey.settings import RULES, SETTINGS, VARIABLES
from generated.queuey.storage import STORAGE
from runtime.model.system import JsonStyle, System

SYSTEM: Final = System(
    name="queuey",
    digest="77d78c72842295af8d56e04dbcf2868824c04b05f2f1268c5896770540288f9c",
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
    log_fields=("job_id", "runner_id"),
    settings=SETTINGS,
    clients=CLIENTS,
    json_style=JsonStyle(snake=True, shows_unset=True),
    enum_spelling={"queuey.v1.JobStatus": "lower"},
)
