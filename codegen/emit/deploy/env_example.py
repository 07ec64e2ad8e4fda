"""`.env.example`: every variable that a user may set for a deployment, commented out."""

from __future__ import annotations

import re
from typing import NamedTuple

from codegen.emit.artefact import join_lines, render_template
from codegen.emit.deploy import wiring
from codegen.emit.deploy.servers import SERVERS
from codegen.emit.deploy.wiring import NodeSetting
from codegen.language.deployments import Deployment
from codegen.language.environment import Variable
from codegen.source.spec import Spec

_DISCOVERED = {"hostname": "the hostname", "process": "a name of the process"}


class EnvEntry(NamedTuple):
    """One variable: its meaning and its default."""

    name: str
    meaning: str
    default: str = ""


def render_env_example(spec: Spec, name: str, deployment: Deployment) -> str:
    """Render the file of one deployment."""
    return render_template(
        "deploy/env.example.j2",
        spec,
        title=join_lines(deployment.title),
        entries=[
            *_list_server_entries(spec, deployment),
            *_list_setting_entries(spec, deployment),
            *_list_port_entries(spec, deployment),
            *_list_compose_entries(spec, name),
        ],
        supplied=_list_supplied(spec, deployment),
        unused=_list_idle_tokens(spec, deployment),
    )


def _list_server_entries(spec: Spec, deployment: Deployment) -> list[EnvEntry]:
    """List the credentials and the options of the servers that are part of a deployment."""
    secrets = [
        EnvEntry(variable, f"{subject} the {name} server, which you choose (letters and digits, required).")
        for name in spec.servers_of(deployment)
        for subject, variable in (
            ("Key of", SERVERS[name].user),
            ("Password of", SERVERS[name].password),
            ("Password of the nodes on", SERVERS[name].service_password),
        )
        if variable
    ]
    options = [
        EnvEntry(variable, meaning, default)
        for name in spec.servers_of(deployment)
        for variable, (default, meaning) in SERVERS[name].options.items()
    ]
    return secrets + options


def _list_setting_entries(spec: Spec, deployment: Deployment) -> list[EnvEntry]:
    found: dict[str, EnvEntry] = {}
    for node, row in _list_settings(spec, deployment):
        name = wiring.name_compose_variable(node, deployment.nodes[node], row)
        is_credential = any(
            name in (SERVERS[each].user, SERVERS[each].password) for each in spec.servers_of(deployment)
        )
        if row.kind in ("default", "open", "required") and not is_credential:
            found.setdefault(name, EnvEntry(name, describe_variable(row.variable), _quote_value(row.value)))
    return list(found.values())


def _list_port_entries(spec: Spec, deployment: Deployment) -> list[EnvEntry]:
    """List the host ports that have a variable of their own."""
    known = {entry.name for entry in _list_setting_entries(spec, deployment)}
    return [
        EnvEntry(row.variable, f"Port of {wiring.format_host(row.peer)} on this machine.", str(row.port))
        for row in wiring.assign_published_ports(spec, deployment)
        if row.variable not in known
    ]


def _list_compose_entries(spec: Spec, deployment: str) -> list[EnvEntry]:
    user = f"{wiring.USER_ID}:{wiring.USER_ID}"
    found = [EnvEntry("RUN_AS", "User and group of every process.", user)]
    if wiring.has_certificates(spec):
        found[0] = found[0]._replace(
            meaning="User and group of every process; they must be able to read the keys."
        )
        found.append(
            EnvEntry(
                "CERTS_DIR",
                "Folder with ca.crt and the .crt and .key of each identity.",
                wiring.format_certificate_folder(spec, deployment),
            )
        )
    return found


def _list_supplied(spec: Spec, deployment: Deployment) -> list[str]:
    """List the required variables that compose.yaml sets, and their values."""
    found: dict[str, str] = {}
    for _, row in _list_settings(spec, deployment):
        if row.variable.required and row.kind == "index":
            found[row.name] = "the index of each replica"
        if row.variable.required and row.kind == "server":
            found[row.name] = SERVERS[row.value].host
        if row.variable.required and row.kind == "peers":
            found[row.name] = ", ".join(wiring.format_host(peer) for peer in row.peers)
    return [f"{name} ({value})" for name, value in found.items()]


def _list_idle_tokens(spec: Spec, deployment: Deployment) -> list[str]:
    """List the token variables that no node uses."""
    used = {row.name for _, row in _list_settings(spec, deployment)}
    return [
        name
        for name, row in spec.environment.variables.items()
        if row.role in wiring.TOKENS and name not in used
    ]


def _list_settings(spec: Spec, deployment: Deployment) -> list[tuple[str, NodeSetting]]:
    return [
        (node, row) for node in deployment.processes for row in wiring.list_settings(spec, deployment, node)
    ]


def describe_variable(variable: Variable) -> str:
    """Describe a variable on one line."""
    facts = [
        variable.unit and f"in {variable.unit}",
        variable.choices and f"one of {', '.join(variable.choices)}",
        variable.default_from and f"{_DISCOVERED[variable.default_from]} unless set",
        variable.required and "required",
    ]
    details = ", ".join(fact for fact in facts if fact)
    doc = join_lines(variable.doc)
    return f"{doc.rstrip('.')} ({details})." if details else doc


def _quote_value(value: str) -> str:
    return value if re.fullmatch(r"[\w.,:/+@-]*", value) else "'" + value.replace("'", "\\'") + "'"
