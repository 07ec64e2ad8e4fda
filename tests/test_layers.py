"""Who may know whom: dependencies point one way, and neither generator nor engine knows a system."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from generated.taskqueue.system import SYSTEM

ROOT = Path(__file__).parents[1]
LAYERS = ("codegen", "runtime", "generated", "handlers")
SHARED_HANDLERS = "jobs"
"""The one package of handlers that others may use: functions that jobs run."""
COMPONENTS = ("gateway", "job", "queue", "coordinator", "worker", "result")
SYSTEM_WORDS = re.compile("taskqueue|orchestrator|objectqueue|queuey|gateway|coordinator", re.IGNORECASE)


def modules(*folders: str) -> dict[str, Path]:
    """Every module below some folders, by its dotted name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@cache
def imports(path: Path) -> frozenset[str]:
    """The dotted names that a module imports, at its top or anywhere inside."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def from_layers(path: Path) -> set[str]:
    """The layers that a module imports from; the bare package `generated` names no system."""
    return {name.partition(".")[0] for name in imports(path) - {"generated"}} & {*LAYERS, "bench", "tests"}


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
    found = {name: from_layers(path) - allowed for name, path in modules(layer).items()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_the_http2_package_knows_nothing_of_the_engine() -> None:
    """The package `direct` speaks RFC 9113 and the gRPC protocol; it imports nothing else of the engine."""
    package = "runtime.transport.grpc.direct"
    known = modules("runtime/transport/grpc/direct")
    found = {(name, each) for name, path in known.items() for each in imports(path)}
    assert (f"{package}.channel", f"{package}.http2.streams.Limits") in found
    wrong = [pair for pair in found if pair[1].startswith("runtime.") and not pair[1].startswith(package)]
    assert wrong == []


def test_systems_do_not_know_each_other() -> None:
    """Handlers and tables of one system import nothing of another; only the job functions are shared."""
    for name, path in modules("handlers", "generated").items():
        allowed = {*name.split(".")[1:2], SHARED_HANDLERS}
        for layer, _, rest in (each.partition(".") for each in imports(path)):
            system = rest.partition(".")[0]
            if layer in ("handlers", "generated") and system and (ROOT / layer / system).is_dir():
                assert system in allowed, f"{name} imports {layer}.{rest}"


def closure(component: str) -> set[str]:
    """The handler modules that a component is made of: its own and, through them, every other one."""
    known, waiting = modules("handlers/taskqueue"), [f"handlers.taskqueue.{component}"]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            reached = {
                each
                for each in known
                if any(i == each or i.startswith(f"{each}.") for i in imports(known[name]))
            }
            waiting += reached - {"handlers.taskqueue"}
    return found


def named(component: str, module: str) -> set[str]:
    """What a component imports from a generated module of its system."""
    known, prefix = modules("handlers/taskqueue"), f"generated.taskqueue.{module}."
    every = {name for each in closure(component) for name in imports(known[each])}
    return {name.removeprefix(prefix) for name in every if name.startswith(prefix)}


@pytest.mark.req("TQ-018")
@pytest.mark.parametrize("component", COMPONENTS)
def test_components_do_not_import_each_other(component: str) -> None:
    """Nothing that a component is made of belongs to another one; they meet through protocols only."""
    others = {f"handlers.taskqueue.{each}" for each in COMPONENTS if each != component}
    assert not closure(component) & others


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
    """A component imports the protocols in its row of the matrix, and no message of anybody else."""
    assert named(component, "services") == {f"{each}InternalService" for each in services}
    assert not named(component, "clients")
    visible = [
        service
        for name, service in SYSTEM.services.items()
        if service.component == component or name.removesuffix("InternalService") in services
    ]
    allowed = {
        kind.__name__ for each in visible for row in each.methods for kind in (row.request, row.response)
    }
    used = {name for name in named(component, "messages") if name.endswith(("Request", "Response"))}
    assert used - allowed <= {"PageRequest", "PageResponse"}


@pytest.mark.req("TQ-013", "TQ-014", "TQ-015", "TQ-016")
def test_only_the_job_service_has_a_store_of_records() -> None:
    """Records with a lifecycle are held in one place; the others do not even know what a store is."""
    known = modules("handlers/taskqueue")
    holders = {
        component
        for component in COMPONENTS
        for each in closure(component)
        if any(
            name.startswith(("runtime.stores.contract.", "runtime.stores.store.", "runtime.stores.memory."))
            for name in imports(known[each])
        )
    }
    assert holders == {"job"}


@pytest.mark.req("TQ-014", "TQ-016")
@pytest.mark.parametrize("component", ["queue", "worker"])
def test_queue_and_worker_know_no_status(component: str) -> None:
    """Neither can ask for a transition, for neither knows the states of a job."""
    assert not named(component, "messages") & {"JobStatus", *SYSTEM.lifecycles["job"].states.values()}
    assert not named(component, "lifecycle")


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
