"""Actions on a task: one conditional write and its index entry, never a delete."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from playwright.async_api import expect

from tests.support.deep import DEEP
from tests.support.objectqueue.page_stage import Fields, Stage, Visit, Visitor, format_minute
from tests.support.s3.proxy import S3Proxy
from tests.support.s3.requests import Rule

pytestmark = pytest.mark.asyncio(loop_scope="session")
PATIENCE_S = 60.0
ACTIONS = {
    "Pending": ["Cancel"],
    "Running": ["Cancel"],
    "Completed": ["Archive"],
    "Failed": ["Replay", "Archive"],
    "Archived": ["Unarchive", "Replay"],
}
KEEP_NOTES = """() => {
  window.notes = [];
  new MutationObserver(changes => {
    for (const { addedNodes } of changes) window.notes.push(...[...addedNodes].map(one => one.textContent));
  }).observe(document.getElementById("notes"), { childList: true });
}"""
"""A note disappears after some seconds."""


async def open_task(visit: Visit, task: Fields, **options: Any) -> Visitor:
    """A visitor with a task open, without further refreshes."""
    visitor = await visit(f"#shard={task['shard']}&task={task['id']}", **options)
    await visitor.page.wait_for_selector("#timeline li")
    await visitor.pause()
    return visitor


@pytest.mark.req("OQ-195")
async def test_only_the_edges_of_the_state_are_buttons(stage: Stage, visit: Visit) -> None:
    """The buttons are the edges of the spec that a page may drive from that state."""
    tasks = {state: stage.add(status=state) for state in ACTIONS}
    completed = stage.add(status="Archived", archived_from="Completed", last_error=None)
    visitor = await open_task(visit, completed)
    buttons = visitor.page.locator("#detail-actions button")
    await expect(buttons).to_have_text(["Unarchive"])
    for state, words in ACTIONS.items():
        await visitor.go(f"#shard=3&task={tasks[state]['id']}")
        await expect(visitor.page.locator("#detail-badge")).to_have_text(state)
        await expect(buttons).to_have_text(words)


@pytest.mark.req("OQ-193")
async def test_replay_writes_the_task_and_then_its_ready_entry(stage: Stage, visit: Visit) -> None:
    """It is Pending again, due now, with all its retries; all other fields stay as they were written."""
    task = stage.task(status="Failed", attempt=4, retry_count=3, last_error="it broke", x_note="kept")
    text = json.dumps(task).replace('{"to": "ada@example.com"}', '{"big": 12345678901234567890, "one": 1.0}')
    stage.write(f"tasks/3/{task['id']}.json", text)
    visitor = await open_task(visit, task)
    visitor.requested.clear()
    await visitor.page.evaluate(KEEP_NOTES)
    await visitor.act("Replay")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Pending")
    assert await visitor.page.evaluate("notes") == ["Replay: done."]
    after = stage.read(task)
    assert '{"big": 12345678901234567890, "one": 1.0}' in stage.text(task)
    assert {
        name: after[name] for name in ("status", "retry_count", "attempt", "rev", "last_error", "x_note")
    } == {
        "status": "Pending",
        "retry_count": 0,
        "attempt": 4,
        "rev": 2,
        "last_error": "it broke",
        "x_note": "kept",
    }
    assert after["available_at"] == after["updated_at"] > task["updated_at"]
    assert (after["completed_at"], after["worker_id"], after["created_at"]) == (
        None,
        None,
        task["created_at"],
    )
    assert set(after) == set(task)
    assert stage.keys("ready/") == [f"ready/3/{format_minute(after['available_at'])}/{task['id']}"]
    puts = [request for request in visitor.requested if request.method == "PUT"]
    assert [("/tasks/" in put.url, "if-match" in put.headers) for put in puts] == [
        (True, True),
        (False, False),
    ]
    assert stage.versions(task) == 2
    await expect(visitor.page.locator("#timeline li strong").first).to_have_text("replay")


@pytest.mark.req("OQ-194", "OQ-168", "OQ-173", "OQ-174")
async def test_a_task_is_archived_and_unarchived(stage: Stage, visit: Visit) -> None:
    """Archiving sets the tag of the bucket's rule, and unarchiving removes it."""
    task = stage.task(status="Completed")
    key, data = f"tasks/3/{task['id']}.json", f"data/3/{task['id']}/input.json"
    task["input_ref"] = {"key": data, "version": stage.write(data, "[1]")}
    stage.put(task)
    visitor = await open_task(visit, task)
    visitor.requested.clear()
    await visitor.act("Archive")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Archived")
    after = stage.read(task)
    assert (after["status"], after["archived_from"], after["rev"]) == ("Archived", "Completed", 2)

    def read_tags() -> list[Any]:
        answers = (
            stage.bucket.raw.get_object_tagging(Bucket=stage.bucket.name, Key=each) for each in (key, data)
        )
        return [each["TagSet"] for each in answers]

    assert read_tags() == [[{"Key": "qo-status", "Value": "archived"}]] * 2
    await expect(visitor.page.locator(f'tr[data-key="{task["id"]}"]')).to_have_count(0)
    await visitor.act("Unarchive")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Completed")
    assert (stage.read(task)["archived_from"], stage.read(task)["output"]) == (None, task["output"])
    assert read_tags() == [[], []]
    assert [request.method for request in visitor.requested if request.method not in ("GET", "PUT")] == []


async def test_a_waiting_or_running_task_can_be_cancelled(stage: Stage, visit: Visit) -> None:
    """It fails with that reason, its lease ends, and the index is not cleaned by the page."""
    running = stage.add(status="Running")
    visitor = await open_task(visit, running)
    await visitor.page.click("#detail-actions button")
    await visitor.page.click("#confirm button:has-text('Leave it')")
    assert stage.versions(running) == 1
    await visitor.act("Cancel")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Failed")
    after = stage.read(running)
    assert (after["last_error"], after["lease_id"], after["lease_expires_at"]) == ("cancelled", None, None)
    assert after["completed_at"] == after["updated_at"]
    assert len(stage.keys("leases/")) == 1
    waiting = stage.add()
    await visitor.go(f"#shard=3&task={waiting['id']}")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Pending")
    await visitor.act("Cancel")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Failed")


@pytest.mark.req("OQ-193")
async def test_a_conflict_is_shown_and_nothing_is_overwritten(stage: Stage, visit: Visit) -> None:
    """The task was changed after it was read: the page says so, writes nothing, reloads on request."""
    task = stage.add(status="Failed")
    visitor = await open_task(visit, task)
    await visitor.page.click('#detail-actions [data-action="Replay"]')
    theirs = stage.update(task, status="Archived", archived_from="Failed")
    await visitor.page.click("#confirm-yes")
    await expect(visitor.page.locator("#detail-say")).to_contain_text("somebody else changed this task first")
    assert stage.read(task) == theirs
    assert stage.keys("ready/") == []
    await visitor.page.click("#detail-say button")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Archived")
    await expect(visitor.page.locator("#detail-say")).to_be_empty()


@pytest.mark.req("OQ-193", "OQ-178")
async def test_of_two_concurrent_replays_in_browsers_one_wins(stage: Stage, visit: Visit) -> None:
    """Round after round: one version more, one page with a success, one with a conflict."""
    task = stage.add(status="Failed")
    first, second = await open_task(visit, task), await open_task(visit, task, alone=True)
    for round_number in range(10 if DEEP else 2):
        if round_number:
            task = stage.update(stage.read(task), status="Failed", last_error="again")
            for visitor in (first, second):
                await visitor.refresh()
                await expect(visitor.page.locator("#detail-badge")).to_have_text("Failed")
        before = stage.versions(task)
        await asyncio.gather(first.act("Replay"), second.act("Replay"))
        conflicts = [0, 0]
        # A page that refreshes meanwhile shows the new state before the conflict.
        async with asyncio.timeout(PATIENCE_S):
            while not any(conflicts):
                await asyncio.sleep(0.05)
                notices = (visitor.page.locator("#detail-say .notice") for visitor in (first, second))
                conflicts = [await each.count() for each in notices]
        assert sorted(conflicts) == [0, 1]
        assert stage.versions(task) == before + 1
        assert stage.read(task)["status"] == "Pending"
        loser = (first, second)[conflicts.index(1)]
        await loser.page.click("#detail-say button")
        await expect(loser.page.locator("#detail-badge")).to_have_text("Pending")


async def test_a_lost_answer_is_resolved_by_a_read(stage: Stage, visit: Visit, s3_proxy: S3Proxy) -> None:
    """The write was done and its answer never came: the page finds its own write, and it is a success."""
    task = stage.add(status="Failed")
    visitor = await open_task(visit, task, through=s3_proxy)
    s3_proxy.rules.append(Rule(kind="PutObject", key="tasks/", drop=True))
    await visitor.act("Replay")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Pending")
    assert (stage.versions(task), len(stage.keys("ready/"))) == (2, 1)


async def test_a_failed_write_is_reported(stage: Stage, visit: Visit, s3_proxy: S3Proxy) -> None:
    """The store failed before it wrote: nothing happened, and the action can be tried again."""
    task = stage.add(status="Failed")
    visitor = await open_task(visit, task, through=s3_proxy)
    s3_proxy.rules.append(Rule(kind="PutObject", key="tasks/", status=503))
    await visitor.act("Replay")
    await expect(visitor.page.locator("#detail-say .notice")).to_be_visible()
    assert stage.versions(task) == 1
    await visitor.act("Replay")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Pending")


async def test_a_missing_index_entry_is_reported_and_undoes_nothing(
    stage: Stage, visit: Visit, s3_proxy: S3Proxy
) -> None:
    """The task is the truth: it is Pending although its entry could not be written; a sweep repairs that."""
    task = stage.add(status="Failed")
    visitor = await open_task(visit, task, through=s3_proxy)
    s3_proxy.rules.append(Rule(kind="PutObject", key="ready/", status=500))
    await visitor.act("Replay")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Pending")
    await expect(visitor.page.locator("#detail-say")).to_contain_text("workers may find it late")
    assert stage.read(task)["status"] == "Pending"
    assert stage.keys("ready/") == []
