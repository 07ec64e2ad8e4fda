"""Commands that print tasks, their history, workers and counts."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.objectqueue.shell import (
    CONFLICT,
    DONE,
    GOES_ON,
    NOT_FOUND,
    TROUBLE,
    UNKNOWN_ID,
    UUID4,
    Shell,
    format_key,
)
from tests.support.s3.proxy import S3Proxy

STATES = ("Pending", "Running", "Completed", "Failed", "Archived")
SHARDS = "0123456789abcdef"


@pytest.mark.req("OQ-222", "OQ-234")
def test_status_prints_a_task_in_every_state(shell: Shell) -> None:
    """For people and as JSON, which equals the object of the bucket."""
    for status in STATES:
        task_id = shell.submit_in(status)
        assert shell.json("status", task_id) == shell.task(task_id)
        assert re.search(f"^status +{status}$", shell.out("status", task_id), re.MULTILINE)
        assert shell.json("status", task_id.upper())["id"] == task_id


@pytest.mark.req("OQ-234")
def test_control_characters_in_a_task_are_escaped(shell: Shell) -> None:
    """Control characters in a text are printed as something harmless."""
    task_id = shell.submit_in("Failed", last_error="\x1b[2Jgone\r\n\x07")
    for output in (shell.out("status", task_id), shell.out("list")):
        assert "gone" in output and "\x1b" not in output and "\x07" not in output


@pytest.mark.req("OQ-224", "OQ-230", "OQ-170", "OQ-171", "OQ-121")
def test_list_filters_by_shard_and_state(shell: Shell) -> None:
    """By either, both or none; archived tasks only on request."""
    tasks = {}
    for number in range(10):
        task_id = shell.submit_in(STATES[number % 5], task_type=f"kind{number % 2}")
        tasks[task_id] = shell.task(task_id)
    for shard in (None, *sorted({task_id[0] for task_id in tasks})[:2]):
        for status in (None, *STATES):
            arguments = [*(("--shard", shard) if shard else ()), *(("--status", status) if status else ())]
            expected = {
                task_id
                for task_id, task in tasks.items()
                if shard in (None, task_id[0])
                and (task["status"] == status if status else task["status"] != "Archived")
            }
            assert {each["id"] for each in shell.json("list", *arguments)} == expected
    assert {each["task_type"] for each in shell.json("list", "--type", "kind1")} == {"kind1"}
    found = shell.json("list", "--limit", "4", "--status", "FAILED")
    assert found == sorted(found, key=lambda each: each["updated_at"], reverse=True)
    assert len(shell.json("list", "--limit", "2")) == 2
    assert shell.out("list", "--status", "pending").count("\n") == 2


@pytest.mark.req("OQ-223", "OQ-172", "OQ-149", "OQ-020")
def test_history_has_every_version_and_its_changes(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """From the creation on, each version read as such, also where the task is archived."""
    task_id = proxied_shell.submit()
    proxied_shell.out("cancel", task_id, "--reason", "why not")
    proxied_shell.out("archive", task_id)
    s3_proxy.forget()
    versions = proxied_shell.json("history", task_id)
    assert [each["task"]["status"] for each in versions] == ["Pending", "Failed", "Archived"]
    assert s3_proxy.asked("ListObjectVersions")
    read = {each.query["versionId"] for each in s3_proxy.asked("GetObject") if "versionId" in each.query}
    assert read == {each["version"] for each in versions}
    changes = {each["path"]: (each["before"], each["after"]) for each in versions[1]["changes"]}
    assert changes["status"] == ("Pending", "Failed")
    assert changes["last_error"][0] is None and "why not" in changes["last_error"][1]
    output = proxied_shell.out("history", task_id)
    assert "status: Pending → Failed" in output and "status: Failed → Archived" in output


@pytest.mark.req("OQ-019", "OQ-154", "OQ-215")
def test_without_versioning_there_is_no_history(shell: Shell) -> None:
    """All commands are refused until versions are waived, and then the history says why there is none."""
    _suspend_versions(shell)
    refused = shell.run("submit", "--type", "echo")
    assert refused.exit_code == TROUBLE and "version" in refused.stderr
    task_id = shell.out("submit", "--type", "echo", QO_ALLOW_NO_VERSIONING="1")
    result = shell.run("history", task_id, QO_ALLOW_NO_VERSIONING="1")
    assert result.exit_code == CONFLICT and "versions" in result.stderr


@pytest.mark.req("OQ-227", "OQ-075", "OQ-167")
def test_workers_are_active_or_stale(shell: Shell) -> None:
    """With their counters as in the bucket, and the shards that no worker serves."""
    now = datetime.now(UTC) + timedelta(hours=1)  # However long the test lasts, it is not stale.
    live = _worker(shell, "w1", now, list("01234567"), tasks_completed=3, current_task=UNKNOWN_ID)
    stale = _worker(shell, "w2", now - timedelta(hours=2), list("89abcdef"), tasks_failed=2)
    found = shell.json("workers")
    assert [(each["worker"]["worker_id"], each["live"]) for each in found["workers"]] == [
        ("w1", True),
        ("w2", False),
    ]
    for listed, stored in zip(found["workers"], (live, stale), strict=True):
        assert listed["worker"] == stored
    assert found["uncovered_shards"] == list("89abcdef")
    result = shell.run("workers")
    assert "active" in result.stdout and "stale" in result.stdout
    assert "no live worker serves 8, 9, a, b, c, d, e, f" in result.stderr


@pytest.mark.req("OQ-X06")
def test_stats_count_by_shard_and_state(shell: Shell) -> None:
    """All shards are there, those without tasks too."""
    ids = [shell.submit_in(each) for each in (*STATES, "Failed")]
    found = {each["shard"]: each for each in shell.json("stats")["shards"]}
    assert list(found) == list(SHARDS)
    assert sum(each["failed"] for each in found.values()) == 2
    for shard in {each[0] for each in ids}:
        total = sum(found[shard][each.lower()] for each in STATES)
        assert total == sum(each[0] == shard for each in ids)
    assert "all" in shell.out("stats")


@pytest.mark.req("OQ-X05")
def test_wait_prints_how_a_task_ended(shell: Shell) -> None:
    """Its output, or why it failed; one that does not end is waited for no longer than requested."""
    completed = shell.submit_in("Completed", output={"sum": 3})
    assert shell.out("wait", completed) == '{"sum":3}'
    failed = shell.run("wait", shell.submit_in("Failed", last_error="bro\nken\x1b[2J"))
    assert (failed.exit_code, failed.stdout) == (TROUBLE, "failed\n")
    assert failed.stderr == "error: bro\N{REPLACEMENT CHARACTER}ken\N{REPLACEMENT CHARACTER}[2J\n"
    waiting = shell.run("wait", shell.submit(), "--seconds", "0.1")
    assert (waiting.exit_code, waiting.stdout) == (GOES_ON, "pending\n")
    assert "it goes on" in waiting.stderr
    assert shell.json("wait", completed)["output"] == {"sum": 3}


@pytest.mark.req("OQ-232", "OQ-235")
@pytest.mark.parametrize("command", ["status", "history", "wait", "replay", "archive", "unarchive", "cancel"])
def test_an_unknown_id_is_an_error(shell: Shell, command: str) -> None:
    """By a line and a code of its own."""
    result = shell.run(command, UNKNOWN_ID)
    assert (result.exit_code, result.stdout) == (NOT_FOUND, "")
    assert result.stderr == f"Error: no task {UNKNOWN_ID}.\n"


@pytest.mark.req("OQ-104", "OQ-235")
def test_an_unreadable_object_is_reported(shell: Shell) -> None:
    """One by its id; lists and counts work on, and report that it is there."""
    good, bad = shell.submit(), shell.submit()
    shell.bucket.raw.put_object(Bucket=shell.bucket.name, Key=format_key(bad), Body=b"{")
    result = shell.run("status", bad)
    assert result.exit_code == TROUBLE and "no task" in result.stderr
    assert [each["task"] is None for each in shell.json("history", bad)] == [False, True]
    assert "cannot be read" in shell.out("history", bad)
    assert [each["id"] for each in shell.json("list")] == [good]
    warned = f"warning: 1 object cannot be read as a task: {bad}"
    for arguments in (("list",), ("list", "--json"), ("list", "--shard", bad[0])):
        assert warned in shell.run(*arguments).stderr
    for arguments in (("list", "--status", "pending"), ("list", "--type", "echo")):
        assert "cannot be read" not in shell.run(*arguments).stderr
    counted = shell.run("stats")
    assert counted.exit_code == DONE and "unreadable" in counted.stdout
    assert "1 object cannot be read as a task" in counted.stderr
    found = {each["shard"]: each["unreadable"] for each in shell.json("stats")["shards"]}
    assert {shard: count for shard, count in found.items() if count} == {bad[0]: 1}


@pytest.mark.req("OQ-104", "OQ-021")
def test_each_unreadable_object_is_reported_once_in_a_long_list(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of two tasks each, with others between them that cannot be read."""
    monkeypatch.setattr("handlers.objectqueue.cli.commands.queries._PAGE", 2)
    ids = [shell.submit() for _ in range(7)]
    bad = ids[1::2]
    for each in bad:
        shell.bucket.raw.put_object(Bucket=shell.bucket.name, Key=format_key(each), Body=b"[]")
    result = shell.run("list", "--json")
    assert {each["id"] for each in json.loads(result.stdout)} == set(ids) - set(bad)
    assert f"3 objects cannot be read as tasks: {', '.join(sorted(bad))}" in result.stderr


@pytest.mark.req("OQ-105", "OQ-075")
def test_a_type_that_no_live_worker_runs_is_reported(shell: Shell) -> None:
    """When it is submitted, in lists of tasks and of workers; not for a task that is delayed anyway."""
    now = datetime.now(UTC) + timedelta(hours=1)  # However long the test lasts, it is not stale.
    alone = shell.run("submit", "--type", "send_email", "--input", '{"to": "user@example.com"}')
    assert alone.exit_code == DONE and UUID4.fullmatch(alone.stdout.strip())
    assert alone.stderr == (
        "hint: there is no live worker; tasks of type send_email wait until one starts (qo worker)\n"
    )
    _worker(shell, "w1", now, list(SHARDS), task_types=["echo", "resize"])
    _worker(shell, "dead", now - timedelta(hours=2), list(SHARDS), task_types=["send_email"])
    message = (
        "hint: no live worker runs tasks of type send_email; they wait until one does. "
        "Live ones run echo, resize\n"
    )
    assert shell.run("submit", "--type", "send_email").stderr == message
    assert shell.run("submit", "--type", "send_email", "--json").stderr == message
    assert shell.run("list").stderr == message
    output = shell.run("workers")
    assert message in output.stderr and "echo, resize" in output.stdout
    assert shell.json("workers")["unserved_types"] == ["send_email"]
    lines = b'{"task_type": "echo"}\n{"task_type": "send_email"}\n'
    assert message in shell.run("submit", "--from-file", "-", stdin=lines).stderr
    assert shell.run("submit", "--type", "resize", "--delay", "1h").stderr == ""
    _worker(shell, "w2", now, list(SHARDS), task_types=["send_email"])
    assert shell.run("submit", "--type", "send_email").stderr == ""
    assert shell.run("list").stderr == ""
    assert shell.run("workers").stderr == ""


@pytest.mark.req("OQ-087", "OQ-093")
def test_a_submit_works_without_permission_to_read_workers(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """The hint is omitted."""
    s3_proxy.rule(kind="ListObjectsV2", status=403, times=None)
    result = proxied_shell.run("submit", "--type", "send_email")
    assert result.exit_code == DONE and result.stderr == ""


def _suspend_versions(shell: Shell) -> None:
    shell.bucket.raw.put_bucket_versioning(
        Bucket=shell.bucket.name, VersioningConfiguration={"Status": "Suspended"}
    )


def _worker(shell: Shell, name: str, heard_at: datetime, shards: list[str], **fields: Any) -> dict[str, Any]:
    when = heard_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    worker = {
        "worker_id": name,
        "schema_version": 1,
        "rev": 1,
        "status": "Active",
        "started_at": when,
        "last_heartbeat": when,
        "shards": shards,
        "task_types": ["echo"],
        "current_task": None,
        "current_tasks": [],
        "tasks_completed": 0,
        "tasks_failed": 0,
        "leases_lost": 0,
        "instance": None,
        "process": None,
        **fields,
    }
    body = json.dumps(worker).encode()
    shell.bucket.raw.put_object(Bucket=shell.bucket.name, Key=f"workers/{name}.json", Body=body)
    return worker
