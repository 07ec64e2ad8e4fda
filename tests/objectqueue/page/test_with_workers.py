"""The page and the workers on one bucket: each reads the objects of the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from generated.objectqueue.messages import ARCHIVED, COMPLETED
from tests.support.objectqueue.crew import Crew
from tests.support.objectqueue.page_stage import Stage, Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.req("OQ-193", "OQ-194", "OQ-175", "OQ-172")
async def test_a_task_replayed_on_the_page_is_run_by_a_worker(
    stage: Stage, visit: Visit, tmp_path: Path
) -> None:
    """A real task is cancelled and replayed on the page, done by a real worker, and archived on the page."""
    crew = Crew(stage.bucket, tmp_path)
    input_ = {"big": 12345678901234567890, "text": "Grüße"}
    task_id = await crew.submit("echo", input_)
    visitor = await visit(f"#shard={task_id[0]}&task={task_id}")
    page = visitor.page
    badge = page.locator("#detail-badge")
    await expect(badge).to_have_text("Pending")
    await visitor.act("Cancel")
    await expect(badge).to_have_text("Failed")
    await visitor.act("Replay")
    await expect(badge).to_have_text("Pending")
    async with crew.worker("w1"):
        ended = await crew.wait_until_ended(task_id)
        await visitor.go("#view=workers")
        await expect(page.locator('.worker[data-key="w1"] .badge')).to_have_text("Active")
    assert (ended["status"], ended["attempt"], ended["input"]) == ("Completed", 1, input_)
    await visitor.go(f"#shard={task_id[0]}&task={task_id}")
    await expect(page.locator("#timeline strong")).to_have_text(
        ["complete", "claim", "replay", "cancel", "created"]
    )
    await expect(page.locator("#detail-input")).to_contain_text("12345678901234567890")
    await visitor.act("Archive")
    await expect(badge).to_have_text("Archived")
    found = await crew.tasks.get(task_id)
    assert found is not None
    assert (found.status, found.archived_from) == (ARCHIVED, COMPLETED)
    revisions = [int(version["rev"]) for version in crew.versions(task_id)]
    assert revisions == list(range(revisions[0], revisions[0] + 6))
    await crew.close()
