"""Accessibility and appearance: keyboard, phone, screen reader, light and dark."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.async_api import Page, expect

from tests.support.objectqueue.page_stage import Stage, Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
NAMELESS = """() => [...document.querySelectorAll('button, a, input, select')]
  .filter(one => one.checkVisibility())
  .filter(one => !(one.innerText || one.ariaLabel || one.labels?.length || one.title).toString().trim())
  .map(one => one.outerHTML.slice(0, 80))"""
OUTLINED = """() => [document.activeElement, document.activeElement.nextElementSibling]
  .some(one => one && getComputedStyle(one).outlineStyle !== 'none')"""
CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const over = (colour, below) => {
    canvas.fillStyle = `rgb(${below})`; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = colour => colour.map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const below = one => one.parentElement ? ground(one.parentElement) : [255, 255, 255];
  const ground = one => over(getComputedStyle(one).backgroundColor, below(one));
  const poor = new Set();
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || !one.checkVisibility() || one.closest(':disabled, .off-screen, .skip, option')) continue;
    const around = ground(one);
    const [text, back] = [light(over(getComputedStyle(one).color, around)), light(around)];
    const ratio = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
    if (ratio < 4.5) poor.add(`${one.outerHTML.slice(0, 60)} ${ratio.toFixed(2)}`);
  }
  return [...poor];
}"""


async def _overflow(page: Page) -> int:
    """By how much the page is wider than its window."""
    return int(await page.evaluate("document.documentElement.scrollWidth - innerWidth"))


async def _list_problems(stage: Stage, visit: Visit, width: int, height: int) -> list[str]:
    """Visit all views; list elements that are too wide, have no accessible name, or too little contrast."""
    task = stage.add_with_history(input={"long": "x" * 300, "deep": {"list": [1, None, True]}})
    stage.add(status="Failed", task_type="a_type_with_a_very_long_name_" * 4)
    stage.add(status="Running")
    stage.add(status="Archived")
    stage.write("tasks/3/3-broken.json", "no task")
    stage.worker("alive-with-a-long-name-" * 3, current_task=task["id"], current_tasks=[task["id"]])
    stage.worker("stale", silent_s=100)
    found: list[str] = []
    visitor = await visit("#shard=3")
    page = visitor.page
    await page.click("#pause")
    await page.set_viewport_size({"width": width, "height": height})
    for place, sign in (
        ("#shard=3", "#task-rows tr"),
        (f"#shard=3&state=all&task={task['id']}", "#diff tbody tr"),
        ("#view=workers", ".worker"),
        ("#view=lifecycle", "#states li"),
    ):
        await visitor.go(place)
        await page.wait_for_selector(sign)
        await page.wait_for_selector("#refresh:not(.busy)", state="attached")
        if (wide := await _overflow(page)) > 0:
            found.append(f"{place} is {wide} pixels too wide")
        found += [f"{place}: no name: {one}" for one in await page.evaluate(NAMELESS)]
        for scheme in SCHEMES:
            await page.emulate_media(color_scheme=scheme)
            found += [f"{place} {scheme}: contrast: {one}" for one in await page.evaluate(CONTRAST)]
    return found


async def test_everything_can_be_read_on_a_laptop(stage: Stage, visit: Visit) -> None:
    """Light and dark: texts stand out from their ground, controls have names, nothing is too wide."""
    assert await _list_problems(stage, visit, 1280, 800) == []


async def test_everything_can_be_read_on_a_phone(stage: Stage, visit: Visit) -> None:
    """The same on a small screen, where the open task covers the list."""
    assert await _list_problems(stage, visit, 360, 740) == []


async def test_a_keyboard_is_enough(stage: Stage, visit: Visit) -> None:
    """From the form to an action and back, without a pointer; the focus is visible."""
    task = stage.add(status="Failed")
    visitor = await visit("#shard=3", connect=False)
    page, keys = visitor.page, visitor.page.keyboard
    variables = stage.bucket.variables
    await page.focus("#field-address")
    await keys.press("ControlOrMeta+a")
    await keys.type(stage.address)
    for text in ("", "", variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"]):
        await keys.press("Tab")
        await keys.type(text)
    await keys.press("Enter")
    row = page.locator("#task-rows a")
    await expect(row).to_be_visible()
    for _ in range(40):
        if await row.evaluate("one => one === document.activeElement"):
            break
        await keys.press("Tab")
        assert await page.evaluate(OUTLINED), await page.evaluate("document.activeElement.outerHTML")
    await keys.press("Enter")
    await expect(page.locator("#detail-close")).to_be_focused()
    await page.wait_for_selector("#detail-actions button")
    for _ in range(2):
        await keys.press("Tab")
    await expect(page.locator('[data-action="Replay"]')).to_be_focused()
    await keys.press("Enter")
    await expect(page.locator("#confirm-yes")).to_be_focused()
    await keys.press("Escape")
    await expect(page.locator("#confirm")).to_be_hidden()
    await expect(page.locator("#detail")).to_be_visible()
    await keys.press("Enter")
    await expect(page.locator("#confirm-yes")).to_be_focused()
    await keys.press("Enter")
    await expect(page.locator("#detail-badge")).to_have_text("Pending")
    assert stage.read(task)["status"] == "Pending"
    await keys.press("Escape")
    await expect(page.locator("#detail")).to_be_hidden()
    await keys.press("p")
    await expect(page.locator("#pause")).to_have_attribute("aria-pressed", "true")
    await page.wait_for_selector("#refresh:not(.busy)")
    visitor.requested.clear()
    await keys.press("r")
    await page.wait_for_selector("#refresh:not(.busy)")
    # At one refresh in six it lists the workers, too.
    assert [each for each in visitor.lists() if each != "workers%2F"] == ["tasks%2F3%2F"]


async def test_colours_can_be_chosen(stage: Stage, visit: Visit) -> None:
    """The system's choice at first, then light, then dark; the drawing of the lifecycle goes with it."""
    visitor = await visit("#view=lifecycle")
    page = visitor.page
    await page.emulate_media(color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(ground)
    await page.click("#theme")
    assert await page.evaluate(ground) == light
    await page.click("#theme")
    assert await page.evaluate(ground) != light
    await expect(page.locator("#theme")).to_have_attribute("aria-label", "Colours: dark")
    await page.wait_for_function("document.querySelector('#lifecycle-view img').naturalWidth > 300")


async def test_the_lifecycle_is_the_one_of_the_spec(stage: Stage, visit: Visit) -> None:
    """Every state with its words, and every edge from it with its actors."""
    visitor = await visit("#view=lifecycle")
    states = visitor.page.locator("#states > li")
    assert await states.locator(".state-head .badge").all_text_contents() == [
        "Pending",
        "Running",
        "Completed",
        "Failed",
        "Archived",
    ]
    await expect(states.nth(0)).to_contain_text("It waits for a worker")
    await expect(states.nth(1)).to_contain_text("retry → Pending by worker, monitor")
    await expect(states.nth(3)).to_contain_text("Replay → Pending by client, page")
