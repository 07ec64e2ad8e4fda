"""The dashboard of the workers."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.support.objectqueue.page_stage import Stage, Visit, format_soon

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.req("OQ-196", "OQ-167")
async def test_workers_are_active_or_stale_with_their_tasks(stage: Stage, visit: Visit) -> None:
    """One that was silent for sixty seconds is stale; running tasks are links; counters are as written."""
    task = stage.add(status="Running")
    stage.worker(
        "alive",
        silent_s=20,
        current_task=task["id"],
        current_tasks=[task["id"]],
        tasks_completed=1284,
        tasks_failed=17,
        leases_lost=2,
    )
    stage.worker("killed", silent_s=75, shards=["0", "1"])
    stage.write("workers/odd.json", "no json")
    visitor = await visit("#view=workers")
    page = visitor.page
    cards = page.locator(".worker")
    await expect(cards).to_have_count(3)
    alive, killed, odd = (page.locator(f'.worker[data-key="{name}"]') for name in ("alive", "killed", "odd"))
    await expect(alive.locator(".badge")).to_have_text("Active")
    await expect(killed.locator(".badge")).to_have_text("Stale")
    await expect(odd).to_contain_text("cannot be read as a worker")
    await expect(alive.locator("[data-counter=tasks_completed]")).to_have_text("1,284")
    await expect(alive.locator("[data-counter=tasks_failed]")).to_have_text("17")
    await expect(alive.locator("[data-counter=leases_lost]")).to_have_text("2")
    await expect(killed.locator(".shards [data-served=yes]")).to_have_count(2)
    await expect(page.locator("#workers-active")).to_have_text("2")
    await expect(page.locator("#workers-stale")).to_have_text("1")
    await expect(page.locator("#workers-busy")).to_have_text("1")
    await alive.locator("a").click()
    await expect(page.locator("#detail-id code")).to_have_text(task["id"])


@pytest.mark.req("OQ-196", "OQ-201", "OQ-075")
async def test_a_refresh_reads_the_changed_workers(stage: Stage, visit: Visit) -> None:
    """One LIST and a GET for each change; stopped workers disappear; shards without a worker are named."""
    # A heartbeat of the future: however long the test lasts, none is stale.
    stage.worker("one", silent_s=-3600, shards=list("01234567"))
    stage.worker("two", silent_s=-3600, shards=list("89abcd"))
    visitor = await visit("#view=workers")
    page = visitor.page
    await expect(page.locator(".worker")).to_have_count(2)
    await expect(page.locator("#uncovered-shards")).to_have_text("e, f")
    await visitor.pause()
    stage.worker("two", silent_s=-3600, shards=list("89abcdef"), tasks_completed=5)
    visitor.requested.clear()
    await visitor.refresh()
    await expect(page.locator('[data-key="two"] [data-counter=tasks_completed]')).to_have_text("5")
    await expect(page.locator("#uncovered")).to_be_hidden()
    # At one refresh in six it lists the waiting tasks, too.
    assert [each for each in visitor.lists() if each != "ready%2F"] == ["workers%2F"]
    assert len(visitor.requests("GET", "/workers/")) == 1
    stage.bucket.raw.delete_object(Bucket=stage.bucket.name, Key="workers/one.json")
    await visitor.refresh()
    await expect(page.locator(".worker")).to_have_count(1)


@pytest.mark.req("OQ-105", "OQ-196")
async def test_waiting_types_that_no_worker_runs_are_named(stage: Stage, visit: Visit) -> None:
    """Each card has the types of its worker; a stale worker runs nothing."""
    for kind in ("send_email", "resize", "print"):
        stage.add(task_type=kind)
    stage.add(task_type="later", available_at=format_soon(7200))
    stage.write("ready/3/0000000001/00000000-0000-4000-8000-000000000000", "{}")
    stage.worker("live", silent_s=-3600, task_types=["echo", "resize"])
    stage.worker("dead", silent_s=3600, task_types=["print"])
    visitor = await visit("#view=workers")
    page = visitor.page
    await expect(page.locator("#unserved-types")).to_have_text("print, send_email")
    await expect(page.locator('.worker[data-key="live"] .types')).to_have_text("Runs echo, resize")
    await visitor.pause()
    stage.worker("new", silent_s=-3600, task_types=["print", "send_email"])
    await visitor.refresh()
    await expect(page.locator("#unserved")).to_be_hidden()
