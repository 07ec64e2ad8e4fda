"""The list of the tasks of a shard."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from playwright.async_api import expect

from runtime.stores.s3.bucket.bucket_settings import allow_anonymous_reads
from runtime.stores.s3.bucket.page_files import deploy_page
from runtime.stores.s3.client.objects import Objects
from tests.support.deep import DEEP
from tests.support.objectqueue.page_stage import Stage, Visit, format_soon
from tests.support.s3.proxy import S3Proxy

pytestmark = pytest.mark.asyncio(loop_scope="session")
SHARDS = list("0123456789abcdef")
MANY = 5000 if DEEP else 1100
"""Several pages of keys in any case."""
STATES = ("Pending", "Running", "Completed", "Failed", "Archived")


@pytest.mark.req("OQ-179", "OQ-180", "OQ-009", "OQ-260")
async def test_the_page_comes_from_the_bucket_and_calls_no_other_host(stage: Stage, visit: Visit) -> None:
    """Only the store is called, for the page itself and for its data; there is no other server."""
    await deploy_page("objectqueue", stage.bucket.location)
    objects = Objects(stage.bucket.location)
    await allow_anonymous_reads(objects, "ui/")
    await objects.close()
    task = stage.add()
    visitor = await visit("#shard=3", page=f"{stage.address}/ui/index.html", connect=False)
    assert await visitor.page.input_value("#field-address") == stage.address
    await visitor.page.fill("[name=key]", stage.bucket.variables["AWS_ACCESS_KEY_ID"])
    await visitor.page.fill("[name=secret]", stage.bucket.variables["AWS_SECRET_ACCESS_KEY"])
    await visitor.page.keyboard.press("Enter")
    await visitor.page.click(f'tr[data-key="{task["id"]}"]')
    await visitor.page.wait_for_selector("#timeline li")
    await visitor.page.click("#views a[data-view=workers]")
    await visitor.page.wait_for_selector("#no-workers:not([hidden])")
    await visitor.page.click("#views a[data-view=lifecycle]")
    await visitor.page.wait_for_selector("#states li")
    assert [request.url for request in visitor.requested if not request.url.startswith(stage.address)] == []


@pytest.mark.req("OQ-076", "OQ-181")
async def test_one_shard_is_listed_at_a_time(stage: Stage, visit: Visit) -> None:
    """The selector has the sixteen shards, and the list has the tasks of the chosen one only."""
    tasks = {shard: stage.add(shard)["id"] for shard in ("0", "3", "f")}
    visitor = await visit()
    options = visitor.page.locator("#shard option")
    assert await options.all_text_contents() == SHARDS
    assert await options.evaluate_all("all => all.map(one => one.value)") == SHARDS
    for shard, task_id in tasks.items():
        await visitor.page.select_option("#shard", shard)
        await expect(visitor.page.locator(f'tr[data-key="{task_id}"]')).to_be_visible()
        assert await visitor.ids() == [task_id]
    await visitor.page.click("#shard-after")
    await expect(visitor.page.locator("#shard")).to_have_value("0")
    await visitor.page.click("#shard-before")
    await expect(visitor.page.locator("#shard")).to_have_value("f")


@pytest.mark.req("OQ-182")
async def test_the_last_change_is_first(stage: Stage, visit: Visit) -> None:
    """The list is in the order of `updated_at`; a task that changes goes to its top."""
    tasks = [stage.add(status="Failed") for _ in range(4)]
    visitor = await visit("#shard=3")
    await expect(visitor.page.locator("#task-rows tr")).to_have_count(4)
    assert await visitor.ids() == [task["id"] for task in reversed(tasks)]
    stage.update(tasks[1], last_error="once more")
    await visitor.refresh()
    await expect(visitor.page.locator("#task-rows tr").first).to_have_attribute("data-key", tasks[1]["id"])
    await visitor.page.click("th[data-sort=updated] button")
    await expect(visitor.page.locator("#task-rows tr").first).to_have_attribute("data-key", tasks[0]["id"])
    await expect(visitor.page.locator("th[data-sort=updated]")).to_have_attribute("aria-sort", "ascending")


async def test_rows_can_be_sorted_by_other_columns(stage: Stage, visit: Visit) -> None:
    """A click on a heading sorts by it, a second one in the reverse order."""
    for name in ("b", "c", "a"):
        stage.add(task_type=name)
    visitor = await visit("#shard=3")
    types = visitor.page.locator("#task-rows .task-type")
    await expect(types).to_have_text(["a", "c", "b"])
    await visitor.page.click("th[data-sort=type] button")
    await expect(types).to_have_text(["a", "b", "c"])
    await visitor.page.click("th[data-sort=type] button")
    await expect(types).to_have_text(["c", "b", "a"])
    await visitor.page.click("th[data-sort=updated] button")
    await expect(types).to_have_text(["a", "c", "b"])


@pytest.mark.req("OQ-183", "OQ-170", "OQ-185")
async def test_every_filter_reads_the_right_index(stage: Stage, visit: Visit) -> None:
    """Active tasks come from their index and ended ones from a scan; archived ones only on request."""
    tasks = {state: stage.add(status=state)["id"] for state in STATES}
    visitor = await visit("#shard=3")
    await visitor.pause()
    prefixes = {"Pending": "ready%2F3%2F", "Running": "leases%2F3%2F"}
    for state in STATES:
        await visitor.page.wait_for_selector("#refresh:not(.busy)")
        visitor.requested.clear()
        await visitor.page.click(f"#filters label:has-text('{state}')")
        await expect(visitor.page.locator("#task-rows tr")).to_have_count(1)
        await expect(visitor.page.locator(f'tr[data-key="{tasks[state]}"] .badge')).to_have_text(state)
        # Now and then it reads the types of the workers, too.
        assert set(visitor.lists()) - {"workers%2F"} == {prefixes.get(state, "tasks%2F3%2F")}
    await visitor.page.click("#filters label:has-text('All')")
    await expect(visitor.page.locator("#task-rows tr")).to_have_count(5)
    await visitor.page.click("#filters label:has-text('Current')")
    await expect(visitor.page.locator("#task-rows tr")).to_have_count(4)
    assert tasks["Archived"] not in await visitor.ids()


async def test_entries_of_an_index_are_only_hints(stage: Stage, visit: Visit) -> None:
    """An entry whose task is missing or in another state is not shown; the page does not remove it."""
    stage.add()
    stage.write(f"ready/3/0000000001/{stage.task()['id']}", "{}")
    completed = stage.add(status="Completed")
    stage.write(f"ready/3/0000000001/{completed['id']}", "{}")
    visitor = await visit("#shard=3&state=pending")
    await expect(visitor.page.locator("#task-rows tr")).to_have_count(1)
    await visitor.refresh()
    assert len(stage.keys("ready/")) == 3


@pytest.mark.req("OQ-184")
async def test_a_pending_task_shows_when_it_is_due(stage: Stage, visit: Visit) -> None:
    """So that a backoff can be seen, with its end."""
    stage.add(available_at=format_soon(9000), retry_count=2, last_error="no answer")
    stage.add(available_at=format_soon(-30))
    visitor = await visit("#shard=3")
    lines = visitor.page.locator("#task-rows .available")
    await expect(lines.first).to_contain_text(re.compile(r"available \d+ (s|min) ago \(\d+:\d\d:\d\d"))
    await expect(lines.last).to_contain_text("backs off, available in 2 h")
    await expect(lines.last).to_have_attribute("data-waits", "yes")
    await expect(visitor.page.locator("#task-rows .error-line")).to_have_text("no answer")


async def _write_many(stage: Stage, shard: str, count: int) -> None:
    """Write many completed tasks quickly."""
    objects = Objects(stage.bucket.location)
    waiting = [stage.task(shard, status="Completed") for _ in range(count)]

    async def writer() -> None:
        while waiting:
            task = waiting.pop()
            await objects.put(f"tasks/{shard}/{task['id']}.json", json.dumps(task).encode())

    await asyncio.gather(*[writer() for _ in range(16)])
    await objects.close()


@pytest.mark.req("OQ-186", "OQ-201")
async def test_thousands_of_tasks_do_not_freeze_the_page(stage: Stage, visit: Visit) -> None:
    """The first rows are there after one listing, pages can be turned, and a refresh reads little."""
    # It is written first, and is first among those of the same second, which is the precision of the store.
    rare = stage.add("7", status="Failed", id="70000000-0000-4000-8000-000000000000")
    await _write_many(stage, "7", MANY - 1)
    visitor = await visit("#shard=0")
    await visitor.pause()
    visitor.requested.clear()
    await visitor.go("#shard=7")
    await visitor.page.wait_for_selector("#task-rows tr")
    # The first rows were read first; the number of other tasks makes no difference to that.
    assert len(visitor.requests("GET", "tasks/7/")) <= 2 * 26
    await expect(visitor.page.locator("#known")).to_have_text(f"{MANY:,} in this shard")
    await visitor.page.wait_for_selector("#refresh:not(.busy)")
    assert len(visitor.lists()) == -(-MANY // 1000)
    assert len(visitor.requests("GET", "tasks/7/")) <= 2 * 26
    first = await visitor.ids()
    assert len(first) == 25
    await visitor.page.click("#older")
    await expect(visitor.page.locator("#page-number")).to_have_text(re.compile("^26.50$"))
    assert not set(first) & set(await visitor.ids())
    visitor.requested.clear()
    await visitor.refresh()
    assert (len(visitor.lists()), len(visitor.requests("GET", "tasks/7/"))) == (1, 0)
    await visitor.go("#shard=7&state=failed")
    await expect(visitor.page.locator("#looked")).to_contain_text(f"of {MANY:,} tasks")
    assert len(visitor.requests("GET", "tasks/7/")) < 450
    await visitor.page.click("th[data-sort=updated] button")
    await expect(visitor.page.locator("#task-rows tr")).to_have_attribute("data-key", rare["id"])


@pytest.mark.req("OQ-201")
async def test_a_refresh_is_one_list_and_reads_the_changes(stage: Stage, visit: Visit) -> None:
    """Tasks that are unchanged are not read again; neither is anything in other shards."""
    tasks = [stage.add(status="Completed") for _ in range(20)]
    stage.add("4")
    visitor = await visit("#shard=3")
    await visitor.pause()
    await expect(visitor.page.locator("#task-rows tr")).to_have_count(20)
    stage.update(tasks[3])
    visitor.requested.clear()
    await visitor.refresh()
    assert [request.url.partition("?")[0].rpartition("/")[2] for request in visitor.requested] == [
        "",
        f"{tasks[3]['id']}.json",
    ]


async def test_a_filter_with_few_results_scans_further_on_request(stage: Stage, visit: Visit) -> None:
    """It stops after two hundred tasks, says so, and continues on request."""
    # It was written first; of those of the same second, which is the precision of the store, it comes last.
    stage.add("5", status="Failed", id="5fffffff-ffff-4fff-bfff-ffffffffffff")
    await _write_many(stage, "5", 240)
    visitor = await visit("#shard=5&state=failed")
    await expect(visitor.page.locator("#looked")).to_contain_text("of 241 tasks")
    await visitor.page.click("#look-further")
    await expect(visitor.page.locator("#task-rows tr")).to_have_count(1)
    await expect(visitor.page.locator("#look-further")).to_be_hidden()


async def test_objects_that_are_no_tasks_are_listed_as_such(stage: Stage, visit: Visit) -> None:
    """They are listed with the reason, open as text, and hide nothing else."""
    stage.write("tasks/3/3-broken.json", '{"id": "3-broken", oops <b>')
    stranger = stage.task()
    stage.write(f"tasks/3/{stranger['id']}.json", json.dumps({**stranger, "status": "Sleeping"}))
    good = stage.add()
    visitor = await visit("#shard=3")
    await expect(visitor.page.locator("#task-rows tr")).to_have_count(3)
    row = visitor.page.locator('tr[data-key="3-broken"]')
    await expect(row.locator(".badge")).to_have_text("Corrupt")
    await expect(row.locator(".error-line")).to_contain_text("it is no JSON")
    await expect(visitor.page.locator(f'tr[data-key="{stranger["id"]}"]')).to_contain_text('"Sleeping"')
    await row.click()
    await expect(visitor.page.locator("#detail-raw")).to_have_text('{"id": "3-broken", oops <b>')
    await expect(visitor.page.locator("#detail-say")).to_contain_text("This object is not a task")
    await visitor.page.click(f'tr[data-key="{good["id"]}"]')
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Pending")


async def test_a_queue_below_a_prefix_is_isolated(stage: Stage, visit: Visit) -> None:
    """With a prefix the page sees the tasks below it, and only those; actions write below it too."""
    stage.add()
    other = Stage(stage.bucket, "team-a/")
    task = other.add(status="Failed")
    visitor = await visit("?queue=team-a#shard=3")
    await expect(visitor.page.locator("#task-rows tr")).to_have_count(1)
    await expect(visitor.page.locator("#place")).to_contain_text("queue team-a")
    await visitor.page.click(f'tr[data-key="{task["id"]}"]')
    # A refresh of its own might show the task before its entry is written.
    await visitor.pause()
    await visitor.act("Replay")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Pending")
    assert other.read(task)["status"] == "Pending"
    assert len(other.keys("ready/")) == 1


@pytest.mark.req("OQ-105", "OQ-201")
async def test_a_task_that_no_active_worker_runs_has_a_hint(stage: Stage, visit: Visit) -> None:
    """Not one that is delayed anyway, nor one of a type that is run; such a worker ends the hint."""
    unserved = stage.add(task_type="send_email")["id"]
    later = stage.add(task_type="send_email", available_at=format_soon(3600))["id"]
    served = stage.add(task_type="resize")["id"]
    stage.worker("live", silent_s=-3600, task_types=["resize"])
    stage.worker("dead", silent_s=3600, task_types=["send_email"])
    visitor = await visit("#shard=3")
    hints = visitor.page.locator("#task-rows .unserved")
    await expect(hints).to_have_text(["No active worker runs send_email."])
    await expect(visitor.page.locator(f'tr[data-key="{unserved}"] .unserved')).to_be_visible()
    for other in (later, served):
        await expect(visitor.page.locator(f'tr[data-key="{other}"]')).to_be_visible()
    await visitor.pause()
    visitor.requested.clear()
    for _ in range(6):
        await visitor.refresh()
    assert visitor.lists().count("workers%2F") == 1
    await expect(hints).to_have_count(1)
    stage.worker("new", silent_s=-3600, task_types=["send_email"])
    for _ in range(6):
        await visitor.refresh()
    await expect(hints).to_have_count(0)


async def test_without_permission_to_read_workers_there_is_no_hint(
    stage: Stage, visit: Visit, s3_proxy: S3Proxy
) -> None:
    """And no error either."""
    task = stage.add(task_type="send_email")["id"]
    s3_proxy.rule(kind="GetObject", key="workers/", status=403, times=None)
    stage.worker("live", silent_s=-3600, task_types=["resize"])
    visitor = await visit("#shard=3", through=s3_proxy)
    await expect(visitor.page.locator(f'tr[data-key="{task}"]')).to_be_visible()
    await visitor.refresh()
    await expect(visitor.page.locator("#task-rows .unserved")).to_have_count(0)
    await expect(visitor.page.locator("#banner")).to_be_empty()
