"""Submitting a task: its writes, their order, and the output."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.objectqueue.shell import CONFLICT, DONE, GOES_ON, TROUBLE, USAGE, UUID4, Shell, format_key
from tests.support.s3.proxy import S3Proxy


@pytest.mark.req("OQ-083", "OQ-084", "OQ-085", "OQ-086", "OQ-087", "OQ-221")
def test_a_task_is_created_and_then_its_entry(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """The id is the only line; the task is there before the entry, and at once due."""
    task_id = proxied_shell.submit("--input", '{"hello": "world"}')
    assert UUID4.fullmatch(task_id)
    writes = [each for each in s3_proxy.asked("PutObject") if each.bucket == proxied_shell.bucket.name]
    assert [each.key for each in writes] == [format_key(task_id), *proxied_shell.list_ready_entries(task_id)]
    assert writes[0].headers["if-none-match"] == "*"
    task = proxied_shell.task(task_id)
    assert task["status"] == "Pending" and task["shard"] == task_id[0]
    assert task["available_at"] == task["created_at"] == task["updated_at"]
    minute = int(datetime.fromisoformat(task["available_at"]).timestamp() // 60)
    assert proxied_shell.list_ready_entries(task_id) == [f"ready/{task_id[0]}/{minute:010}/{task_id}"]


@pytest.mark.req("OQ-X05", "OQ-235")
def test_wait_ends_at_its_timeout(shell: Shell) -> None:
    """There is no worker here. The exit code differs from that of a failure, and the id is printed."""
    result = shell.run("submit", "--type", "echo", "--wait", "--seconds", "100ms")
    assert (result.exit_code, result.stdout) == (GOES_ON, "pending\n")
    [task_id] = UUID4.findall(result.stderr)
    assert shell.task(task_id)["status"] == "Pending"


@pytest.mark.req("OQ-221", "OQ-034")
def test_input_is_stored_as_it_was_written(shell: Shell, tmp_path: Path) -> None:
    """From the command line, from a file and from stdin; no number loses a digit."""
    text = '{"n": 12345678901234567890123, "f": 1.10, "list": [null, true, "\\u00e9"]}'
    (tmp_path / "input.json").write_text(text)
    for task_id in (
        shell.submit("--input", text),
        shell.submit("--input", f"@{tmp_path / 'input.json'}"),
        shell.out("submit", "--type", "echo", "--input", "-", stdin=text),
    ):
        raw = shell.bucket.raw.get_object(Bucket=shell.bucket.name, Key=format_key(task_id))["Body"].read()
        assert b"12345678901234567890123" in raw and b"1.10" in raw
        assert "12345678901234567890123" in shell.out("status", task_id, "--json")
    assert shell.task(shell.submit())["input"] is None


@pytest.mark.req("OQ-036", "OQ-037", "OQ-078", "OQ-082")
def test_options_of_a_task_are_stored(shell: Shell) -> None:
    """An omitted option has its default, also within a policy of which a part is set."""
    usual = shell.task(shell.submit())
    assert (usual["timeout_seconds"], usual["max_retries"]) == (300, 3)
    assert usual["retry_policy"] == {
        "initial_interval_ms": 1000,
        "max_interval_ms": 60000,
        "multiplier": 2.0,
        "jitter_percent": 0.25,
    }
    policy = '{"initial_interval_ms": 5, "jitter_percent": 0}'
    own = shell.task(shell.submit("--timeout", "7", "--max-retries", "0", "--retry-policy", policy))
    assert (own["timeout_seconds"], own["max_retries"]) == (7, 0)
    assert own["retry_policy"] == {**usual["retry_policy"], **json.loads(policy)}


@pytest.mark.req("OQ-092", "OQ-028")
@pytest.mark.parametrize(
    "arguments",
    [
        ("--type", "echo", "--input", "{"),
        ("--type", "echo", "--input", "NaN"),
        ("--type", "echo", "--input", "@/nowhere"),
        ("--type", "echo", "--retry-policy", '{"initial": 5}'),
        ("--type", "echo", "--retry-policy", '{"jitter_percent": 2}'),
        ("--type", "echo", "--retry-policy", "[]"),
        ("--type", "echo", "--timeout", "0"),
        ("--type", "echo", "--delay", "soon"),
        ("--type", "echo", "--at", "tomorrow"),
        ("--type", "echo", "--at", "2030-01-01", "--delay", "1"),
        ("--type", ""),
        (),
    ],
)
def test_invalid_options_are_refused_before_anything_is_written(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    """With the code of wrong usage and a line that says why."""
    result = shell.run("submit", *arguments)
    assert (result.exit_code, result.stdout) == (USAGE, "")
    assert "Error: " in result.stderr
    if "--retry-policy" in arguments:
        assert "retry" in result.stderr.partition("Error: ")[2]
    assert shell.bucket.keys() == []


@pytest.mark.req("OQ-089", "OQ-014")
@pytest.mark.parametrize("harm", [{"drop": True}, {"status": 500, "carried_out": True}, {"truncate": 0}])
def test_a_lost_answer_creates_no_second_task(
    proxied_shell: Shell, s3_proxy: S3Proxy, harm: dict[str, int]
) -> None:
    """The task that is there is our own: one version, its entry, and its id."""
    s3_proxy.rule(kind="PutObject", key="tasks/", **harm)
    task_id = proxied_shell.submit()
    assert proxied_shell.versions(task_id) == 1
    assert len(proxied_shell.list_ready_entries(task_id)) == 1


@pytest.mark.req("OQ-091", "OQ-064")
def test_a_task_whose_entry_is_not_written_is_submitted(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """A warning is printed, and nothing else happens."""
    s3_proxy.rule(kind="PutObject", key="ready/", status=500, times=None)
    result = proxied_shell.run("submit", "--type", "echo")
    assert result.exit_code == DONE
    assert "warning" in result.stderr and "entry" in result.stderr
    assert proxied_shell.task(result.stdout.strip())["status"] == "Pending"


@pytest.mark.req("OQ-088", "OQ-X01")
def test_an_id_in_use_is_a_conflict(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """The task that has it stays as it is, and nothing is written for it."""
    task_id = proxied_shell.submit()
    line = json.dumps({"task_type": "echo", "task_id": task_id, "input": 2})
    s3_proxy.forget()
    result = proxied_shell.run("submit", "--from-file", "-", stdin=line)
    assert (result.exit_code, result.stdout) == (TROUBLE, "-\n")
    assert f"there is a task {task_id} already" in result.stderr
    assert proxied_shell.versions(task_id) == 1
    assert not s3_proxy.asked("PutObject", "ready/")


@pytest.mark.req("OQ-263")
def test_a_key_makes_a_second_submit_find_the_first(shell: Shell) -> None:
    """The same content is the same task, another one is a conflict; without a key nothing is compared."""
    first = shell.submit("--key", "order 1", "--input", "1")
    assert shell.submit("--key", "order 1", "--input", "1") == first
    assert UUID4.fullmatch(first) and shell.versions(first) == 1
    other = shell.run("submit", "--type", "echo", "--key", "order 1", "--input", "2")
    assert (other.exit_code, other.stdout) == (CONFLICT, "")
    assert shell.submit("--input", "1") != shell.submit("--input", "1")


@pytest.mark.req("OQ-267", "OQ-031")
def test_a_task_may_be_delayed(shell: Shell) -> None:
    """By a time or by a wait; both end in `available_at`, and so in the minute of the entry."""
    at = shell.submit("--at", "2035-06-01T10:00:00+02:00")
    assert shell.task(at)["available_at"] == "2035-06-01T08:00:00.000000Z"
    wait, before = timedelta(minutes=90), datetime.now(UTC)
    delayed = datetime.fromisoformat(shell.task(shell.submit("--delay", "90m"))["available_at"])
    # Its clock counts in milliseconds.
    assert before - timedelta(milliseconds=1) <= delayed - wait <= datetime.now(UTC)
    assert shell.list_ready_entries(at) == [
        f"ready/{at[0]}/{int(datetime(2035, 6, 1, 8, tzinfo=UTC).timestamp()) // 60:010}/{at}"
    ]


@pytest.mark.req("OQ-X01")
def test_many_tasks_come_from_a_file(shell: Shell, tmp_path: Path) -> None:
    """A line for each, in their order; an invalid line is reported and stops no other."""
    lines = [json.dumps({"input": n, "task_type": f"kind{n % 3}"}) for n in range(40)]
    lines[7:7] = ["{", '{"input": 1, "kind": "echo"}', ""]
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(lines))
    result = shell.run("submit", "--from-file", str(path), "--max-retries", "9", "--parallel", "8")
    ids = result.stdout.splitlines()
    assert result.exit_code == TROUBLE and ids[7:9] == ["-", "-"]
    assert "line 8: " in result.stderr and "line 9: a task has no 'kind'" in result.stderr
    tasks = [shell.task(each) for each in ids if each != "-"]
    assert [each["input"] for each in tasks] == list(range(40))
    assert {each["max_retries"] for each in tasks} == {9}
    assert "40 submitted, 2 not" in result.stderr


def test_many_tasks_come_through_a_named_pipe(shell: Shell, tmp_path: Path) -> None:
    """Such as a shell creates for the output of a command. Its content cannot be read again."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor(1) as writer:
        writer.submit(path.write_text, '{"task_type": "echo", "input": 7}\n{"task_type": "echo", "input": 8}')
        ids = shell.out("submit", "--from-file", str(path)).splitlines()
    assert [shell.task(each)["input"] for each in ids] == [7, 8]


@pytest.mark.req("OQ-X01", "OQ-234")
def test_results_of_many_are_json_on_request(shell: Shell) -> None:
    """A line of JSON for each."""
    lines = '{"task_type": "echo", "idempotency_key": "k"}\n' * 2 + "[]\n"
    result = shell.run("submit", "--from-file", "-", "--json", "--parallel", "1", stdin=lines)
    first, second, third = map(json.loads, result.stdout.splitlines())
    assert first["created"] and not second["created"] and first["task_id"] == second["task_id"]
    assert third == {"line": 3, "task_id": None, "problem": "it is no JSON object"}
