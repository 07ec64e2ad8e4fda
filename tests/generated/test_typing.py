"""Types of handlers and calls: a type checker reports each wrong one at its line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = """\
from generated.taskqueue.clients import QueueInternalServiceClient, ResultInternalServiceClient
from generated.taskqueue.messages import (
    GetResultRequest,
    GetResultResponse,
    EnqueueJobRequest,
    StoreResultRequest,
    StoreResultResponse,
)
from generated.taskqueue.services import ResultInternalService
from runtime.call import Call


def serve(handler: ResultInternalService) -> None: ...


"""
STORE = """\
    async def store_result(self, request: StoreResultRequest, call: Call) -> StoreResultResponse:
        return StoreResultResponse(stored=True)
"""
GET = """\
    async def get_result(self, request: GetResultRequest, call: Call) -> GetResultResponse:
        return GetResultResponse(found=False, job_id=request.job_id)
"""
SNIPPETS = {
    "good_handler": f"class Result:\n{STORE}\n{GET}\n\nserve(Result())\n",
    "good_explicit_handler": f"class Result(ResultInternalService):\n{STORE}\n{GET}\n\nserve(Result())\n",
    "good_client_as_handler": """\
def pass_on(client: ResultInternalServiceClient) -> None:
    serve(client)
""",
    "good_call": """\
async def store(client: ResultInternalService, call: Call) -> bool:
    return (await client.store_result(StoreResultRequest(job_id="a"), call)).stored
""",
    "missing_method": f"class Result:\n{STORE}\n\nserve(Result())  # wrong\n",
    "missing_method_of_explicit_handler": (
        f"class Result(ResultInternalService):\n{STORE}\n\nserve(Result())  # wrong\n"
    ),
    "wrong_request": f"class Result:\n{STORE}\n"
    + GET.replace("request: GetResultRequest", "request: EnqueueJobRequest")
    + "\n\nserve(Result())  # wrong\n",
    "wrong_request_of_explicit_handler": f"class Result(ResultInternalService):\n{STORE}\n"
    + GET.replace(
        "request: GetResultRequest, call: Call) -> GetResultResponse:",
        "request: EnqueueJobRequest, call: Call) -> GetResultResponse:  # wrong",
    ),
    "wrong_answer": f"class Result:\n{STORE}\n"
    + GET.replace("-> GetResultResponse", "-> StoreResultResponse").replace(
        "return GetResultResponse(found=False, job_id=request.job_id)", "return StoreResultResponse()"
    )
    + "\n\nserve(Result())  # wrong\n",
    "wrong_return": f"class Result(ResultInternalService):\n{STORE}\n"
    + GET.replace(
        "return GetResultResponse(found=False, job_id=request.job_id)",
        "return StoreResultResponse()  # wrong",
    ),
    "not_async": f"class Result:\n{STORE}\n{GET.replace('async def', 'def')}\n\nserve(Result())  # wrong\n",
    "wrong_client_request": """\
async def store(client: ResultInternalServiceClient, call: Call) -> None:
    await client.store_result(GetResultRequest(job_id="a"), call)  # wrong
""",
    "unknown_field": """\
async def store(client: ResultInternalService, call: Call) -> None:
    await client.store_result(StoreResultRequest(id="a"), call)  # wrong
""",
    "another_service": """\
def pass_on(client: QueueInternalServiceClient) -> None:
    serve(client)  # wrong
""",
    "forgotten_await": """\
async def store(client: ResultInternalService, call: Call) -> bool:
    return client.store_result(StoreResultRequest(job_id="a"), call).stored  # wrong
""",
}


def test_a_type_checker_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    """Under mypy --strict exactly the lines that are marked as wrong are errors."""
    for name, text in SNIPPETS.items():
        (tmp_path / f"{name}.py").write_text(HEAD + text, encoding="utf-8")
    assert run_mypy(tmp_path) == {name: find_wrong_lines(text) for name, text in SNIPPETS.items()}


def test_the_good_snippets_have_no_wrong_line_and_the_others_one() -> None:
    """The snippets are what their names say."""
    for name, text in SNIPPETS.items():
        assert len(find_wrong_lines(text)) == (0 if name.startswith("good") else 1), name


def find_wrong_lines(snippet: str) -> set[int]:
    lines = (HEAD + snippet).splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}


def run_mypy(folder: Path) -> dict[str, set[int]]:
    """Run mypy once over all snippets; return the lines with errors by snippet."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    # What is known of libraries and stubs since the last run takes most of the time.
    cache = ROOT / ".mypy_cache/snippets"
    done = subprocess.run(
        [*command, "--cache-dir", str(cache), *(f"{name}.py" for name in SNIPPETS)],
        env={**os.environ, "MYPYPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    found: dict[str, set[int]] = {name: set() for name in SNIPPETS}
    for name, line in re.findall(r"^(\w+)\.py:(\d+): error:", done.stdout, re.MULTILINE):
        found[name].add(int(line))
    return found
