"""Layers: imports point one way, and neither generator nor engine names a system."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from generated.taskqueue.lifecycle import LIFECYCLES
from generated.taskqueue.system import SYSTEM

ROOT = Path(__file__).parents[1]
LAYERS = ("codegen", "runtime", "generated", "handlers")
SHARED_HANDLERS = "jobs"
"""The one package of handlers that others may use: functions that jobs run."""
COMPONENTS = ("gateway", "job", "queue", "coordinator", "worker", "result")
SYSTEM_WORDS = re.compile("taskqueue|orchestrator|objectqueue|queuey|gateway|coordinator", re.IGNORECASE)


def find_modules(*folders: str) -> dict[str, Path]:
    """Find every module below some folders, by its dotted name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@cache
def list_imports(path: Path) -> frozenset[str]:
    """List the dotted names that a module imports, at its top or anywhere inside."""
    return frozenset(_find_imports(path))


def _find_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def list_imported_layers(path: Path) -> set[str]:
    """List the layers that a module imports from; the bare package `generated` names no system."""
    return {name.partition(".")[0] for name in list_imports(path) - {"generated"}} & {
        *LAYERS,
        "bench",
        "tests",
    }


@pytest.mark.parametrize(
    ("layer", "allowed"),
    [
        ("codegen", {"codegen"}),
        ("runtime", {"runtime"}),
        ("generated", {"generated", "runtime"}),
        ("handlers", {"handlers", "generated", "runtime"}),
    ],
)
def test_dependencies_point_one_way(layer: str, allowed: set[str]) -> None:
    """Handlers know generated code, generated code knows the engine, and the generator knows none of them."""
    found = {name: list_imported_layers(path) - allowed for name, path in find_modules(layer).items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_the_http2_package_knows_nothing_of_the_engine() -> None:
    """The package `direct` speaks RFC 9113 and the gRPC protocol; it imports nothing else of the engine."""
    package = "runtime.transport.grpc.direct"
    known = find_modules("runtime/transport/grpc/direct")
    found = {(name, each) for name, path in known.items() for each in list_imports(path)}
    assert (f"{package}.channel", f"{package}.http2.streams.Limits") in found
    wrong = [pair for pair in found if pair[1].startswith("runtime.") and not pair[1].startswith(package)]
    assert wrong == []


def test_systems_do_not_know_each_other() -> None:
    """Handlers and tables of one system import nothing of another; only the job functions are shared."""
    for name, path in find_modules("handlers", "generated").items():
        allowed = {*name.split(".")[1:2], SHARED_HANDLERS}
        for layer, _, rest in (each.partition(".") for each in list_imports(path)):
            system = rest.partition(".")[0]
            if layer in ("handlers", "generated") and system and (ROOT / layer / system).is_dir():
                assert system in allowed, f"{name} imports {layer}.{rest}"


def list_closure(component: str) -> set[str]:
    """List the handler modules that a component imports, directly or not, with its own."""
    known, waiting = find_modules("handlers/taskqueue"), [f"handlers.taskqueue.{component}"]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            reached = {
                each
                for each in known
                if any(i == each or i.startswith(f"{each}.") for i in list_imports(known[name]))
            }
            waiting += reached - {"handlers.taskqueue"}
    return found


def list_imported_names(component: str, module: str) -> set[str]:
    """List the names that a component imports from a generated module of its system."""
    known, prefix = find_modules("handlers/taskqueue"), f"generated.taskqueue.{module}."
    every = {name for each in list_closure(component) for name in list_imports(known[each])}
    return {name.removeprefix(prefix) for name in every if name.startswith(prefix)}


@pytest.mark.req("TQ-018")
@pytest.mark.parametrize("component", COMPONENTS)
def test_components_do_not_import_each_other(component: str) -> None:
    """No module of a component belongs to another one; they meet through protocols only."""
    others = {f"handlers.taskqueue.{each}" for each in COMPONENTS if each != component}
    assert not list_closure(component) & others


@pytest.mark.parametrize(
    ("component", "services"),
    [
        pytest.param("gateway", {"Job", "Queue", "Result"}, marks=pytest.mark.req("TQ-018")),
        pytest.param("job", set(), marks=pytest.mark.req("TQ-013")),
        pytest.param("queue", set(), marks=pytest.mark.req("TQ-014")),
        pytest.param("coordinator", {"Job", "Queue", "Result"}, marks=pytest.mark.req("TQ-015")),
        pytest.param("worker", {"Coordinator"}, marks=pytest.mark.req("TQ-016")),
        pytest.param("result", set(), marks=pytest.mark.req("TQ-017")),
    ],
)
def test_a_component_knows_only_its_own_messages_and_those_of_whom_it_calls(
    component: str, services: set[str]
) -> None:
    """A component imports the protocols in its row of the matrix, and no message of other ones."""
    assert list_imported_names(component, "services") == {f"{each}InternalService" for each in services}
    assert not list_imported_names(component, "clients")
    visible = [
        service
        for name, service in SYSTEM.services.items()
        if service.component == component or name.removesuffix("InternalService") in services
    ]
    allowed = {
        kind.__name__ for each in visible for row in each.methods for kind in (row.request, row.response)
    }
    used = {
        name for name in list_imported_names(component, "messages") if name.endswith(("Request", "Response"))
    }
    assert used - allowed <= {"PageRequest", "PageResponse"}


@pytest.mark.req("TQ-013", "TQ-014", "TQ-015", "TQ-016")
def test_only_owners_of_a_datum_have_a_store() -> None:
    """Job, queue and result have a store, each of its own entities; the others do not import one."""
    known = find_modules("handlers/taskqueue")
    owners = {
        component
        for component in COMPONENTS
        for each in list_closure(component)
        if any(
            name.startswith(("runtime.stores.contract.", "runtime.stores.store.", "runtime.stores.memory."))
            for name in list_imports(known[each])
        )
    }
    assert owners == {"job", "queue", "result"}
    assert {name: each.holders for name, each in LIFECYCLES.items()} == {
        "job": {"job"},
        "submit_key": {"job"},
        "entry": {"queue"},
        "envelope": {"result"},
    }


@pytest.mark.req("TQ-014", "TQ-016")
@pytest.mark.parametrize("component", ["queue", "worker"])
def test_queue_and_worker_know_no_status(component: str) -> None:
    """Neither can ask for a transition, for neither knows the states of a job."""
    assert not list_imported_names(component, "messages") & {
        "JobStatus",
        *SYSTEM.lifecycles["job"].states.values(),
    }
    assert not list_imported_names(component, "lifecycle")


def test_no_system_is_named_in_the_generator_or_the_engine() -> None:
    """Not even a string, a comment or an example knows a system."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for folder in ("codegen", "runtime")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".j2", ".sql", ".lua")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if SYSTEM_WORDS.search(line)
    ]
    assert found == []
