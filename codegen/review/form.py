"""Canonical form of a spec: its files as data in which equal meaning gives equal text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, RootModel

from codegen.language import FILES, OPTIONAL
from codegen.language.base import CANONICAL
from codegen.language.callers import CallersFile, Permission, Principal
from codegen.language.deployments import Deployment, Node, Routing
from codegen.language.environment import EnvironmentFile, Variable, VariableRule
from codegen.language.errors import ErrorsFile, Upstream
from codegen.language.leases import Holder, Index
from codegen.language.lifecycle import Creation, Deletion, Entity, Transition, Update
from codegen.language.metrics import Counted, Metric
from codegen.language.services import Component, Idempotency, Method
from codegen.language.storage.s3 import KeyIndex, Retiring
from codegen.language.system import Freeze, Policies, Proto, RetryProfile
from codegen.language.types import FieldRules, ItemRules, MessageField, Reserved, TypesFile
from codegen.source.loader import compute_digest
from codegen.source.spec import Spec

Path = tuple[str, ...]
Data = dict[str, Any]

PROSE_KEYS = frozenset({"doc", "title", "summary", "trigger", "owns"})
"""Keys whose values are prose for readers."""

UNORDERED: dict[type[BaseModel], frozenset[str]] = {
    Component: frozenset({"serves"}),
    Counted: frozenset({"on"}),
    Creation: frozenset({"by", "stamps", "to"}),
    Deletion: frozenset({"by", "from_"}),
    Deployment: frozenset({"ingress"}),
    Entity: frozenset({"failed", "resting", "shared_with", "terminal", "unique"}),
    FieldRules: frozenset({"one_of", "required_unless"}),
    Freeze: frozenset({"decisions", "gate", "out_of_scope"}),
    Holder: frozenset({"in_"}),
    Idempotency: frozenset({"key"}),
    ItemRules: frozenset({"one_of"}),
    Index: frozenset({"in_"}),
    KeyIndex: frozenset({"in_"}),
    Metric: frozenset({"percentiles"}),
    Method: frozenset({"calls", "raises"}),
    Node: frozenset({"hosts"}),
    Policies: frozenset({"log_fields"}),
    Principal: frozenset({"proof"}),
    Proto: frozenset({"imports"}),
    Reserved: frozenset({"numbers", "names"}),
    RetryProfile: frozenset({"codes"}),
    Retiring: frozenset({"in_"}),
    Routing: frozenset({"per_node"}),
    Update: frozenset({"by", "clear", "in_", "stamps"}),
    Transition: frozenset({"by", "clear", "from_", "when", "stamps"}),
    Upstream: frozenset({"pass_through", "unavailable"}),
    Variable: frozenset({"choices", "read_by"}),
    VariableRule: frozenset({"together"}),
}
"""Lists whose order has no meaning. Any other list, also of a new keyword, keeps its order."""


_SCALARS = frozenset({str, int, float, bool, type(None)})


class Prose(str):
    """Text for readers, which may be reworded without a record."""

    __slots__ = ()


def encode_form(spec: Spec) -> Data:
    """Encode a spec as it is stored; `decode_form` is the inverse."""
    form = spec_to_tree(spec)
    callers, environment = form["callers"], form["environment"]
    for services in callers.get("may_call", {}).values():
        for service, grants in services.items():
            services[service] = [{name: grant} if grant else name for name, grant in grants.items()]
    if "rules" in environment:
        environment["rules"] = [*environment["rules"].values()]
    return form


def decode_form(data: Mapping[str, Any], folder: str) -> Spec:
    """Decode a stored form; raises pydantic's ValidationError if it is not valid in the language."""
    files = {name: data.get(name, {} if name in OPTIONAL else None) for name in FILES}
    models = {
        name: model.model_validate_json(json.dumps(files[name]), context=dict(CANONICAL))
        for name, model in FILES.items()
    }
    parts: dict[str, Any] = {**models}
    return Spec(folder, {}, compute_digest(models), **parts).at_home()


def spec_to_tree(spec: Spec) -> Data:
    """Convert a spec to a tree of names, with permissions and rules between variables under their names."""
    form = {name: _value_to_data(getattr(spec, name)) for name in FILES}
    return {name: file for name, file in form.items() if file or name not in OPTIONAL}


def part_to_data(part: BaseModel) -> Data:
    """Convert a part to data in which equal meaning gives equal data."""
    return _encode_part(part)


def flatten(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Flatten a tree to its values by path; a list is one value, and so is an empty part."""
    if isinstance(value, dict) and value:
        return {
            leaf: found for key, part in value.items() for leaf, found in flatten(part, (*path, key)).items()
        }
    return {path: value}


def format_rule_name(rule: VariableRule) -> str:
    """Format the name of a rule between variables from its content."""
    data: Data = _value_to_data(rule)
    keys = {name: value for name, value in data.items() if name not in PROSE_KEYS}
    subject = keys.pop("variable", "")
    parts = [
        f"{name} {', '.join(value) if isinstance(value, list) else value}" for name, value in keys.items()
    ]
    return " ".join([subject, *parts]).strip()


def _value_to_data(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, CallersFile):
        return {**_encode_part(value), **_encode_may_call(value)}
    if isinstance(value, EnvironmentFile):
        rules = {format_rule_name(rule): _value_to_data(rule) for rule in value.rules}
        return {**_encode_part(value), **({"rules": _sort_parts(rules)} if rules else {})}
    if isinstance(value, TypesFile):
        return {name: data for name, part in sorted(value.root.items()) if (data := _value_to_data(part))}
    if isinstance(value, RootModel):
        return _value_to_data(value.root)
    if isinstance(value, BaseModel):
        return _encode_part(value)
    if isinstance(value, dict):
        return {key: _value_to_data(part) for key, part in _sort_parts(value).items()}
    return [_value_to_data(part) for part in value] if isinstance(value, tuple) else value


def _encode_part(part: BaseModel) -> Data:
    """Encode the values of a part that differ from their defaults, in the order of the language."""
    found: Data = {}
    given = part.model_fields_set
    for name, field in type(part).model_fields.items():
        if name not in given and field.default_factory is None:
            continue
        value = getattr(part, name)
        if value == field.default:
            continue
        data = _value_to_data(value)
        if isinstance(data, list) and name in UNORDERED.get(type(part), ()):
            data = sorted(set(data))
        if isinstance(part, MessageField) and name == "type":
            data = re.sub(", *", ", ", data)
        if isinstance(part, ErrorsFile) and name == "reasons":
            data = {reason: Prose(text) for reason, text in data.items()}
        found[field.alias or name] = Prose(data) if name in PROSE_KEYS and isinstance(data, str) else data
    return found


def _encode_may_call(callers: CallersFile) -> Data:
    found: Data = {}
    for principal, services in sorted(callers.may_call.items()):
        grants = {
            service: _encode_grants(callers.get_grants(principal, service)) for service in sorted(services)
        }
        if granted := {service: grant for service, grant in grants.items() if grant}:
            found[principal] = granted
    return {"may_call": found}


def _encode_grants(grants: dict[str, Permission]) -> Data:
    return {method: _value_to_data(permission) for method, permission in sorted(grants.items())}


def _sort_parts(parts: dict[str, Any]) -> dict[str, Any]:
    """Sort parts by number where each has one, as members of a message do; by name elsewhere."""

    def get_rank(item: tuple[str, Any]) -> tuple[int, str]:
        return getattr(item[1], "number", 0), item[0]

    return dict(sorted(parts.items(), key=get_rank))
