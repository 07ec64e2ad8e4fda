"""Errors for wrong ids, shards, settings, buckets and keys, and their exit codes."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from generated.objectqueue.system import SYSTEM
from handlers.objectqueue.cli import qo
from runtime.node.settings import SettingsError, read
from tests.support.objectqueue.shell import DONE, QO, ROOT, TROUBLE, USAGE, UUID4, Shell
from tests.support.s3.proxy import S3Proxy

DIGITS = "0123456789abcdef"
COMPLETED_BY_BASH = {"_QO_COMPLETE": "bash_complete", "COMP_WORDS": "qo sta", "COMP_CWORD": "1"}


@pytest.mark.req("OQ-233", "OQ-231", "OQ-230", "OQ-235")
@pytest.mark.parametrize(
    "arguments",
    [
        *((command, "not-an-id") for command in ("status", "history", "wait", "replay", "archive", "cancel")),
        ("status", "00000000-0000-1000-8000-000000000001"),
        ("status", "../../secrets"),
        *(("list", "--shard", shard) for shard in ("g", "10", "", "0,1")),
        ("worker", "--shards", "0,g"),
        ("worker", "--shards", ""),
        ("worker", "--id", ""),
        ("list", "--status", "foo"),
        ("list", "--limit", "0"),
        ("submit", "--type", "echo", "--seconds", "3"),
        ("submit", "--type", "echo", "--wait", "--seconds", "soon"),
        ("worker", "--index-mode", "fast"),
        ("monitor", "--check-interval", "often"),
        ("nonsense",),
    ],
)
def test_invalid_arguments_are_refused_before_any_request(
    proxied_shell: Shell, s3_proxy: S3Proxy, arguments: tuple[str, ...]
) -> None:
    """With the code of wrong usage."""
    result = proxied_shell.run(*arguments)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert s3_proxy.asked() == []


@pytest.mark.req("OQ-206", "OQ-207", "OQ-208", "OQ-216", "OQ-220", "OQ-215", "OQ-214")
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("QO_INDEX_MODE", "fast"),
        ("QO_READY_PAGE_SIZE", "0"),
        ("QO_READY_PAGE_SIZE", "many"),
        ("QO_LOG_SCAN_PAGE_SIZE", "1001"),
        ("QO_ALLOW_NO_VERSIONING", "perhaps"),
        ("QO_MAX_CLOCK_SKEW_MS", "-1"),
        ("QO_LOG", "loud"),
        ("S3_ENDPOINT", "nowhere"),
        ("S3_BUCKET", "not a name"),
        ("S3_BUCKET", "no"),
        ("S3_BUCKET", "Capital"),
        ("S3_BUCKET", "two..dots"),
        ("S3_REGION", "eu west"),
        ("QO_QUEUE", "../other"),
        ("QO_QUEUE", "a//b"),
    ],
)
def test_wrong_settings_are_named(shell: Shell, variable: str, value: str) -> None:
    """In a line with the permitted values."""
    result = shell.run("list", **{variable: value})
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert variable in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.req("OQ-155", "OQ-235", "OQ-007")
def test_a_worker_name_must_be_valid_in_a_key(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """Any other is refused by its flag and by its variable, with the code of wrong settings."""
    for name in ("../w", ".hidden", "two words", "w\x7f", "w" * 201):
        with pytest.raises(SettingsError, match="QO_WORKER_ID"):
            read([SYSTEM.variables["QO_WORKER_ID"]], (), {"QO_WORKER_ID": name})
    for arguments, more in ((("--id", "a/b"), {}), ((), {"QO_WORKER_ID": "a/b"})):
        ended = subprocess.run(
            [*QO, "worker", *arguments],
            env={**proxied_shell.environ, **more},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (ended.returncode, ended.stdout) == (USAGE, "")
        assert "QO_WORKER_ID" in ended.stderr and "Traceback" not in ended.stderr
    assert s3_proxy.asked() == []


@pytest.mark.req("OQ-236", "OQ-204", "OQ-203", "OQ-205", "OQ-235")
@pytest.mark.parametrize(
    ("flags", "variables", "message"),
    [
        (("--bucket", "there-is-none"), {}, "bucket"),
        (("--endpoint", "http://127.0.0.1:9"), {}, "127.0.0.1:9"),
        ((), {"AWS_SECRET_ACCESS_KEY": "wrong"}, "key"),
        ((), {"AWS_ACCESS_KEY_ID": "nobody"}, "key"),
        ((), {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "AWS_ACCESS_KEY_ID"),
    ],
)
@pytest.mark.parametrize("command", [("list",), ("submit", "--type", "echo"), ("doctor",)])
def test_an_error_of_the_store_is_one_line(
    shell: Shell, command: tuple[str, ...], flags: tuple[str, ...], variables: dict[str, str], message: str
) -> None:
    """It says what is wrong, and the exit code is that of trouble."""
    result = shell.run(*command, *flags, **variables)
    assert result.exit_code == TROUBLE, result.output
    if command != ("doctor",):
        assert result.stdout == "" and len(result.stderr.splitlines()) == 1
    assert message in result.output


@pytest.mark.req("OQ-217", "OQ-204")
def test_flags_override_variables(shell: Shell) -> None:
    """And variables override defaults."""
    task_id = shell.submit()
    assert shell.run("list", S3_BUCKET="there-is-none").exit_code == TROUBLE
    found = shell.out("list", "--bucket", shell.bucket.name, S3_BUCKET="there-is-none")
    assert task_id in found
    assert "task-queue" in shell.run("list", S3_BUCKET="").stderr


@pytest.mark.req("OQ-X08")
def test_queues_in_one_bucket_are_isolated(shell: Shell) -> None:
    """Each is below its name and sees nothing of the others."""
    first = shell.out("submit", "--type", "echo", "--queue", "team-a")
    second = shell.out("submit", "--type", "echo", QO_QUEUE="team-b")
    assert f"team-a/tasks/{first[0]}/{first}.json" in shell.bucket.keys("team-a/")
    assert [each["id"] for each in shell.json("list", "--queue", "team-b")] == [second]
    assert shell.json("list") == []
    assert all(key.startswith(("team-a/", "team-b/")) for key in shell.bucket.keys(""))


@pytest.mark.req("OQ-220")
def test_an_unknown_variable_is_a_warning(shell: Shell) -> None:
    """It is probably misspelt; results stay on stdout alone."""
    result = shell.run("list", "--json", QO_INDEX_MOOD="hybrid")
    assert (result.exit_code, result.stdout) == (DONE, "[]\n")
    assert "QO_INDEX_MOOD" in result.stderr


@pytest.mark.req("OQ-234", "OQ-269", "OQ-023")
def test_commands_only_list_read_and_write(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """Every answer comes from a listing of the store; no query is delegated to it."""
    task_id = proxied_shell.submit()
    for command in (("list",), ("stats",), ("workers",), ("status", task_id), ("history", task_id)):
        proxied_shell.json(*command)
    proxied_shell.out("cancel", task_id)
    proxied_shell.out("replay", task_id)
    kinds = {each.kind for each in s3_proxy.asked()}
    allowed = {"PutObject", "GetObject", "HeadObject", "DeleteObject", "ListObjectsV2", "ListObjectVersions"}
    assert kinds <= {*allowed, "GetBucketVersioning"}
    assert not any("select" in each.query for each in s3_proxy.asked())


@pytest.mark.req("OQ-235")
def test_the_command_is_a_program(shell: Shell) -> None:
    """It starts quickly enough for interactive use, and completes words in shells."""
    heavy = "{'rich', 'grpc', 'orjson', 'asyncio'}"
    code = f"import sys, handlers.objectqueue.cli; print({heavy} & {{*sys.modules}})"
    found = subprocess.run([QO[0], "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"
    assert "5 not ended in time" in shell.out("--help")
    completed = subprocess.run(
        QO, cwd=ROOT, capture_output=True, text=True, check=True, env={**shell.environ, **COMPLETED_BY_BASH}
    )
    assert "plain,status" in completed.stdout
    assert all("..." not in line for line in shell.out("--help").splitlines()[2:])
    assert shell.out("--version") == f"qo {version('charter')}"
    for name in ("bash", "zsh", "fish"):
        assert "_QO_COMPLETE" in shell.out("completion", name)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("list --status ", ["pending", "running", "completed", "failed", "archived"]),
        ("list --shard ", list(DIGITS)),
        ("worker --shards 0,a,", [f"0,a,{shard}" for shard in DIGITS]),
        ("worker --index-mode h", ["hybrid"]),
    ],
)
def test_shells_complete_the_values_of_options(words: str, found: list[str]) -> None:
    *typed, incomplete = words.split(" ")
    completion = ShellComplete(qo, {}, "qo", "_QO_COMPLETE")
    assert [each.value for each in completion.get_completions(typed, incomplete)] == found


@pytest.mark.parametrize("command", [("list",), ("submit", "--type", "echo")])
def test_without_a_bucket_the_error_says_how_to_create_one(shell: Shell, command: tuple[str, ...]) -> None:
    """The same for a bucket without versioning."""
    for requests_ in (command, ("ui", "deploy")):
        assert "`qo init`" in shell.run(*requests_, "--bucket", "there-is-none").stderr
    bare = f"{shell.bucket.name}-bare"
    shell.bucket.raw.create_bucket(Bucket=bare)
    result = shell.run(*command, "--bucket", bare)
    assert (
        result.exit_code == TROUBLE and "keeps no versions" in result.stderr and "`qo init`" in result.stderr
    )


LINE = b'{"task_type": "echo"}\n'


@contextlib.contextmanager
def start_submitting(shell: Shell) -> Iterator[Any]:
    """A command that reads tasks one by one; the first is answered before there is a second."""
    # A child inherits that an interrupt is ignored, as it is where tests run in the background of a shell.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [*QO, "submit", "--from-file", "-", "--parallel", "1"],
        cwd=ROOT,
        env=shell.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as many:
        signal.signal(signal.SIGINT, before)
        assert many.stdin and many.stdout
        many.stdin.write(LINE)
        many.stdin.flush()
        assert UUID4.fullmatch(many.stdout.readline().decode().strip())
        yield many


def test_a_closed_pipe_is_no_error(shell: Shell) -> None:
    """A reader that stops early is no error of the queue, and nothing is printed about it."""
    with start_submitting(shell) as many:
        many.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            many.stdin.write(LINE * 200)
            many.stdin.close()
        assert (many.stderr.read(), many.wait(30)) == (b"", TROUBLE)


def test_waiting_for_tasks_can_be_interrupted(shell: Shell) -> None:
    """Even if the next line never comes."""
    with start_submitting(shell) as many:
        many.send_signal(signal.SIGINT)
        assert (many.stderr.read().strip(), many.wait(30)) == (b"Aborted!", TROUBLE)


def test_the_words_of_the_command_equal_those_of_the_spec() -> None:
    """They are literals, so that it starts quickly."""
    from generated.objectqueue.lifecycle import TASK
    from generated.objectqueue.settings import VARIABLES
    from handlers.objectqueue.cli import COMMANDS
    from handlers.objectqueue.cli.output import STYLES
    from handlers.objectqueue.cli.parameters import STATUSES
    from handlers.objectqueue.views import SHARDS, format_state

    assert tuple(name.lower() for name in TASK.states.values()) == STATUSES
    assert {format_state(state) for state in TASK.states} <= set(STYLES)
    assert tuple(DIGITS) == SHARDS
    options = [option for command in COMMANDS.values() for option in command.params]
    [modes] = [each.type.choices for each in options if each.name == "index_mode"]  # type: ignore[attr-defined]
    assert tuple(modes) == tuple(VARIABLES["QO_INDEX_MODE"].choices)
    helps = [each.help or "" for each in options if isinstance(each, click.Option)]
    named = {name for text in helps for name in re.findall(r"\[([A-Z0-9_]+)\]", text)}
    [concurrency] = [each.type for each in options if each.name == "concurrency"]
    most = VARIABLES["QO_CONCURRENCY"]
    assert (concurrency.min, concurrency.max) == (most.minimum, most.maximum)  # type: ignore[attr-defined]
    assert {"S3_BUCKET", "QO_SHARDS"} <= named <= set(VARIABLES)


@pytest.mark.req("OQ-214", "OQ-234")
def test_the_log_has_five_levels(shell: Shell) -> None:
    """It is on stderr on request; trace is as much as debug."""
    levels = {}
    for level in ("trace", "debug", "info", "warn", "error"):
        output = shell.run("list", QO_LOG=level, QO_INDEX_MOOD="x").stderr.splitlines()
        levels[level] = {json.loads(line)["level"] for line in output}
    assert levels["trace"] == levels["debug"] == {"DEBUG", "INFO", "WARNING"}
    assert levels["info"] == {"INFO", "WARNING"}
    assert "INFO" not in levels["warn"] | levels["error"]


@pytest.mark.req("OQ-214")
def test_the_log_variable_of_other_programs_is_a_fallback() -> None:
    """Ours has precedence, and values that only they understand are ignored."""
    from generated.objectqueue.settings import VARIABLES
    from runtime.node.settings import read

    def read_level(**environ: str) -> str:
        return str(read([VARIABLES["QO_LOG"]], (), environ)["QO_LOG"])

    assert read_level(RUST_LOG="debug") == "debug"
    assert read_level(RUST_LOG="debug", QO_LOG="warn") == "warn"
    assert read_level(RUST_LOG="info,hyper=debug") == read_level() == "info"
