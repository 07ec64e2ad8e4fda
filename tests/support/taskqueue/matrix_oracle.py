"""The verdict of the caller matrix on a call, read from the YAML by other code than the engine's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from generated.taskqueue import messages
from tests.support import quick_yaml

ROOT = Path(__file__).parents[3]


def _read(name: str) -> Any:
    return quick_yaml.read((ROOT / f"spec/taskqueue/{name}.yaml").read_text(encoding="utf-8"))


_CALLERS, _SERVICES, _LIFECYCLE = _read("callers"), _read("services"), _read("lifecycle")
_PROTOS, _TYPES = _read("system")["protos"], _read("types")

PRINCIPALS: list[str] = [
    name for name, row in _CALLERS["principals"].items() if "certificate" in row["proof"]
]
"""The principals with credentials."""
ANONYMOUS = next(name for name, row in _CALLERS["principals"].items() if row["proof"] == ["anonymous"])
STATES: dict[str, int] = {
    name: row["number"] for name, row in _TYPES["public"]["enums"]["JobStatus"]["values"].items()
}
EDGES: dict[tuple[str, str], list[str]] = {
    (row["from"], row["to"]): row["by"] for row in _LIFECYCLE["entities"]["job"]["transitions"].values()
}
"""The actors of each edge of the job."""


class Called(NamedTuple):
    """One method, and the component that serves it."""

    component: str
    service: str
    method: str

    @property
    def path(self) -> str:
        package = _PROTOS[_SERVICES["services"][self.service]["proto"]]["package"]
        return f"/{package}.{self.service}/{self.method}"

    @property
    def row(self) -> dict[str, Any]:
        found: dict[str, Any] = _SERVICES["services"][self.service]["methods"][self.method]
        return found

    @property
    def request(self) -> Any:
        return getattr(messages, f"{self.method}Request")

    @property
    def answer(self) -> Any:
        return getattr(messages, f"{self.method}Response")


METHODS = [
    Called(component, service, method)
    for component, row in _SERVICES["components"].items()
    for service in row["serves"]
    for method in _SERVICES["services"][service]["methods"]
]


def verdict(caller: str | None, called: Called, request: Any) -> str | None:
    """The code with which the call is refused, or None if the handler answers it.

    The caller None has invalid credentials; one without credentials is the anonymous principal.
    """
    if caller is None:
        return "UNAUTHENTICATED"
    grants = _list_grants(caller, called.service)
    if called.method not in grants:
        return "UNAUTHENTICATED" if caller == ANONYMOUS else "PERMISSION_DENIED"
    if any(getattr(request, field) != STATES[state] for field, state in grants[called.method].items()):
        return "PERMISSION_DENIED"
    names_caller = called.row.get("names_caller")
    if names_caller is not None and getattr(request, names_caller) != caller:
        return "PERMISSION_DENIED"
    return _check_edge(caller, called.row.get("drives"), request)


def _check_edge(caller: str, drives: Any, request: Any) -> str | None:
    if drives is None:
        return None
    names = {number: name for name, number in STATES.items()}
    edge = tuple(names.get(getattr(request, drives[end]), "?") for end in ("from", "to"))
    for known, actors in EDGES.items():
        if known == edge:
            return None if caller in actors else "PERMISSION_DENIED"
    return "INVALID_ARGUMENT"


def requests(caller: str, called: Called) -> Iterator[Any]:
    """Well-formed requests: inside and outside each condition that anyone's permission has."""
    yield _make_request(caller, called)
    conditions = [
        only
        for each in _CALLERS["may_call"]
        if (only := _list_grants(each, called.service).get(called.method))
    ]
    for only in conditions:
        inside = _make_request(caller, called)
        for field, state in only.items():
            setattr(inside, field, STATES[state])
        yield inside
        for field in only:
            outside = type(inside).FromString(inside.SerializeToString())
            setattr(outside, field, STATES["DONE"])
            yield outside
        if names_caller := called.row.get("names_caller"):
            for other in ("", *PRINCIPALS, ANONYMOUS):
                claiming = type(inside).FromString(inside.SerializeToString())
                setattr(claiming, names_caller, other)
                yield claiming


def _make_request(caller: str, called: Called) -> Any:
    """A request that breaks none of its rules, about a job that does not exist."""
    proto = _SERVICES["services"][called.service]["proto"]
    request = called.request()
    for field, row in _TYPES[proto]["messages"][f"{called.method}Request"]["fields"].items():
        rules = row.get("rules", {})
        if field == called.row.get("names_caller"):
            setattr(request, field, caller)
        elif field == "spec":
            request.spec.job_type = "probe"
        elif "must_be" in rules:
            setattr(request, field, rules["must_be"])
        elif rules.get("non_empty"):
            setattr(request, field, "probe")
        elif rules.get("specified") or "one_of" in rules:
            setattr(request, field, 1 if rules.get("specified") else STATES[rules["one_of"][0]])
    return request


def _list_grants(caller: str, service: str) -> dict[str, dict[str, str]]:
    """The methods of a service that a caller may call, each with its condition."""
    found: dict[str, dict[str, str]] = {}
    for grant in _CALLERS["may_call"].get(caller, {}).get(service, []):
        for name, row in {grant: {}}.items() if isinstance(grant, str) else grant.items():
            found[name] = row.get("only", {})
    return found
