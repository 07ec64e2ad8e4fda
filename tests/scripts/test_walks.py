"""The page of walks: its files and functions exist, and each walk goes through few files."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from scripts.walks import (
    CLIENT,
    PAGE,
    WALKS,
    EnteredFunction,
    Visit,
    Walk,
    draw_sequence,
    group_visits,
    list_files,
    select_own_steps,
)

ROOT = Path(__file__).parents[2]
MOST_FILES = {"One SubmitJob": 25, "One orchestrator job": 35, "One priority task": 42}
"""Of each walk, from its client to its end."""
ROW = re.compile(r"^\| \[(?P<file>[\w/.]+)\]\(\.\./\.\./(?P=file)\) \| (?P<functions>.*) \|$", re.MULTILINE)
WALK, WORKED = WALKS[0], WALKS[1]


def step(
    moment: int, node: str, function: str, call: tuple[str, str, str] | None, task: str = "t"
) -> EnteredFunction:
    return EnteredFunction(moment, node, f"runtime/{node}.py", function, task, call)


def test_every_file_and_function_of_the_page_is_there() -> None:
    """`nox -s walks` writes it again."""
    rows = list(ROW.finditer(PAGE.read_text()))
    assert len(rows) > max(MOST_FILES.values())
    for row in rows:
        source = ast.parse((ROOT / row["file"]).read_text())
        defined = {
            each.name for each in ast.walk(source) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        named = {name.rpartition(".")[2] for name in re.findall(r"`([^`]+)`", row["functions"])}
        visits = {name for name in named if name == "__init__"}
        assert named - visits <= defined, row["file"]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.title)
def test_a_walk_goes_through_few_files(walk: Walk) -> None:
    page = PAGE.read_text()
    table = re.search(rf"^\| {walk.title} \|.*\| (\d+) \|$", page, re.MULTILINE)
    section = page.split(f"## {walk.title}\n")[1].split("\n## ")[0]
    assert table is not None
    assert int(table[1]) == len({row["file"] for row in ROW.finditer(section)}) <= MOST_FILES[walk.title]


def test_a_walk_has_the_steps_of_its_request_alone() -> None:
    """Those that read it come before its endpoint is known, in the same task; others are left out."""
    own, other = (CLIENT, WALK.method, "1"), ("worker", "Queue.Dequeue", "2")
    steps = [
        step(1, "gateway", "read", None),
        step(2, "gateway", "answer", own),
        step(3, "queue", "answer", ("gateway", "Queue.Enqueue", "1"), "a"),
        step(4, "queue", "answer", other, "b"),
        step(5, "queue", "sweep", None, "c"),
        step(6, "gateway", "flush", own, ""),
    ]
    assert [each.moment for each in select_own_steps(WALK, steps)] == [1, 2, 3]


def test_a_worker_that_claims_a_job_belongs_to_its_walk() -> None:
    steps = [
        step(1, "api", "answer", (CLIENT, WORKED.method, "1")),
        step(2, "worker-1", "claim", None, "b"),
        step(3, "api", "sweep", None, "c"),
    ]
    assert [each.moment for each in select_own_steps(WORKED, steps)] == [1, 2]


def test_steps_are_grouped_by_call() -> None:
    call = (CLIENT, "A.Submit", "1")
    steps = [step(1, "api", "A.<locals>.b", call), step(2, "api", "c", call), step(3, "worker", "d", None)]
    assert group_visits(steps) == [
        Visit(CLIENT, "api", "A.Submit", {"runtime/api.py": ["A.b", "c"]}),
        Visit(None, "worker", "finds work and does it", {"runtime/worker.py": ["d"]}),
    ]
    assert list_files(steps) == ["runtime/api.py", "runtime/worker.py"]


def test_a_walk_is_drawn_with_a_column_for_each_node() -> None:
    visits = [
        Visit("anybody", "api", "A.One", {}),
        Visit("api", "store", "B.Two", {}),
        Visit("store", "api", "A.One", {}),
        Visit(None, "store", "C", {}),
    ]
    assert list(draw_sequence(visits)) == [
        "client         api            store",
        "|-- 1 A.One -->|              |",
        "|              |-- 2 B.Two -->|",
        "|              |<- 3 A.One ---|",
        "|              |              * 4 C",
    ]
