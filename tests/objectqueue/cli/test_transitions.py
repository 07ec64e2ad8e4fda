"""Archive, unarchive, replay and cancel: their edges, and their output."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.objectqueue.shell import CONFLICT, DONE, QO, TROUBLE, USAGE, Shell, format_key
from tests.support.s3.proxy import S3Proxy

STATES = ("Pending", "Running", "Completed", "Failed", "Archived")
ALLOWED = {
    "archive": {"Completed": "Archived", "Failed": "Archived"},
    "unarchive": {"Archived": "Failed"},
    "replay": {"Failed": "Pending", "Archived": "Pending"},
    "cancel": {"Pending": "Failed", "Running": "Failed"},
}


@pytest.mark.req("OQ-169", "OQ-177", "OQ-225", "OQ-226", "OQ-235", "OQ-X03")
@pytest.mark.parametrize("command", ALLOWED)
def test_a_command_is_for_some_states_only(shell: Shell, command: str) -> None:
    """In the others it is a conflict that changes nothing."""
    for status in STATES:
        task_id = shell.submit_in(status)
        before = shell.task(task_id)
        result = shell.run(command, task_id)
        after = shell.task(task_id)
        target = ALLOWED[command].get(status)
        if target is None:
            assert (result.exit_code, result.stdout, after) == (CONFLICT, "", before)
            assert status in result.stderr
        else:
            assert (result.exit_code, result.stdout) == (DONE, f"{target.lower()}\n"), result.output
            assert after["status"] == target and after["updated_at"] > before["updated_at"]


@pytest.mark.req("OQ-168", "OQ-173", "OQ-174")
def test_archiving_is_one_write_and_can_be_undone(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """By the ETag that was read, with the tag of the bucket's rule, which is removed again."""
    task_id = proxied_shell.submit_in("Completed", output={"done": True})
    before = proxied_shell.task(task_id)
    s3_proxy.forget()
    proxied_shell.out("archive", task_id)
    (write,) = s3_proxy.asked("PutObject", "tasks/")
    assert write.headers["if-match"]
    assert not s3_proxy.asked("DeleteObject", "tasks/")
    archived = proxied_shell.task(task_id)
    changed = {name for name in archived if archived[name] != before[name]}
    assert changed == {"status", "archived_from", "updated_at", "rev"}
    assert _read_tags(proxied_shell, task_id) == {"qo-status": "archived"}
    assert proxied_shell.out("unarchive", task_id) == "completed"
    assert _read_tags(proxied_shell, task_id) == {}
    again = proxied_shell.task(task_id)
    assert {name for name in again if again[name] != before[name]} == {"updated_at", "rev"}


@pytest.mark.req("OQ-174", "OQ-175", "OQ-176")
def test_a_replayed_task_is_due_at_once_with_all_its_retries(shell: Shell) -> None:
    """Also one that was archived meanwhile; the count of attempts and the last error stay."""
    for archived in (False, True):
        task_id = shell.submit_in("Failed", retry_count=3, attempt=4, last_error="broken")
        for key in shell.list_ready_entries(task_id):
            shell.bucket.raw.delete_object(Bucket=shell.bucket.name, Key=key)
        if archived:
            shell.out("archive", task_id)
            shell.out("unarchive", task_id)
        assert shell.out("replay", task_id) == "pending"
        task = shell.task(task_id)
        assert (task["retry_count"], task["attempt"], task["last_error"]) == (0, 4, "broken")
        assert task["available_at"] == task["updated_at"] and task["completed_at"] is None
        assert len(shell.list_ready_entries(task_id)) == 1


@pytest.mark.req("OQ-177", "OQ-174")
def test_a_completed_task_is_not_replayed_after_its_archival(shell: Shell) -> None:
    """Its state before the archival counts."""
    task_id = shell.submit_in("Archived", archived_from="Completed")
    assert shell.run("replay", task_id).exit_code == CONFLICT
    assert shell.out("unarchive", task_id) == "completed"


@pytest.mark.req("OQ-178", "OQ-193")
def test_of_two_concurrent_replays_one_succeeds(proxied_shell: Shell, s3_proxy: S3Proxy) -> None:
    """The other one is a conflict, and there is one version more."""
    task_id = proxied_shell.submit_in("Failed", last_error="broken")
    versions = proxied_shell.versions(task_id)
    s3_proxy.rule(kind="PutObject", key="tasks/", times=None, delay_s=0.3)
    with ThreadPoolExecutor(2) as pool:
        codes = sorted(pool.map(lambda _: _replay_in_process(proxied_shell, task_id), range(2)))
    assert codes == [DONE, CONFLICT]
    assert proxied_shell.versions(task_id) == versions + 1


@pytest.mark.req("OQ-X03")
def test_a_cancelled_task_has_its_reason(shell: Shell) -> None:
    """A waiting one has no entry any more; a running one has no lease any more."""
    waiting, running = shell.submit(), shell.submit_in("Running")
    shell.out("cancel", waiting)
    shell.out("cancel", running, "--reason", "not wanted")
    assert "cancelled" in shell.task(waiting)["last_error"] and shell.list_ready_entries(waiting) == []
    task = shell.task(running)
    assert "not wanted" in task["last_error"]
    assert task["lease_id"] is task["lease_expires_at"] is None


@pytest.mark.req("OQ-X07")
def test_many_are_transitioned_by_a_filter(shell: Shell) -> None:
    """After a prompt, unless it is answered in advance; a line for each task."""
    failed = {shell.submit_in("Failed", task_type="a") for _ in range(3)}
    other = shell.submit_in("Failed", task_type="b")
    prompted = shell.run("replay", "--all", "--type", "a", stdin="n\n")
    assert prompted.exit_code == TROUBLE and "3 tasks?" in prompted.stderr
    transitioned = shell.out("replay", "--all", "--status", "failed", "--type", "a", "--yes")
    assert set(transitioned.splitlines()) == failed
    assert shell.task(other)["status"] == "Failed"
    assert {shell.task(each)["status"] for each in failed} == {"Pending"}
    assert "Archive 1 task?" in shell.run("archive", "--all", stdin="n\n").stderr
    assert shell.out("archive", "--all", "--yes") == other
    assert shell.run("archive", "--all").stderr == "There is nothing to archive.\n"
    assert shell.run("archive", "--all", "--status", "pending").exit_code == USAGE
    assert shell.run("archive").exit_code == USAGE
    assert shell.run("archive", other, "--all").exit_code == USAGE


def _read_tags(shell: Shell, task_id: str) -> dict[str, str]:
    answer: dict[str, Any] = shell.bucket.raw.get_object_tagging(
        Bucket=shell.bucket.name, Key=format_key(task_id)
    )
    return {each["Key"]: each["Value"] for each in answer["TagSet"]}


def _replay_in_process(shell: Shell, task_id: str) -> int:
    command = [*QO, "replay", task_id]
    return subprocess.run(command, env=shell.environ, capture_output=True, check=False).returncode
