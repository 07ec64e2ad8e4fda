"""One browser and one tab for the tests of a process: each loads the page anew, for a bucket of its own."""

from __future__ import annotations

import json
import mimetypes
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright, expect

from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from runtime.stores.s3.bucket.page_files import page_files
from tests.support.browser import FLAGS, find_browser
from tests.support.objectqueue.page_stage import Stage, Visit, Visitor
from tests.support.s3.fixtures import Bucket, make_bucket
from tests.support.s3.proxy import S3Proxy

PATIENCE_MS = 60_000
NAMES = "--host-resolver-rules=MAP *.test 127.0.0.1"
"""Names that are not loopback to a browser, so that it treats them like any other place on plain http."""
USUAL: dict[str, Any] = {"viewport": {"width": 1360, "height": 860}, "reduced_motion": "reduce"}
ENTER = """told => {
  const { elements } = document.getElementById("connect-form");
  for (const [name, value] of Object.entries(told)) elements[name].value = value;
  document.getElementById("connect-button").click();
}"""


@pytest_asyncio.fixture(loop_scope="session", scope="package")
async def browser() -> AsyncIterator[Browser]:
    """A headless Chromium."""
    found = find_browser()
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        environment: dict[str, str | float | bool] = {**os.environ, **found.variables}
        browser = await playwright.chromium.launch(
            executable_path=found.program, args=[*FLAGS, NAMES], env=environment, timeout=2 * PATIENCE_MS
        )
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session", scope="package")
async def tab(browser: Browser) -> AsyncIterator[Page]:
    """The tab that most visitors use one after the other."""
    context = await browser.new_context(**USUAL)
    context.set_default_timeout(PATIENCE_MS)
    yield await context.new_page()
    await context.close()


@pytest.fixture(scope="package")
def home(s3_raw: Any, s3_server: EmbeddedSeaweedfs) -> Iterator[str]:
    """Where the page is for most tests: a bucket that has nothing else."""
    name = f"page{os.getpid()}"
    make_bucket(s3_raw, name)
    for file, path in page_files("objectqueue").items():
        kind = mimetypes.guess_type(file)[0] or ""
        # Cached, so that the visits of all tests load the files once.
        options = {"ContentType": kind, "CacheControl": "max-age=600"}
        s3_raw.put_object(Bucket=name, Key=f"ui/{file}", Body=path.read_bytes(), **options)
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": ["s3:GetObject"],
        "Resource": [f"arn:aws:s3:::{name}/ui/*"],
    }
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    s3_raw.put_bucket_policy(Bucket=name, Policy=json.dumps(policy))
    yield f"{s3_server.url}/{name}/ui/index.html"


@pytest.fixture
def stage(bucket: Bucket) -> Stage:
    """A bucket for tasks."""
    return Stage(bucket)


@pytest_asyncio.fixture(loop_scope="session")
async def visit(
    browser: Browser, tab: Page, home: str, stage: Stage, s3_server: EmbeddedSeaweedfs
) -> AsyncIterator[Visit]:
    """Open the page; at the end no visitor may have met an error of the code."""
    visitors: list[Visitor] = []

    async def visiting(
        place: str = "",
        *,
        key: tuple[str, str] | None = None,
        address: str | None = None,
        page: str = home,
        through: S3Proxy | None = None,
        connect: bool = True,
        alone: bool = False,
        **options: Any,
    ) -> Visitor:
        if through is not None:
            page = page.replace(s3_server.url, through.url)
            address = stage.address.replace(s3_server.url, through.url)
        page_of_its_own = await _open_alone(browser, options) if alone or options else None
        if page_of_its_own is None:
            for earlier in visitors:
                await earlier.detach()
        visitor = _Listening(page_of_its_own or tab)
        visitors.append(visitor)
        await visitor.page.goto("about:blank")
        await visitor.page.set_viewport_size(USUAL["viewport"])
        await visitor.page.goto(page + place)
        await visitor.page.wait_for_selector("#connect-form[data-ready]")
        if connect:
            name, secret = key or (s3_server.access_key, s3_server.secret_key)
            await visitor.page.evaluate(
                ENTER, {"address": address or stage.address, "key": name, "secret": secret}
            )
            await visitor.page.wait_for_selector("#age:has-text('Read')", state="attached")
        return visitor

    yield visiting
    await tab.goto("about:blank")
    for visitor in visitors:
        await visitor.detach()
        if visitor.page is not tab:
            await visitor.page.context.close()
    assert [problem for visitor in visitors for problem in visitor.problems] == []


async def _open_alone(browser: Browser, options: dict[str, Any]) -> Page:
    """A tab of a browser profile of its own."""
    context = await browser.new_context(**{**USUAL, **options})
    context.set_default_timeout(PATIENCE_MS)
    return await context.new_page()


class _Listening(Visitor):
    """A visitor that records the events of the tab from now on, until it detaches."""

    def __init__(self, page: Page) -> None:
        super().__init__(page)
        self._listeners: dict[str, Any] = {
            "console": self._on_console,
            "pageerror": self._on_error,
            "request": self._on_request,
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)  # type: ignore[call-overload]

    async def detach(self) -> None:
        while self._listeners:
            self.page.remove_listener(*self._listeners.popitem())

    def _on_console(self, message: ConsoleMessage) -> None:
        # The browser itself notes every answer that says no; those are the page's to explain.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            self.problems.append(message.text)

    def _on_error(self, error: Exception) -> None:
        self.problems.append(str(error))

    def _on_request(self, request: Request) -> None:
        self.requested.append(request)
