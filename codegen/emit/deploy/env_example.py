"""`.env.example`: all that a user may set for a deployment, each line ready to be uncommented."""

from __future__ import annotations

import re
from typing import NamedTuple

from codegen.emit.artefact import render_template
from codegen.emit.deploy import wiring
from codegen.emit.deploy.servers import SERVERS
from codegen.emit.deploy.wiring import Setting
from codegen.language.deployments import Deployment
from codegen.language.environment import Variable
from codegen.source.spec import Spec

_FOUND_OUT = {"hostname": "the hostname", "process": "a name of the process"}


class Entry(NamedTuple):
    """One variable: what it means, and the value it has unless it is set."""

    name: str
    meaning: str
    default: str = ""


def text(spec: Spec, name: str, deployment: Deployment) -> str:
    """The file for one deployment."""
    return render_template(
        "deploy/env.example.j2",
        spec,
        title=wiring.one_line(deployment.title),
        entries=[
            *_servers(deployment),
            *_settings(spec, deployment),
            *_ports(spec, deployment),
            *_compose(spec, name),
        ],
        supplied=_supplied(spec, deployment),
        unused=_idle_tokens(spec, deployment),
    )


def _servers(deployment: Deployment) -> list[Entry]:
    """The names and passwords of the servers that come with it, and what else these can be told."""
    secrets = [
        Entry(variable, f"{what} the {name} server, which you make up (letters and digits, required).")
        for name in deployment.servers
        for what, variable in (
            ("Key of", SERVERS[name].user),
            ("Password of", SERVERS[name].password),
            ("Password of the nodes on", SERVERS[name].service_password),
        )
        if variable
    ]
    options = [
        Entry(variable, meaning, default)
        for name in deployment.servers
        for variable, (default, meaning) in SERVERS[name].options.items()
    ]
    return secrets + options


def _settings(spec: Spec, deployment: Deployment) -> list[Entry]:
    found: dict[str, Entry] = {}
    for node, row in _rows(spec, deployment):
        name = wiring.outside_name(node, deployment.nodes[node], row)
        made_up = any(name in (SERVERS[each].user, SERVERS[each].password) for each in deployment.servers)
        if row.kind in ("default", "open", "required") and not made_up:
            found.setdefault(name, Entry(name, meaning(row.variable), _quoted(row.value)))
    return list(found.values())


def _ports(spec: Spec, deployment: Deployment) -> list[Entry]:
    """Ports outside that are not the node's own variable."""
    known = {entry.name for entry in _settings(spec, deployment)}
    return [
        Entry(row.variable, f"Port of {wiring.host(row.peer)} on this machine.", str(row.port))
        for row in wiring.published(spec, deployment)
        if row.variable not in known
    ]


def _compose(spec: Spec, deployment: str) -> list[Entry]:
    user = f"{wiring.USER_ID}:{wiring.USER_ID}"
    found = [Entry("RUN_AS", "User and group of every process.", user)]
    if wiring.uses_certificates(spec):
        found[0] = found[0]._replace(
            meaning="User and group of every process; they must be able to read the keys."
        )
        found.append(
            Entry(
                "CERTS_DIR",
                "Folder with ca.crt and the .crt and .key of each identity.",
                wiring.certificate_folder(spec, deployment),
            )
        )
    return found


def _supplied(spec: Spec, deployment: Deployment) -> list[str]:
    """Required variables that compose.yaml sets, and to what."""
    found: dict[str, str] = {}
    for _, row in _rows(spec, deployment):
        if row.variable.required and row.kind == "index":
            found[row.name] = "the place of each replica"
        if row.variable.required and row.kind == "server":
            found[row.name] = SERVERS[row.value].host
        if row.variable.required and row.kind == "peers":
            found[row.name] = ", ".join(wiring.host(peer) for peer in row.peers)
    return [f"{name} ({value})" for name, value in found.items()]


def _idle_tokens(spec: Spec, deployment: Deployment) -> list[str]:
    """Variables of tokens that no node is given."""
    given = {row.name for _, row in _rows(spec, deployment)}
    return [
        name
        for name, row in spec.environment.variables.items()
        if row.role in wiring.TOKENS and name not in given
    ]


def _rows(spec: Spec, deployment: Deployment) -> list[tuple[str, Setting]]:
    return [(node, row) for node in deployment.processes for row in wiring.settings(spec, deployment, node)]


def meaning(variable: Variable) -> str:
    """What a variable says of itself, on one line."""
    facts = [
        variable.unit and f"in {variable.unit}",
        variable.choices and f"one of {', '.join(variable.choices)}",
        variable.default_from and f"{_FOUND_OUT[variable.default_from]} unless set",
        variable.required and "required",
    ]
    said = ", ".join(fact for fact in facts if fact)
    doc = wiring.one_line(variable.doc)
    return f"{doc.rstrip('.')} ({said})." if said else doc


def _quoted(value: str) -> str:
    return value if re.fullmatch(r"[\w.,:/+@-]*", value) else "'" + value.replace("'", "\\'") + "'"
