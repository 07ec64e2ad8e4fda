"""Options and output of the command line, for every system, without a server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import pytest
from click.testing import CliRunner, Result
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2, wrappers_pb2
from google.protobuf.message import Message
from msgspec.structs import replace

from generated.orchestrator.messages import DEAD, RETRY, STATUS_FAILED, STATUS_RUNNING
from generated.priority.messages import DEAD_LETTER, QUEUED, ListTasksResponse, Task, TaskPayload
from generated.taskqueue.messages import CANCELED, DONE, FAILED
from runtime.cli import charter
from runtime.cli.commands import method_commands
from runtime.cli.json_form import format_json
from runtime.cli.places import choose_token
from runtime.cli.show import AnswerFormat, show
from runtime.cli.watch import Watch, find_watch
from runtime.model.system import Method, System
from runtime.node.systems import load_system

NO_LISTENER = "127.0.0.1:9"
"""The discard port, where nothing listens."""


def run(*arguments: str, **env: str) -> Result:
    """Run the command as a user would, without the variables of the tests."""
    unset = {name: None for name in os.environ if name.startswith("CHARTER_") or name.endswith("_TOKEN")}
    return CliRunner().invoke(charter, list(arguments), env={**unset, **env})


def method(system: System, name: str) -> Method:
    """A method by its attribute."""
    methods = (each for service in system.services.values() for each in service.methods)
    return next(each for each in methods if each.attribute == name)


def without_grpc(system: System) -> System:
    """The same system, whose nodes listen for HTTP alone."""
    return replace(
        system,
        deployments={
            name: replace(
                each,
                nodes={node: replace(row, port_variable=None) for node, row in each.nodes.items()},
            )
            for name, each in system.deployments.items()
        },
    )


@pytest.mark.parametrize("name", ["objectqueue", "orchestrator", "priority", "queuey", "taskqueue"])
def test_every_system_has_help(name: str) -> None:
    """The commands of each, and the options of every command."""
    shown = run(name, "--help")
    assert (shown.exit_code, shown.exception) == (0, None)
    for command in method_commands(name):
        assert run(name, command, "--help").exit_code == 0


def test_a_system_that_speaks_http_alone_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no node takes gRPC calls there are no commands, and its help says why."""
    monkeypatch.setattr("runtime.cli.commands.load_system", lambda name: without_grpc(load_system(name)))
    shown = run("orchestrator", "--help")
    assert (shown.exit_code, shown.exception) == (0, None)
    assert "No node of it takes gRPC calls" in shown.stdout
    assert "Commands:" not in shown.stdout


def test_a_method_over_http_alone_is_no_command() -> None:
    """The store of the WASI queue takes no gRPC calls, which would be all that a command could make."""
    commands = method_commands("queuey")
    assert "create-job" in commands
    assert not {"put-blob", "get-blob"} & set(commands)


def watch(system: str, name: str) -> Watch:
    """Find how the entity of a method is watched."""
    tables = load_system(system)
    methods = [each for service in tables.services.values() for each in service.methods]
    found = find_watch(tables, method(tables, name), methods)
    assert found is not None
    return found


def test_each_system_says_which_ends_are_failures() -> None:
    """By its spec: named states, and where an entity ends that gives up, as far as outsiders see them."""
    jobs = watch("taskqueue", "submit_job")
    assert jobs.ends == {DONE, FAILED, CANCELED}
    assert [jobs.has_failed(jobs.reader.response(status=each)) for each in (DONE, FAILED, CANCELED)] == [
        *(False, True, True)
    ]
    durable = watch("orchestrator", "submit_job")
    assert {DEAD, RETRY} & durable.lifecycle.failed == {DEAD}
    assert durable.has_failed(durable.reader.response(status=STATUS_FAILED))
    assert not durable.has_failed(durable.reader.response(status=STATUS_RUNNING))
    assert watch("queuey", "create_job").lifecycle.failed


def test_a_dead_letter_is_not_watched_for_ever() -> None:
    """It is not terminal, as it can be queued again, but nothing happens to it by itself."""
    tasks = watch("priority", "submit_task")
    assert DEAD_LETTER not in tasks.lifecycle.terminal
    assert DEAD_LETTER in tasks.ends
    assert QUEUED not in tasks.ends


@pytest.mark.parametrize(
    ("names", "environ", "variable"),
    [
        (["submit_task"], {"CLIENT_TOKEN": "c", "WORKER_TOKEN": "w", "ADMIN_TOKEN": "a"}, "CLIENT_TOKEN"),
        (["poll_tasks"], {"CLIENT_TOKEN": "c", "WORKER_TOKEN": "w", "ADMIN_TOKEN": "a"}, "WORKER_TOKEN"),
        (["list_dead_letters"], {"CLIENT_TOKEN": "c", "ADMIN_TOKEN": "a"}, "ADMIN_TOKEN"),
        (["list_dead_letters"], {"CLIENT_TOKEN": "c"}, None),
        (["submit_task"], {"CLIENT_TOKEN": "", "ADMIN_TOKEN": "a"}, "ADMIN_TOKEN"),
        (["submit_task", "list_tasks"], {"WORKER_TOKEN": "w", "ADMIN_TOKEN": "a"}, "ADMIN_TOKEN"),
        (["submit_task", "list_tasks"], {"WORKER_TOKEN": "w"}, "WORKER_TOKEN"),
        (["submit_task"], {"MANAGER_TOKEN": "m"}, None),
    ],
)
def test_the_token_is_that_of_a_principal_that_may_call(
    names: list[str], environ: Mapping[str, str], variable: str | None
) -> None:
    """Of the tokens that the ready line names the first is taken whose principal may call all the methods."""
    system = load_system("priority")
    assert choose_token(system, [method(system, each) for each in names], environ) == variable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list-tasks", "--address", "here"], "'--address': 'here' is not HOST:PORT."),
        (["list-tasks", "--address", "here:0"], "'--address': 'here:0' has no port from 1 to 65535."),
        (["list-tasks", "--address", "a:1,b:99999"], "'--address': 'b:99999' has no port from 1"),
        (
            ["list-tasks", "--address", "http://a:1"],
            "'--address': 'http://a:1' is a URL; HOST:PORT is wanted",
        ),
        (["list-tasks", "--address", "::1:5"], "an IPv6 address stands in brackets."),
        (["list-tasks", "--page-size", "many"], "'--page-size': 'many' is not a whole number."),
        (["list-tasks", "--page-size", "1e3"], "'--page-size': '1e3' is not a whole number."),
        (
            ["list-tasks", "--page-size", "-1"],
            "'--page-size': -1 is not a whole number from 0 to 4294967295.",
        ),
        (["list-tasks", "--deadline-ms", "0"], "'--deadline-ms': 0 is not a whole number from 1"),
        (["list-tasks", "--status", "lost"], "'--status': 'lost' is not one of 'QUEUED', 'EXECUTING'"),
        (["list-tasks", "--page-token", "\udcff"], "'--page-token': the text is not UTF-8."),
        (["list-tasks", "--token", "é"], "'--token': a token has only printable ASCII characters"),
        (["list-tasks", "--ca-file", __file__], "has no certificate in PEM form."),
        (["list-tasks", "--cert-file", __file__], "--cert-file and --key-file are given together"),
        (["submit-task", "--run-at", "soon"], "'--run-at': 'soon' is no time such as 2026-01-31T12:00:00Z."),
        (["submit-tasks", "--task", "{"], "'--tasks': the text is not JSON: see character 2."),
        (
            ["submit-tasks", "--task", "[]"],
            "the JSON must be an object with the fields of SubmitTaskRequest.",
        ),
        (["submit-tasks", "--task", '{"task_type": 3}'], "'--tasks': 'task_type' must be a text."),
        (["submit-tasks", "--task", '{"max_retries": 1.5}'], "'max_retries' must be a whole number from"),
        (["submit-tasks", "--task", '{"priority": "huge"}'], "'priority' must be one of "),
        (["submit-tasks", "--task", '{"tusk": 1}'], "'tusk' is no field of SubmitTaskRequest, which has"),
        (["submit-tasks", "--task", '{"run_at": "soon"}'], "is not a SubmitTaskRequest."),
        (["submit-task", "--parameters", "{"], "--parameters: must be a JSON object"),
    ],
)
def test_a_wrong_value_is_a_sentence_that_names_the_option(arguments: list[str], message: str) -> None:
    """Nothing of Python or protobuf is in it, and nothing is called; exit code 2."""
    result = run("priority", *arguments, CHARTER_ADDRESS=NO_LISTENER)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert isinstance(result.exception, SystemExit)


def test_a_host_that_is_not_known_is_named() -> None:
    """The message has the address and the option for another, and no text of the system's library."""
    result = run("taskqueue", "list-jobs", "--address", "no-such-host.invalid:1")
    assert result.exit_code == 3
    assert result.stderr == (
        "UNAVAILABLE: no answer from no-such-host.invalid:1. There is no host of that name: check --address "
        "or CHARTER_ADDRESS.\n"
    )


def test_a_missing_field_in_a_list_is_reported_with_its_option() -> None:
    """The rules of the spec are checked for messages in JSON, too."""
    result = run("priority", "submit-tasks", "--task", "{}", CHARTER_ADDRESS=NO_LISTENER)
    assert result.exit_code == 2
    assert "--tasks (tasks[0].task_type): must not be empty" in result.stderr


def tasks(count: int) -> ListTasksResponse:
    """A listing of tasks that have something in most of their fields."""
    rows = [
        Task(
            task_id=f"00000000-0000-4000-8000-{number:012}",
            status=QUEUED,
            payload=TaskPayload(task_type="send_email", parameters="{}"),
            assigned_worker_id="00000000-0000-4000-8000-000000000000",
            idempotency_key="welcome",
            trace_id="0" * 32,
        )
        for number in range(count)
    ]
    for row in rows:
        row.updated_at.GetCurrentTime()
        row.created_at.GetCurrentTime()
    return ListTasksResponse(tasks=rows)


def test_a_listing_fits_and_has_the_columns_that_differ(capsys: pytest.CaptureFixture[str]) -> None:
    """In 80 columns: the key, the state and the time of the order; omitted columns are counted."""
    show(tasks(2), AnswerFormat.of(load_system("priority")))

    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert max(map(len, lines)) <= 80
    heading = next(line.split() for line in lines if line.startswith("task_id"))
    assert {"task_id", "status", "updated_at"} <= set(heading)
    rows = [line.split() for line in lines if line.startswith("00000000")]
    assert [row[1] for row in rows] == ["queued", "queued"]
    assert "more columns: --wide shows all, and so does --json." in shown.err


def test_a_wide_listing_has_every_column_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is folded, and nothing is left out."""
    show(tasks(1), AnswerFormat.of(load_system("priority")), wide=True)

    shown = capsys.readouterr()
    (heading,) = [line.split() for line in shown.out.splitlines() if line.startswith("task_id")]
    fields = {each.name for each in Task.DESCRIPTOR.fields}
    assert fields <= {name.partition(".")[0] for name in heading}
    assert shown.err == ""


@pytest.fixture(scope="module")
def numbers() -> type[Message]:
    """A message with every kind of number of 64 bits, and texts that look like some."""
    row = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="numbers.proto",
        package="numbers",
        syntax="proto3",
        dependency=["google/protobuf/wrappers.proto", "google/protobuf/struct.proto"],
    )
    made = file.message_type.add(name="Numbers")
    entry = made.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=row.TYPE_STRING, label=row.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=row.TYPE_UINT64, label=row.LABEL_OPTIONAL)
    for number, (name, kind, type_name, label) in enumerate(
        [
            ("one", row.TYPE_INT64, None, row.LABEL_OPTIONAL),
            ("many", row.TYPE_SINT64, None, row.LABEL_REPEATED),
            ("counts", row.TYPE_MESSAGE, ".numbers.Numbers.CountsEntry", row.LABEL_REPEATED),
            ("boxed", row.TYPE_MESSAGE, ".google.protobuf.Int64Value", row.LABEL_OPTIONAL),
            ("free", row.TYPE_MESSAGE, ".google.protobuf.Struct", row.LABEL_OPTIONAL),
            ("inner", row.TYPE_MESSAGE, ".numbers.Numbers", row.LABEL_OPTIONAL),
            ("text", row.TYPE_STRING, None, row.LABEL_OPTIONAL),
        ],
        1,
    ):
        made.field.add(name=name, number=number, type=kind, type_name=type_name, label=label)
    pool = descriptor_pool.DescriptorPool()
    for known in (wrappers_pb2.DESCRIPTOR, struct_pb2.DESCRIPTOR):
        pool.AddSerializedFile(known.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("numbers.Numbers"))


def test_numbers_of_json_are_numbers(numbers: type[Message]) -> None:
    """Also those of 64 bits, in lists, maps and messages; texts of digits stay texts."""
    most = 2**63 - 1
    inner = numbers(one=-1, text="12")
    answer = numbers(
        one=most, many=[1, -2], counts={"a": 2**64 - 1}, boxed={"value": 7}, inner=inner, text="34"
    )
    found = json.loads(format_json(answer))
    assert (found["one"], found["many"], found["counts"]) == (most, [1, -2], {"a": 2**64 - 1})
    assert (found["boxed"], found["text"]) == (7, "34")
    assert (found["inner"]["one"], found["inner"]["text"]) == (-1, "12")
