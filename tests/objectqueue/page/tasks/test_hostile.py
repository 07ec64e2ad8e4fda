"""Hostile objects: all their content is shown as text and does nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.async_api import Dialog, expect

from tests.support.objectqueue.page_stage import Stage, Visit, Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")
HARM = (
    '"><img src=x onerror="window.harmed=1"><script>window.harmed=1</script>'
    "<svg onload=alert(1)>{{7*7}}${alert(1)}javascript:alert(1)"
)
STATES = ("Pending", "Running", "Completed", "Failed", "Archived")
TEXTS = ("task_type", "worker_id", "last_error", "idempotency_key", "lease_id", "x_<b>")
WORKER_FIELDS = (
    "worker_id",
    "started_at",
    "last_heartbeat",
    "shards",
    "current_task",
    "tasks_completed",
    "leases_lost",
)
FOREIGN = "main img:not([src='lifecycle-task.svg']), main script, main iframe"


def _record_dialogs(visitor: Visitor) -> list[Dialog]:
    """The dialogs that open from now on; the first of them is enough."""
    opened: list[Dialog] = []

    def note(dialog: Dialog) -> None:
        opened.append(dialog)

    visitor.page.once("dialog", note)
    return opened


async def _expect_no_harm(visitor: Visitor, dialogs: list[Dialog]) -> None:
    """Nothing ran, nothing was requested, and no element came from an object."""
    assert dialogs == []
    assert await visitor.page.evaluate("window.harmed") is None
    assert await visitor.page.locator(FOREIGN).count() == 0
    assert [request.url for request in visitor.requested if request.url.endswith("/x")] == []


@pytest.mark.req("OQ-190")
async def test_markup_in_any_field_of_a_task_stays_text(stage: Stage, visit: Visit) -> None:
    """In every state: list, detail, trees, history, difference, and the question before an action."""
    harm = {HARM: [HARM, {HARM: HARM}], "__proto__": {"polluted": HARM}}
    others = dict.fromkeys(("input", "retry_policy", "created_at", "max_retries"), HARM)
    visitor = await visit("#shard=4")
    dialogs = _record_dialogs(visitor)
    page = visitor.page
    await page.click("#pause")
    for state in STATES:
        first = stage.put({**stage.task(status=state, input=harm, output=harm), **dict.fromkeys(TEXTS, HARM)})
        task = stage.update(first, progress=harm, **others)
        await visitor.go(f"#shard=3&state={state.lower()}&task={task['id']}")
        await expect(page.locator("#detail-badge")).to_have_text(state)
        await expect(page.locator("#timeline li")).to_have_count(2)
        await expect(page.locator(f'tr[data-key="{task["id"]}"] .task-type')).to_have_text(HARM)
        await expect(page.locator("#detail-type")).to_have_text(HARM)
        await expect(page.locator("#detail-error pre")).to_have_text(HARM)
        await expect(page.locator("#detail-input .string")).to_have_text(json.dumps(HARM))
        await expect(page.locator('[data-field="x_<b>"] dd')).to_have_text(HARM)
        await page.click("#detail-output button:has-text('Expand')")
        await page.check("#all-fields")
        await expect(page.locator('#diff [data-path="task_type"] td').first).to_have_text(json.dumps(HARM))
        await page.locator("#detail-actions button").last.click()
        await expect(page.locator("#confirm")).to_be_visible()
        await page.click("#confirm-yes")
        await expect(page.locator("#timeline li")).to_have_count(3)
        assert stage.read(task)["task_type"] == HARM
    assert await page.evaluate("({}).polluted") is None
    await _expect_no_harm(visitor, dialogs)


@pytest.mark.req("OQ-190", "OQ-053")
async def test_markup_in_workers_keys_and_garbage_stays_text(stage: Stage, visit: Visit) -> None:
    """Names of objects, fields of workers, and objects that are no JSON at all."""
    key = "3-<img src=x onerror=alert(1)>"
    stage.write(f"tasks/3/{key}.json", HARM)
    stage.write("tasks/3/3-huge.json", "[" * 30000)
    fields: dict[str, Any] = dict.fromkeys(WORKER_FIELDS, HARM)
    stage.worker("<b>bold", **fields, current_tasks=[HARM, {"a": HARM}])
    visitor = await visit("#shard=3")
    dialogs = _record_dialogs(visitor)
    page = visitor.page
    await expect(page.locator("#task-rows tr")).to_have_count(2)
    await page.locator("#task-rows tr", has_text=key).click()
    await expect(page.locator("#detail-raw")).to_have_text(HARM)
    await page.locator("#task-rows tr", has_text="3-huge").click()
    await expect(page.locator("#detail-badge")).to_have_text("Corrupt")
    await visitor.go("#view=workers")
    await expect(page.locator(".worker h3")).to_have_text("<b>bold")
    await expect(page.locator(".worker .task-id").first).to_have_text(HARM)
    await _expect_no_harm(visitor, dialogs)


@pytest.mark.req("OQ-190")
async def test_markup_in_the_address_stays_text(stage: Stage, visit: Visit) -> None:
    """The address of the page may be hostile, too."""
    visitor = await visit(f"?queue={HARM.replace('#', '')}#shard={HARM}&state={HARM}&task={HARM}&view=tasks")
    dialogs = _record_dialogs(visitor)
    await expect(visitor.page.locator("#app")).to_be_visible()
    await visitor.go("#view=nothing")
    await expect(visitor.page.locator("#tasks-view")).to_be_visible()
    await _expect_no_harm(visitor, dialogs)
