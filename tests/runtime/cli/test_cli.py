"""Tests of the command line against a running deployment, and of the options it makes from messages."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from generated.taskqueue.messages import (
    RUNNING,
    GetJobStatusRequest,
    GetJobStatusResponse,
    ListJobsRequest,
    SubmitJobRequest,
)
from generated.taskqueue.system import SYSTEM as TASKQUEUE
from runtime.call import Call
from runtime.call.conditions import CallFailed
from runtime.cli import charter
from runtime.cli.fields import build_request, list_request_fields, make_singular
from runtime.cli.show import AnswerFormat, show
from runtime.cli.watch import NotFinal, find_watch, wait_until_final
from tests.runtime.hand_world import HandWorld, make_call
from tests.support.taskqueue.forked_deployments import launched_by_fork

pytestmark = pytest.mark.xdist_group("cli")

SYSTEM = "taskqueue"
NO_LISTENER = "127.0.0.1:9"
"""The discard port, where nothing listens."""
PATIENCE_MS = "60000"
"""Connecting counts as well, which takes long on a busy machine."""


@pytest.fixture(scope="module")
def env() -> Iterator[dict[str, str]]:
    """The variables of a client, as the launcher prints them."""
    with asyncio.Runner() as runner:
        opened = launched_by_fork("taskqueue.microservices", tls=True)
        running = runner.run(opened.__aenter__())
        try:
            yield {**running.env}
        finally:
            runner.run(opened.__aexit__(None, None, None))


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    """The command as a user would give it who has time."""
    if arguments[0] != "--help" and "--deadline-ms" not in arguments:
        arguments = (*arguments, "--deadline-ms", PATIENCE_MS)
    unset = dict.fromkeys(("CHARTER_ADDRESS", "CHARTER_CA_FILE", "CHARTER_TOKEN", "CHARTER_DEPLOYMENT"))
    return CliRunner().invoke(charter, [SYSTEM, *arguments], env={**unset, **(env or {})})


def answer(*arguments: str, env: dict[str, str], code: int = 0) -> dict[str, Any]:
    """The answer of a command that has to end with an exit code, from its JSON."""
    result = run(*arguments, "--json", env=env)
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_its_help_lists_the_systems_and_imports_nothing_heavy() -> None:
    """Neither gRPC nor protobuf is loaded to list the systems."""
    code = (
        "import sys\nfrom runtime.cli import main\ntry:\n    main('--help')\nfinally:\n"
        "    print([name for name in ('grpc', 'google.protobuf', 'rich') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert re.search("taskqueue +Distributed task queue", result.stdout)
    assert result.stdout.endswith("[]\n")


def test_the_help_of_a_system_imports_nothing_that_only_answers_need() -> None:
    """Neither gRPC nor the library for tables is loaded to list the methods."""
    code = (
        "import sys\nfrom runtime.cli import main\ntry:\n    main('taskqueue', '--help')\nfinally:\n"
        "    print([name for name in ('grpc', 'rich', 'prometheus_client') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "submit-job" in result.stdout
    assert result.stdout.endswith("[]\n")


def test_a_system_offers_the_methods_of_external_principals() -> None:
    """The commands are the methods of the anonymous principal, in kebab case, and none of the components'."""
    lines = run("--help").output.partition("Commands:\n")[2].splitlines()

    assert [line.split()[0] for line in lines] == [
        "submit-job",
        "get-job-status",
        "get-job-result",
        "cancel-job",
        "list-jobs",
    ]


def test_watching_ends_with_the_deadline(env: dict[str, str]) -> None:
    """The deadline is for the whole command; what goes on after it is named, exit code 3."""
    arguments = ("--job-type", "sleep", "--work-duration-ms", "3600000", "--client-request-id", "watched")
    deadline_ms, still = 750, None
    while still is None and deadline_ms < int(PATIENCE_MS):  # Connecting may take longer than that.
        deadline_ms *= 2
        result = run("submit-job", *arguments, "--watch", "--deadline-ms", str(deadline_ms), env=env)
        assert result.exit_code == 3
        still = re.search(r"job (\S+) is still [A-Z]+, and the time is over\.", result.stderr)

    assert still is not None, result.stderr
    answer("cancel-job", still[1], env=env)


@pytest.mark.parametrize(("looks", "said"), [(0, "may go on"), (2, "is still RUNNING")])
async def test_a_deadline_in_the_middle_of_a_poll_names_the_entity(looks: int, said: str) -> None:
    """As one between two polls does; another failure is raised as it is."""
    world = HandWorld()
    call = make_call(world, deadline=world.monotonic() + 60)
    methods = {each.name: each for service in TASKQUEUE.services.values() for each in service.methods}
    watch = find_watch(TASKQUEUE, methods["GetJobStatus"], [methods["GetJobStatus"]])
    assert watch is not None
    left, code = looks, "DEADLINE_EXCEEDED"

    async def read(request: GetJobStatusRequest, _call: Call) -> GetJobStatusResponse:
        nonlocal left
        left -= 1
        if left >= 0:
            return GetJobStatusResponse(job_id=request.job_id, status=RUNNING)
        if code == "DEADLINE_EXCEEDED":
            world.seconds += 60
        raise CallFailed(code, "no answer", "TaskQueuePublicService")

    with pytest.raises(NotFinal, match=f"job one {said}, and the time is over"):
        await wait_until_final(watch, "one", read, call)
    world.seconds, left, code = 50.0, looks, "UNAVAILABLE"
    with pytest.raises(CallFailed):
        await wait_until_final(watch, "one", read, call)


def test_a_job_is_submitted_and_watched_to_its_end(env: dict[str, str]) -> None:
    """`--watch` on the method that makes an entity waits until it is final and shows its last status."""
    arguments = ("--job-type", "sleep", "--work-duration-ms", "50", "--label", "team=a", "--label", "b=c=d")
    status = answer("submit-job", *arguments, "--payload-size-bytes", "2000", "--watch", env=env)
    assert status["status"] == "DONE"
    assert status["cancel_requested"] is False

    shown = run("get-job-result", status["job_id"], env=env)
    assert "terminal_status  DONE" in shown.stdout
    assert "2,000 bytes: " in shown.stdout


def test_the_status_is_watched_until_it_is_final(env: dict[str, str]) -> None:
    """`--watch` on the method that reads the status polls it, and ends with exit code 4 for a failed job."""
    job_id = answer("submit-job", "--job-type", "fail", env=env)["job_id"]

    watched = answer("get-job-status", job_id, "--watch", env=env, code=4)
    assert (watched["status"], watched["failure_reason"]) == ("FAILED", "SIMULATED_FAILURE")
    assert answer("get-job-status", "--job-id", job_id, env=env) == watched
    assert answer("cancel-job", job_id, "--reason", "late", env=env)["already_terminal"] is True


def test_a_listing_is_a_table(env: dict[str, str]) -> None:
    """Enums are given by name in any case and may be repeated; rows are on lines of their own."""
    job_id = answer("submit-job", "--job-type", "sleep", "--watch", env=env)["job_id"]

    listed = run("list-jobs", "--status-filter", "done", "--status-filter", "Queued", env=env)
    (row,) = [line for line in listed.stdout.splitlines() if line.startswith(job_id)]
    assert row.split()[1:3] == ["DONE", "sleep"]
    assert "next_page_token" in listed.stdout
    one = answer("list-jobs", "--page-size", "1", "--sort", "created_at_asc", env=env)
    assert len(one["jobs"]) == 1


def test_a_condition_is_one_line_with_advice(env: dict[str, str]) -> None:
    """A refusal names its condition and says whether trying again helps; exit code 1."""
    result = run("get-job-status", "none", env=env)

    assert result.exit_code == 1
    assert result.stderr == "job_not_found: no job none. Trying again will not help.\n"
    assert result.stdout == ""


def test_a_wrong_token_is_refused(env: dict[str, str]) -> None:
    """A token is sent under TLS too, and with an unknown one the caller is unauthenticated."""
    result = run("list-jobs", "--token", "made-up", env=env)

    assert result.exit_code == 1
    assert result.stderr.startswith("unauthenticated: ")


def test_a_server_that_talks_tls_is_hinted_at(env: dict[str, str]) -> None:
    """A server under TLS cannot be called without its authority; the message names the option for it."""
    result = run("list-jobs", "--address", env["CHARTER_ADDRESS"])

    assert result.exit_code == 3
    assert "name its authority by --ca-file or CHARTER_CA_FILE" in result.stderr


def test_a_refused_connection_is_reported_with_the_address() -> None:
    """A refused connection is exit code 3, with the address and how to give another."""
    result = run("list-jobs", "--address", NO_LISTENER)

    assert result.exit_code == 3
    assert result.stderr.startswith(f"UNAVAILABLE: no answer from {NO_LISTENER}. Nothing listens there")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["submitjob"], "Did you mean 'submit-job'?"),
        (["submit-job", "--jobtype", "x"], "Did you mean '--job-type'?"),
        (["submit-job"], "--job-type: must not be empty"),
        (["submit-job", "--job-type", "x", "--label", "team"], "'--labels': 'team' is not KEY=VALUE."),
        (["submit-job", "--job-type", "x", "--work-duration-ms", "-1"], "-1 is not a whole number from 0"),
        (["get-job-status"], "JOB_ID: must not be empty"),
        (["get-job-status", "a", "--job-id", "b"], "JOB_ID is given twice"),
        (["list-jobs", "--status-filter", "lost"], "'lost' is not one of 'QUEUED', 'RUNNING'"),
        (["list-jobs", "--page-token", "x"], "--page-token: must be empty or a whole number"),
        (["list-jobs", "--ca-file", "/does/not/exist"], "does not exist"),
        (["list-jobs", "--watch"], "No such option '--watch'"),
    ],
)
def test_usage_errors_are_reported_without_a_call(arguments: list[str], message: str) -> None:
    """A usage error names the option, ends with exit code 2 and needs no server."""
    result = run(*arguments, "--address", NO_LISTENER)

    assert result.exit_code == 2
    assert message in result.stderr


def test_nested_fields_go_by_their_own_names() -> None:
    """Fields of nested messages are flattened, and the request has the given fields alone."""
    assert [field.option for field in list_request_fields(SubmitJobRequest)] == [
        "job-type",
        "work-duration-ms",
        "payload-size-bytes",
        "labels",
        "client-request-id",
    ]
    fields = list_request_fields(ListJobsRequest)
    given = {"field_page__page_size": 3, "field_status_filter": ("DONE",), "field_sort": None}
    assert build_request(fields, given) == {"page": {"page_size": 3}, "status_filter": ["DONE"]}


@pytest.fixture(scope="module")
def odd() -> type[Message]:
    """A message with kinds of fields that no request of the taskqueue has."""
    file = descriptor_pb2.FileDescriptorProto(name="odd.proto", package="odd", syntax="proto3")
    text, flag, raw, whole, nested = (
        descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
        descriptor_pb2.FieldDescriptorProto.TYPE_BOOL,
        descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
        descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
        descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
    )
    rows: dict[str, list[tuple[str, int, str, bool]]] = {
        "Part": [("name", text, "", False), ("weight", whole, "", False)],
        "Tree": [("leaf", text, "", False), ("tree", nested, ".odd.Tree", False)],
        "Odd": [
            ("name", text, "", False),
            ("part", nested, ".odd.Part", False),
            ("spares", nested, ".odd.Part", True),
            ("tree", nested, ".odd.Tree", False),
            ("json", text, "", False),
            ("urgent", flag, "", False),
            ("photo", raw, "", False),
        ],
    }
    for message, fields in rows.items():
        made = file.message_type.add(name=message)
        for number, (name, kind, type_name, many) in enumerate(fields, 1):
            field = made.field.add(name=name, number=number, type=kind, type_name=type_name or None)
            field.label = field.LABEL_REPEATED if many else field.LABEL_OPTIONAL
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("odd.Odd"))


def test_names_that_clash_carry_the_path(odd: type[Message]) -> None:
    """Two fields of one name differ by their paths, and none hides an option of every command."""
    assert [field.option for field in list_request_fields(odd, ["json"])] == [
        "name",
        "part-name",
        "weight",
        "spares",
        "leaf",
        "tree",
        "field-json",
        "urgent",
        "photo",
    ]


def test_every_kind_of_field_can_be_given(odd: type[Message], tmp_path: Path) -> None:
    """Flags, bytes from a file, lists of messages and messages within themselves all reach the request."""
    (tmp_path / "photo").write_bytes(b"\x00\x01")
    fields = list_request_fields(odd)
    seen: dict[str, Any] = {}
    command = click.Command(
        "odd", params=[field.parameter() for field in fields], callback=lambda **given: seen.update(given)
    )
    arguments = [
        "--no-urgent",
        "--photo",
        f"@{tmp_path / 'photo'}",
        "--spare",
        '{"weight": 2}',
        "--spares",
        "{}",
    ]
    result = CliRunner().invoke(command, [*arguments, "--tree", '{"leaf": "x"}'])

    assert result.exit_code == 0, result.output
    assert build_request(fields, seen) == {
        "urgent": False,
        "photo": "AAE=",
        "spares": [{"weight": 2}, {}],
        "tree": {"tree": {"leaf": "x"}},
    }


@pytest.mark.parametrize(
    ("name", "one"),
    [("labels", "label"), ("entries", "entry"), ("boxes", "box"), ("classes", "class"), ("status", "status")],
)
def test_one_of_many_has_a_name(name: str, one: str) -> None:
    """An option that is given again and again is called by the singular of its field."""
    assert make_singular(name) == one


def test_an_answer_without_rows_says_so(odd: type[Message], capsys: pytest.CaptureFixture[str]) -> None:
    """An empty list is named, an empty text is a dash, and long bytes are cut."""
    show(odd(photo=bytes(range(40))), AnswerFormat(frozenset(), lambda _enum, value: value))

    shown = capsys.readouterr().out
    assert "spares: none" in shown
    assert "40 bytes: 000102030405060708090a0b0c0d0e0f…" in shown
    assert "name    -" in shown
