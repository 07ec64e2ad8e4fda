"""Rules of environment.yaml about each variable by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.diagnostics import suggest
from codegen.language.environment import EngineRole, Variable, VariableType
from codegen.rules.rule import Finding, report_unknown, rule
from codegen.source.spec import Spec

_ROLE_TYPES: dict[EngineRole, tuple[VariableType, ...]] = {
    "log_level": ("choice",),
    "tls_certificate": ("path",),
    "tls_key": ("path",),
    "tls_authority": ("path",),
    "caller_token": ("secret",),
    "accepted_tokens": ("digests",),
    "metrics_port": ("int", "port"),
    "max_body_bytes": ("int",),
}
_ADDRESS = r"[^\s:,]+:[0-9]{1,5}"
_FORMS = {
    "address": (_ADDRESS, "host:port"),
    "addresses": (f"{_ADDRESS}(,{_ADDRESS})*", "host:port, separated by commas"),
    "url": (r"[a-z][a-z0-9+.-]*://[^\s/]+(/[^\s]*)?", "scheme://host:port/path"),
    "digests": (r"[a-z0-9_]+=[0-9a-f]{64}(,[a-z0-9_]+=[0-9a-f]{64})*", "name=hex, separated by commas"),
}
_HIGHEST_PORT = 65535
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "bool": ((bool,), "which is neither true nor false"),
    "int": ((int,), "which is no whole number"),
    "port": ((int,), "which is no whole number"),
    "number": ((int, float), "which is no number"),
}
"""The Python types of each type that is not text, and the problem with any other value."""
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "trace", "debug", "info", "warn", "error")


@rule(
    "E601",
    "A variable is read by something that is neither a component nor a node.",
    wrong="WORKER_SLOTS: {read_by: [workers]}",
    right="WORKER_SLOTS: {read_by: [worker]}",
    spreads=True,
)
def check_readers_exist(spec: Spec) -> Iterator[Finding]:
    known = {*spec.services.components, *(node for _, _, node, _ in spec.nodes())}
    for name, row in spec.environment.variables.items():
        for index, reader in enumerate(row.read_by if isinstance(row.read_by, tuple) else ()):
            place = spec.place("environment", "variables", name, "read_by", index)
            lack = "which is neither a component nor a node"
            yield from report_unknown(spec, place, f"{name} is read by", reader, known, lack)


@rule(
    "E602",
    "A default is not a value that the variable may have.",
    wrong="WORKER_SLOTS: {type: int, min: 1, default: 0}",
    right="WORKER_SLOTS: {type: int, min: 1, default: 6}",
    spreads=True,
)
def check_defaults(spec: Spec) -> Iterator[Finding]:
    for name, row in spec.environment.variables.items():
        if row.default is not None and (problem := find_problem(row, row.default)):
            place = spec.place("environment", "variables", name, "default")
            yield Finding(place, f"The default of {name} is {row.default!r}, {problem[0]}.", problem[1])


def parse_default(row: Variable, text: str) -> bool | float | str:
    """Parse the default of a node, which is always text, as environment.yaml would have it."""
    if row.type == "bool" and text in ("true", "false"):
        return text == "true"
    if row.type in ("int", "port") and re.fullmatch(r"-?[0-9]{1,18}", text):
        return int(text)
    if row.type == "number" and re.fullmatch(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", text):
        return float(text)
    return text


def find_problem(row: Variable, value: bool | float | str) -> tuple[str, str] | None:
    """Find why a value is not valid for a variable, as the end of a sentence, and a hint."""
    if row.type in _KINDS:
        kinds, problem = _KINDS[row.type]
        if isinstance(value, str) or type(value) not in kinds:
            return problem, "Write it without quotes."
        return _find_bound_problem(row, value)
    if not isinstance(value, str):
        return "which is no text", f'Write it as "{value}".'
    if row.type == "choice" and row.choices and value not in row.choices:
        return "which is none of its choices", f"Known: {', '.join(row.choices)}."
    if row.pattern and not _find_pattern_problem(row.pattern) and not re.fullmatch(row.pattern, value):
        return "which does not match its pattern", f"The pattern is {row.pattern}."
    form = _FORMS.get(row.type)
    if form and not re.fullmatch(form[0], value):
        return "which is not written like one of its type", f"Write it as {form[1]}."
    return None


def _find_bound_problem(row: Variable, value: float) -> tuple[str, str] | None:
    bounds: list[tuple[str, float | None, str, float | None]] = [("min", row.min, "max", row.max)]
    if row.clamp:
        bounds.append(("clamp.min", row.clamp.min, "clamp.max", row.clamp.max))
    if row.type == "port":
        bounds.append(
            ("the lowest port", 1 if row.min is None else row.min, "the highest port", _HIGHEST_PORT)
        )
    for low_name, low, high_name, high in bounds:
        if low is not None and high is not None and low > high:
            continue
        if low is not None and value < low:
            return f"below {low_name} {low}", "Give a value within the bounds."
        if high is not None and value > high:
            return f"above {high_name} {high}", "Give a value within the bounds."
    return None


@rule(
    "E603",
    "A variable is required, so that its default would never count; or it has two defaults.",
    wrong="NODE_INDEX: {type: int, required: true, default: 0}",
    right="NODE_INDEX: {type: int, required: true}",
)
def check_default_used(spec: Spec) -> Iterator[Finding]:
    for name, row in spec.environment.variables.items():
        given = [key for key in ("default", "default_from") if getattr(row, key) is not None]
        place = spec.place("environment", "variables", name, *given[:1], key=True)
        if row.required and given:
            yield Finding(
                place,
                f"{name} is required, so its default never counts.",
                "Remove 'required' or the default.",
            )
        elif len(given) > 1:
            yield Finding(place, f"{name} has both 'default' and 'default_from'.", "Remove one of them.")


@rule(
    "E604",
    "A variable has a key that makes no sense for its type, or lacks one that its type needs.",
    wrong="LOG_LEVEL: {type: string, choices: [DEBUG, INFO]}",
    right="LOG_LEVEL: {type: choice, choices: [DEBUG, INFO]}",
    needs=("environment",),
)
def check_keys(spec: Spec) -> Iterator[Finding]:
    for name, row in spec.environment.variables.items():
        for key, types in _KEY_TYPES.items():
            if getattr(row, key) not in (None, ()) and row.type not in types:
                place = spec.place("environment", "variables", name, key, key=True)
                message = f"{name} is of type {row.type}, for which '{key}' makes no sense."
                yield Finding(place, message, f"It is for {' and '.join(types)}.")
        for type_, key in (("choice", "choices"), ("constant", "default")):
            if row.type == type_ and getattr(row, key) in (None, ()):
                place = spec.place("environment", "variables", name, key=True)
                yield Finding(place, f"{name} is a {type_} without '{key}'.", f"Add '{key}: …'.")


_KEY_TYPES: dict[str, tuple[str, ...]] = {
    "min": ("int", "number", "port"),
    "max": ("int", "number"),
    "clamp": ("int",),
    "choices": ("choice",),
    "pattern": ("string",),
    "default_from": ("string",),
}


@rule(
    "E605",
    "No value can be within the bounds of a variable.",
    wrong="WORKER_SLOTS: {type: int, min: 10, max: 1}",
    right="WORKER_SLOTS: {type: int, min: 1, max: 10}",
)
def check_bounds(spec: Spec) -> Iterator[Finding]:
    for name, row in spec.environment.variables.items():
        bounds: list[tuple[str, float | None, float | None]] = [("min", row.min, row.max)]
        if row.clamp:
            bounds.append(("clamp", row.clamp.min, row.clamp.max))
        for key, low, high in bounds:
            if low is not None and high is not None and low > high:
                place = spec.place("environment", "variables", name, key)
                yield Finding(
                    place, f"The least value of {name} is {low}, above its greatest, {high}.", "Swap them."
                )


@rule(
    "E618",
    "The pattern of a variable is no regular expression.",
    wrong='BUCKET: {type: string, pattern: "[a-z"}',
    right='BUCKET: {type: string, pattern: "[a-z]+"}',
)
def check_patterns(spec: Spec) -> Iterator[Finding]:
    for name, row in spec.environment.variables.items():
        if row.pattern is not None and (problem := _find_pattern_problem(row.pattern)) is not None:
            place = spec.place("environment", "variables", name, "pattern")
            yield Finding(place, f"The pattern of {name} is no regular expression: {problem}.")


def _find_pattern_problem(text: str) -> str | None:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return None


@rule(
    "E606",
    "Two variables play the same role for the engine.",
    wrong="LOG_LEVEL: {role: log_level}\nVERBOSITY: {role: log_level}",
    right="LOG_LEVEL: {role: log_level}\nVERBOSITY: {}",
)
def check_roles_unique(spec: Spec) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for name, row in spec.environment.variables.items():
        if row.role and (other := first.setdefault(row.role, name)) != name:
            place = spec.place("environment", "variables", name, "role")
            message = f"{name} has the role '{row.role}', and so has {other}."
            yield Finding(place, message, "Leave the role to one of them.")


@rule(
    "E607",
    "A variable plays a role for the engine that its type does not fit.",
    wrong="METRICS_PORT: {type: string, role: metrics_port}",
    right="METRICS_PORT: {type: int, role: metrics_port}",
)
def check_role_types(spec: Spec) -> Iterator[Finding]:
    for name, row in spec.environment.variables.items():
        if row.role and row.type not in _ROLE_TYPES[row.role]:
            place = spec.place("environment", "variables", name, "type")
            wanted = " or ".join(_ROLE_TYPES[row.role])
            message = f"{name} has the role '{row.role}', but is of type {row.type}."
            yield Finding(place, message, f"Make it of type {wanted}.")
        for index, level in enumerate(row.choices if row.role == "log_level" else ()):
            if level not in _LEVELS:
                place = spec.place("environment", "variables", name, "choices", index)
                yield Finding(place, f"'{level}' is no level of the log.", suggest(level, _LEVELS))


@rule(
    "E608",
    "A secret has a default, which would be no secret.",
    wrong="CALLER_TOKEN: {type: secret, default: changeme}",
    right="CALLER_TOKEN: {type: secret}",
)
def check_secrets(spec: Spec) -> Iterator[Finding]:
    for name, row in spec.environment.variables.items():
        if row.type == "secret" and row.default is not None:
            place = spec.place("environment", "variables", name, "default")
            yield Finding(
                place, f"{name} is a secret, and its default is here for all to read.", "Remove the default."
            )


@rule(
    "E609",
    "No node of any deployment reads a variable.",
    wrong="NODE_PORT: {type: port, read_by: [desk]}  # whose listen names another port",
    right="NODE_PORT: {type: port, read_by: [monolith]}  # whose listen names it",
    needs=("environment", "deployments", "services"),
)
def check_variables_read(spec: Spec) -> Iterator[Finding]:
    read = {name for _, deployment, node, _ in spec.nodes() for name in spec.variables_of(deployment, node)}
    for name, row in spec.environment.variables.items():
        if name not in read:
            place = spec.place("environment", "variables", name, key=True)
            hint = "Name a component or node that is deployed, or remove the variable."
            if row.type in ("port", "address"):
                key = "listen' or 'http" if row.type == "port" else "upstreams"
                hint = f"Name it in '{key}' of a node that is among its readers, or remove the variable."
            yield Finding(place, f"No node reads {name}.", hint)


@rule(
    "E610",
    "Something is sure to need a variable that may be left unset.",
    wrong="DESK_PORT: {type: port}  # and the desk listens on it",
    right="DESK_PORT: {type: port, default: 50051}",
    needs=("environment",),
)
def check_required_variables(spec: Spec) -> Iterator[Finding]:
    for name, use in _find_required_variables(spec).items():
        row = spec.environment.variables.get(name)
        if row and not row.required and row.default is None and row.default_from is None:
            place = spec.place("environment", "variables", name, key=True)
            message = f"{name} may be left unset, but {use}."
            yield Finding(place, message, "Give it a default, or say 'required: true'.")


def _find_required_variables(spec: Spec) -> dict[str, str]:
    """Find the variables that must have a value, each with what depends on it."""
    uses: dict[str, str] = {}
    for _, deployment, node_name, node in spec.nodes():
        uses |= {
            name: f"'{node_name}' finds '{target}' by it"
            for name, target in node.upstreams.items()
            # An announced node is discovered on the network where its variable is unset.
            if not (target in deployment.nodes and deployment.nodes[target].announced)
        }
        uses |= {
            each.port: f"'{node_name}' listens on it"
            for each in node.listeners.values()
            if not each.optional and each.port not in node.defaults
        }
    for deployment in spec.deployments.root.values():
        if routing := deployment.routing:
            uses |= dict.fromkeys((routing.order, routing.index), "clients are routed by it")
    uses |= {row.bound: f"'{name}' is bounded by it" for name, row in spec.system.policies.retention.items()}
    return uses
