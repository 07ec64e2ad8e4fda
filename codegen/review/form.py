"""The accepted form of a spec: its files as data in which equal meaning gives equal text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, RootModel

from codegen.language import FILES, OPTIONAL
from codegen.language.callers import CallersFile, Permission, Principal
from codegen.language.deployments import Deployment, Node, Routing
from codegen.language.environment import EnvironmentFile, Variable, VariableRule
from codegen.language.errors import ErrorsFile, Upstream
from codegen.language.lifecycle import Creation, Deletion, Entity, Shift, Transition
from codegen.language.metrics import Counted, Metric
from codegen.language.persistence import Holder, Index, Kept
from codegen.language.s3_persistence import KeyIndex, Retiring
from codegen.language.services import Component, Idempotency, Method
from codegen.language.system import Freeze, Policies, Proto, RetryProfile
from codegen.language.types import FieldRules, ItemRules, MessageField, Reserved, TypesFile
from codegen.source.loader import digest
from codegen.source.spec import Spec

Path = tuple[str, ...]
Data = dict[str, Any]

TEXTS = frozenset({"doc", "title", "summary", "trigger", "owns"})
"""Words that are there for people only."""

UNORDERED: dict[type[BaseModel], frozenset[str]] = {
    Component: frozenset({"serves"}),
    Counted: frozenset({"on"}),
    Creation: frozenset({"by", "stamps"}),
    Deletion: frozenset({"by", "from_"}),
    Deployment: frozenset({"ingress"}),
    Entity: frozenset({"failed", "shared_with", "terminal"}),
    FieldRules: frozenset({"one_of", "required_unless"}),
    Freeze: frozenset({"decisions", "gate", "out_of_scope"}),
    Holder: frozenset({"in_"}),
    Idempotency: frozenset({"key"}),
    ItemRules: frozenset({"one_of"}),
    Index: frozenset({"in_"}),
    Kept: frozenset({"unique"}),
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
    Shift: frozenset({"by", "clears", "in_", "stamps"}),
    Transition: frozenset({"by", "clears", "when", "stamps"}),
    Upstream: frozenset({"pass_through", "unavailable"}),
    Variable: frozenset({"choices", "read_by"}),
    VariableRule: frozenset({"together"}),
}
"""Lists whose order says nothing. Any other list, also of a word that is new, keeps its order."""


_SCALARS = frozenset({str, int, float, bool, type(None)})


class Text(str):
    """A text for people, which may be worded anew without a record."""

    __slots__ = ()


def write(spec: Spec) -> Data:
    """The form as it is stored: what `read` takes back."""
    form = tree(spec)
    callers, environment = form["callers"], form["environment"]
    for services in callers.get("may_call", {}).values():
        for service, grants in services.items():
            services[service] = [{name: grant} if grant else name for name, grant in grants.items()]
    if "rules" in environment:
        environment["rules"] = [*environment["rules"].values()]
    return form


def read(data: Mapping[str, Any], folder: str) -> Spec:
    """The spec of a stored form; raises pydantic's ValidationError if the language does not know it."""
    said = {name: data.get(name, {} if name in OPTIONAL else None) for name in FILES}
    models = {name: model.model_validate_json(json.dumps(said[name])) for name, model in FILES.items()}
    parts: dict[str, Any] = {**models}
    return Spec(folder, {}, digest(models), **parts)


def tree(spec: Spec) -> Data:
    """The form as a tree of names, in which a permission and a rule of variables stand under their name."""
    form = {name: _plain(getattr(spec, name)) for name in FILES}
    return {name: said for name, said in form.items() if said or name not in OPTIONAL}


def said(part: BaseModel) -> Data:
    """What a part says, in which equal meaning gives equal data."""
    return _words(part)


def leaves(value: Any, path: Path = ()) -> dict[Path, Any]:
    """Every value of a tree by its path; a list is one value, and so is an empty part."""
    if isinstance(value, dict) and value:
        return {
            leaf: said for key, part in value.items() for leaf, said in leaves(part, (*path, key)).items()
        }
    return {path: value}


def rule_name(rule: VariableRule) -> str:
    """What a rule between variables says, as a name for it."""
    said: Data = _plain(rule)
    words = {name: value for name, value in said.items() if name not in TEXTS}
    subject = words.pop("variable", "")
    parts = [
        f"{name} {', '.join(value) if isinstance(value, list) else value}" for name, value in words.items()
    ]
    return " ".join([subject, *parts]).strip()


def _plain(value: Any) -> Any:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, CallersFile):
        return {**_words(value), **_may_call(value)}
    if isinstance(value, EnvironmentFile):
        rules = {rule_name(rule): _plain(rule) for rule in value.rules}
        return {**_words(value), **({"rules": _sorted(rules)} if rules else {})}
    if isinstance(value, TypesFile):
        return {name: said for name, part in sorted(value.root.items()) if (said := _plain(part))}
    if isinstance(value, RootModel):
        return _plain(value.root)
    if isinstance(value, BaseModel):
        return _words(value)
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in _sorted(value).items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _words(part: BaseModel) -> Data:
    """What a part says beyond its defaults, in the order in which the language has its words."""
    found: Data = {}
    given = part.model_fields_set
    for name, word in type(part).model_fields.items():
        if name not in given and word.default_factory is None:
            continue
        value = getattr(part, name)
        if value == word.default:
            continue
        said = _plain(value)
        if isinstance(said, list) and name in UNORDERED.get(type(part), ()):
            said = sorted(set(said))
        if isinstance(part, MessageField) and name == "type":
            said = re.sub(", *", ", ", said)
        if isinstance(part, ErrorsFile) and name == "reasons":
            said = {reason: Text(text) for reason, text in said.items()}
        found[word.alias or name] = Text(said) if name in TEXTS and isinstance(said, str) else said
    return found


def _may_call(callers: CallersFile) -> Data:
    found: Data = {}
    for principal, services in sorted(callers.may_call.items()):
        grants = {service: _grants(callers.grants(principal, service)) for service in sorted(services)}
        if said := {service: grant for service, grant in grants.items() if grant}:
            found[principal] = said
    return {"may_call": found}


def _grants(grants: dict[str, Permission]) -> Data:
    return {method: _plain(permission) for method, permission in sorted(grants.items())}


def _sorted(parts: dict[str, Any]) -> dict[str, Any]:
    """By number where each part has one, as members of a message do; by name elsewhere."""

    def rank(item: tuple[str, Any]) -> tuple[int, str]:
        return getattr(item[1], "number", 0), item[0]

    return dict(sorted(parts.items(), key=rank))
