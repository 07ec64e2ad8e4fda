"""The detail view of a task, and how it stays unchanged while the page refreshes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import expect

from tests.support.objectqueue.page_stage import Fields, Stage, Visit, Visitor, format_soon

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def open_task(visit: Visit, task: Fields) -> Visitor:
    """A visitor with a task open."""
    visitor = await visit(f"#shard={task['shard']}&task={task['id']}")
    await visitor.page.wait_for_selector("#timeline li")
    return visitor


@pytest.mark.req("OQ-187")
async def test_a_click_opens_a_task_and_a_key_closes_it(stage: Stage, visit: Visit) -> None:
    """The detail has the task's state and all its fields, unknown ones too."""
    task = stage.add(status="Failed", last_error="ValueError: no <template>", x_note="kept")
    visitor = await visit("#shard=3")
    await visitor.page.click(f'tr[data-key="{task["id"]}"]')
    page = visitor.page
    await expect(page.locator("#detail-type")).to_have_text("send_email")
    await expect(page.locator("#detail-badge")).to_have_text("Failed")
    await expect(page.locator("#detail-id code")).to_have_text(task["id"])
    await expect(page.locator("#detail-error pre")).to_have_text("ValueError: no <template>")
    await expect(page.locator("#detail-steps [aria-current]")).to_have_text("Failed")
    await expect(page.locator("[data-field=x_note] dd")).to_have_text("kept")
    await expect(page.locator("[data-field=attempt] dd")).to_have_text("4")
    await expect(page.locator("[data-field=created_at] .exact")).to_have_text(task["created_at"])
    await page.keyboard.press("Escape")
    await expect(page.locator("#detail")).to_be_hidden()
    await expect(page.locator(f'tr[data-key="{task["id"]}"] a')).to_be_focused()


@pytest.mark.req("OQ-202")
async def test_any_task_can_be_opened_by_its_id(stage: Stage, visit: Visit) -> None:
    """Whatever its shard and state; a malformed or unknown id is reported."""
    task = stage.add("b", status="Archived")
    visitor = await visit("#shard=3")
    page = visitor.page
    await page.keyboard.press("/")
    await expect(page.locator("#open-id")).to_be_focused()
    await page.keyboard.type(f" {task['id'].upper()} ")
    await page.keyboard.press("Enter")
    await expect(page.locator("#detail-badge")).to_have_text("Archived")
    await expect(page.locator("#shard")).to_have_value("b")
    await page.fill("#open-id", "no-id")
    await page.press("#open-id", "Enter")
    assert "looks like" in await page.eval_on_selector("#open-id", "field => field.validationMessage")
    await page.fill("#open-id", stage.task()["id"])
    await page.press("#open-id", "Enter")
    await expect(page.locator("#detail-say")).to_contain_text("There is no such task")


@pytest.mark.req("OQ-188")
async def test_a_running_task_counts_down_to_the_end_of_its_lease(stage: Stage, visit: Visit) -> None:
    """Second by second, by the clock of the store; then it says for how long the lease is over."""
    task = stage.add(status="Running", lease_expires_at=format_soon(1800), progress={"percent": 40})
    visitor = await open_task(visit, task)
    page = visitor.page
    await visitor.pause()
    await expect(page.locator("#progress")).to_have_text('Progress: {"percent": 40}')
    first = await page.inner_text("#lease-left")
    await expect(page.locator("#lease-left")).not_to_have_text(first)
    second = await page.inner_text("#lease-left")
    await expect(page.locator("#lease-left")).not_to_have_text(second)
    third = await page.inner_text("#lease-left")
    # The clock of the store is known as exactly as its answers come quickly.
    assert 1860 > _parse_seconds(first) > _parse_seconds(second) > _parse_seconds(third)
    await page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3600000; }")
    await expect(page.locator("#lease-left")).to_contain_text("over for")
    await expect(page.locator("#task-rows .lease")).to_contain_text("lease ended")


def _parse_seconds(text: str) -> int:
    found = re.fullmatch(r"(\d+) min (\d\d) s", text)
    assert found, text
    return 60 * int(found[1]) + int(found[2])


@pytest.mark.req("OQ-189")
async def test_input_and_output_are_trees_that_open_and_close(stage: Stage, visit: Visit) -> None:
    """Branches open and close one by one and all at once; numbers are shown exactly as they were written."""
    text_ = '{"order": {"lines": [{"sku": "A"}, {"sku": "B"}], "big": 123456789012345678901}, "many": ' + (
        f"{list(range(130))}}}"
    )
    task = stage.task(status="Completed", output="done")
    stage.write(f"tasks/3/{task['id']}.json", json.dumps(task).replace('{"to": "ada@example.com"}', text_))
    visitor = await open_task(visit, task)
    tree = visitor.page.locator("#detail-input .tree")
    await expect(tree).to_contain_text("123456789012345678901")
    await expect(tree.get_by_text('"A"')).to_be_hidden()
    await tree.locator("summary", has_text="lines").click()
    await tree.locator("summary", has_text="0:").first.click()
    await expect(tree.get_by_text('"A"')).to_be_visible()
    await tree.locator("summary", has_text="order").click()
    await expect(tree.get_by_text('"A"')).to_be_hidden()
    await visitor.page.click("#detail-input button:has-text('Expand')")
    await expect(tree.get_by_text('"A"')).to_be_visible()
    await tree.locator("summary", has_text="many").click()
    await tree.locator("summary", has_text="many").click()
    await expect(tree.locator("button.link")).to_have_text("Show more (30 left)")
    await tree.locator("button.link").click()
    await expect(tree).to_contain_text("129: 129")
    await visitor.page.click("#detail-input button:has-text('Collapse')")
    await expect(tree.locator("details[open]")).to_have_count(0)
    await expect(visitor.page.locator("#detail-output .tree")).to_have_text('"done"')


@pytest.mark.req("OQ-189", "OQ-008")
async def test_large_data_is_followed_to_its_own_object(stage: Stage, visit: Visit) -> None:
    """The version of the task's reference is read; missing data is reported."""
    task = stage.task(status="Completed", input=None, output=None)
    key = f"data/3/{task['id']}/input.json"
    version = stage.write(key, json.dumps({"rows": "right"}))
    stage.write(key, json.dumps({"rows": "wrong"}))
    missing = {"key": f"data/3/{task['id']}/output.json", "version": None}
    stage.put({**task, "input_ref": {"key": key, "version": version}, "output_ref": missing})
    visitor = await open_task(visit, task)
    await expect(visitor.page.locator("#detail-input .tree")).to_contain_text('"right"')
    await expect(visitor.page.locator("#detail-output")).to_contain_text("The data is gone")


@pytest.mark.req("OQ-189")
async def test_very_large_data_is_read_only_on_request(stage: Stage, visit: Visit) -> None:
    """Its size is shown first."""
    task = stage.task(input=None)
    key = f"data/3/{task['id']}/input.json"
    stage.write(key, json.dumps({"text": "x" * 3_000_000}))
    stage.put({**task, "input_ref": {"key": key, "version": None}})
    visitor = await open_task(visit, task)
    part = visitor.page.locator("#detail-input")
    await expect(part).to_contain_text("This input has 2.9 MB.")
    await part.locator("button", has_text="Read it anyway").click()
    await expect(part.locator(".tree")).to_contain_text("2998002 more characters")


@pytest.mark.req("OQ-191")
async def test_the_timeline_has_every_version(stage: Stage, visit: Visit) -> None:
    """Newest first, with the change of each, and no version of another key."""
    task = stage.add_with_history()
    stage.write(f"tasks/3/{task['id']}.json.copy", "{}")
    visitor = await open_task(visit, task)
    entries = visitor.page.locator("#timeline li")
    await expect(entries).to_have_count(stage.versions(task) - 1)
    assert await entries.locator(".badge").all_text_contents() == [
        "Completed",
        "Running",
        "Pending",
        "Running",
        "Pending",
    ]
    assert await entries.locator("strong").all_text_contents() == [
        "complete",
        "claim",
        "retry",
        "claim",
        "created",
    ]
    await expect(entries.nth(1)).to_contain_text("by worker-1, attempt 2")
    await expect(entries.nth(2)).to_contain_text("no answer")
    await expect(visitor.page.locator("#timeline-count")).to_have_text("5 versions")


async def test_a_long_history_is_read_in_parts(stage: Stage, visit: Visit) -> None:
    """Thirty versions are read at first, older ones on request."""
    task = stage.add()
    for _ in range(39):
        task = stage.update(task)
    visitor = await open_task(visit, task)
    await expect(visitor.page.locator("#timeline li")).to_have_count(30)
    assert len(visitor.requests("GET", "versionId=")) == 31
    await visitor.page.click("#older-versions")
    await expect(visitor.page.locator("#timeline li")).to_have_count(40)
    await expect(visitor.page.locator("#timeline li").last).to_contain_text("created")
    await expect(visitor.page.locator("#older-versions")).to_be_hidden()


@pytest.mark.req("OQ-192")
async def test_two_versions_are_compared_field_by_field(stage: Stage, visit: Visit) -> None:
    """Changes are highlighted, other fields are shown only on request; any two versions may be chosen."""
    first = stage.add(input={"a": 1, "gone": True, "list": [1, 2]})
    second = stage.update(first, input={"a": 2, "new": None, "list": [1, 3]})
    third = stage.update(second, attempt=1)
    visitor = await open_task(visit, third)
    page = visitor.page
    await expect(page.locator("#diff h4")).to_have_text("Version 2 compared with version 3")
    rows = page.locator("#diff tbody tr")
    assert await rows.evaluate_all("all => all.map(row => row.dataset.path)") == [
        "rev",
        "updated_at",
        "attempt",
    ]
    await page.check("[aria-label='Compare version 1']")
    await expect(page.locator("[aria-label='Compare version 3']")).not_to_be_checked()
    await expect(page.locator("#diff h4")).to_have_text("Version 1 compared with version 2")
    kinds = await rows.evaluate_all("all => all.map(row => [row.dataset.path, row.className])")
    assert dict(kinds) == {
        "rev": "changed",
        "updated_at": "changed",
        "input.a": "changed",
        "input.new": "added",
        "input.gone": "removed",
        "input.list[1]": "changed",
    }
    await expect(page.locator('[data-path="input.a"] td')).to_have_text(["1", "2"])
    await page.check("#all-fields")
    await expect(page.locator('[data-path="task_type"]')).to_have_class("same")
    await page.uncheck("[aria-label='Compare version 1']")
    await expect(page.locator("#diff")).to_have_text("Choose two versions to compare.")


@pytest.mark.req("OQ-198")
async def test_a_refresh_keeps_the_open_task(stage: Stage, visit: Visit) -> None:
    """A refresh with changes keeps the open task, the open branches, the scrolling and the focus."""
    tasks = [stage.add(status="Completed") for _ in range(24)]
    task = stage.add(input={"deep": {"deeper": {"list": list(range(40))}}, "x": list(range(20))})
    visitor = await open_task(visit, task)
    page = visitor.page
    await visitor.pause()
    tree = page.locator("#detail-input .tree")
    await tree.locator("summary", has_text="x:").click()
    await page.evaluate("document.querySelector('#detail').scrollTop = 333")
    await page.evaluate("document.querySelector('.list').scrollTop = 222")
    top = f"document.querySelector('tr[data-key=\"{tasks[18]['id']}\"]').getBoundingClientRect().top"
    before = await page.evaluate(top)
    await page.focus("#detail-input summary")
    stage.update(task, retry_count=1, last_error="anew")
    stage.update(tasks[5], attempt=7)
    await page.keyboard.press("r")
    await expect(page.locator("#timeline li")).to_have_count(2)
    await page.wait_for_selector("#refresh:not(.busy)")
    # The browser scrolls to where the reader was when it draws the next time.
    await page.wait_for_function("document.querySelector('.list').scrollTop >= 222")
    # The text under the eye stays in place, also when rows are reordered.
    await page.wait_for_function(f"Math.abs({top} - {before}) < 5")
    await page.wait_for_function("Math.abs(document.querySelector('#detail').scrollTop - 333) < 120")
    await expect(tree.locator("summary", has_text="x:").locator("..")).to_have_attribute("open", "")
    await expect(page.locator("#detail-input summary").first).to_be_focused()
    await expect(page.locator("[data-field=retry_count] dd")).to_have_text("1")


@pytest.mark.req("OQ-197")
async def test_it_refreshes_by_itself_and_can_be_paused(stage: Stage, visit: Visit) -> None:
    """Every five seconds, or every ten on request; not at all while it is paused."""
    visitor = await visit("#shard=3", connect=False, alone=True)
    page = visitor.page
    await page.clock.install()
    await page.reload()
    # From here on its time passes only when the test says so.
    await page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=5))
    variables = stage.bucket.variables
    await page.fill("[name=address]", stage.address)
    await page.fill("[name=key]", variables["AWS_ACCESS_KEY_ID"])
    await page.fill("[name=secret]", variables["AWS_SECRET_ACCESS_KEY"])
    await page.click("#connect-button")
    await page.wait_for_selector("#no-tasks:not([hidden])")
    assert await page.locator("#interval option").evaluate_all("all => all.map(one => one.value)") == [
        "5",
        "8",
        "10",
    ]

    async def count_lists(seconds: int) -> int:
        await page.wait_for_selector("#refresh:not(.busy)")
        visitor.requested.clear()
        for _ in range(seconds):
            await page.clock.run_for(1000)
            await page.wait_for_selector("#refresh:not(.busy)")
        return len(visitor.lists())

    assert await count_lists(16) == 3
    await page.select_option("#interval", "10")
    assert await count_lists(21) == 2
    await page.keyboard.press("Escape")
    await page.click("#pause")
    assert await count_lists(30) == 0
    await expect(page.locator("#age")).to_contain_text("Paused")
    await page.click("#pause")
    await expect(page.locator("#pause")).to_have_attribute("aria-pressed", "false")
