"""Access to the page: how it stores a key, and its errors where permission is missing."""

from __future__ import annotations

import http.server
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from runtime.stores.s3.bucket.page_files import page_files
from runtime.stores.s3.bucket.page_links import lend_page
from tests.support.objectqueue.page_stage import Stage, Visit
from tests.support.s3.fixtures import READER
from tests.support.s3.proxy import S3Proxy
from tests.support.s3.requests import Rule

pytestmark = pytest.mark.asyncio(loop_scope="session")
PROBLEM = "#connect-problem"


@pytest.mark.req("OQ-199")
async def test_a_key_is_stored_in_memory_only(stage: Stage, visit: Visit) -> None:
    """It is in no file, no storage, no address and no field; a reload asks for it again."""
    stage.add()
    visitor = await visit("#shard=3")
    page = visitor.page
    await page.wait_for_selector("#task-rows tr")
    secret = stage.bucket.variables["AWS_SECRET_ACCESS_KEY"]
    assert await page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    assert await page.evaluate("indexedDB.databases().then(all => all.length)") == 0
    assert await page.evaluate("caches.keys().then(all => all.length)") == 0
    assert secret not in await page.content()
    assert secret not in page.url
    assert [request.url for request in visitor.requested if secret in request.url] == []
    assert [
        name for request in visitor.requested for name, text in request.headers.items() if secret in text
    ] == []
    await page.reload()
    await expect(page.locator("#connect-form")).to_be_visible()
    await expect(page.locator("[name=secret]")).to_have_value("")
    await expect(page.locator("#app")).to_be_hidden()


@pytest.mark.req("OQ-199")
async def test_no_file_of_the_page_has_a_key_or_loads_from_elsewhere() -> None:
    """No key, no inline script or style, nothing from elsewhere, nothing that turns text into markup."""
    texts = {name: path.read_text(encoding="utf-8") for name, path in page_files("objectqueue").items()}
    for name, text in texts.items():
        assert "AKIA" not in text
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "localStorage",
        ):
            assert word not in text, (name, word)
    index = texts["index.html"]
    assert " style=" not in index
    assert " onclick=" not in index
    assert "<script>" not in index
    assert 'src="http' not in index and 'href="http' not in index
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in index


@pytest.mark.req("OQ-200", "OQ-251")
async def test_a_wrong_key_a_wrong_secret_and_a_wrong_bucket_differ(stage: Stage, visit: Visit) -> None:
    """Each has a sentence of its own, and the form stays as it was filled in."""
    visitor = await visit(connect=False)
    page = visitor.page
    variables = stage.bucket.variables
    good = (stage.address, variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"])
    cases = [
        ((good[0], "NOBODY", good[2]), "The access key is not known here"),
        ((good[0], good[1], "wrong"), "The secret key does not fit the access key"),
        ((good[0] + "-none", good[1], good[2]), "There is no such bucket"),
        (("http://127.0.0.1:9/none", good[1], good[2]), "no answer"),
    ]
    for (address, key, secret), sentence in cases:
        await page.fill("[name=address]", address)
        await page.fill("[name=key]", key)
        await page.fill("[name=secret]", secret)
        await page.click("#connect-button")
        await expect(page.locator(PROBLEM)).to_contain_text(sentence)
        await expect(page.locator("#connect-button")).to_be_enabled()
        assert await page.input_value("[name=key]") == key
    await page.fill("[name=address]", good[0])
    await page.click("#connect-button")
    await expect(page.locator("#app")).to_be_visible()


async def test_pasted_lines_fill_in_the_form(stage: Stage, visit: Visit) -> None:
    """Lines for a shell, or the JSON of a token service: each part goes where it belongs, the token too."""
    visitor = await visit("?region=eu-west-3&queue=team", connect=False)
    page = visitor.page
    assert [await page.input_value(f"[name={name}]") for name in ("region", "queue")] == ["eu-west-3", "team"]
    paste = """text => {
      const data = new DataTransfer();
      data.setData("text", text);
      const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
      document.querySelector("[name=key]").dispatchEvent(event);
    }"""
    names = ("key", "secret", "token")
    text = (
        '{"Credentials": {"AccessKeyId": "ASIA1", "SecretAccessKey": "s3/+x=", "SessionToken": "t0k/en=="}}'
    )
    await page.evaluate(paste, text)
    assert [await page.input_value(f"[name={name}]") for name in names] == ["ASIA1", "s3/+x=", "t0k/en=="]
    await page.evaluate(
        paste, "export AWS_ACCESS_KEY_ID=A2\nexport AWS_SECRET_ACCESS_KEY='b/2'\nS3_REGION=us-west-2"
    )
    assert [await page.input_value(f"[name={name}]") for name in ("key", "secret", "region")] == [
        "A2",
        "b/2",
        "us-west-2",
    ]
    await page.fill("[name=address]", stage.address)
    await page.click("#connect-button")
    await expect(page.locator(PROBLEM)).to_contain_text("The access key is not known here")
    sent = [request.headers for request in visitor.requested if "list-type=2" in request.url]
    assert {headers["x-amz-security-token"] for headers in sent} == {"t0k/en=="}
    assert all("x-amz-security-token" in headers["authorization"] for headers in sent)


@pytest.mark.req("OQ-199")
async def test_a_presigned_page_opens_in_a_private_bucket(stage: Stage, visit: Visit) -> None:
    """Every part has an address of its own; none has a secret, and the page asks for a key as always."""
    stage.add()
    place = replace(stage.bucket.location, prefix="elsewhere/")
    url = await lend_page("objectqueue", place, 300)
    await lend_page("objectqueue", place, 1)  # another one does not invalidate the first
    for part in ("index.html", "app.js", "lent.html"):
        with pytest.raises(OSError, match="403"):
            urllib.request.urlopen(f"{stage.address}/ui/{part}")
    visitor = await visit("#shard=3", page=url, connect=False)
    page = visitor.page
    await expect(page.locator("[name=queue]")).to_have_value("elsewhere")
    await expect(page.locator("[name=address]")).to_have_value(stage.address)
    await page.fill("[name=queue]", "")
    key = stage.bucket.variables
    await page.fill("[name=key]", key["AWS_ACCESS_KEY_ID"])
    await page.fill("[name=secret]", key["AWS_SECRET_ACCESS_KEY"])
    await page.click("#connect-button")
    await page.wait_for_selector("#task-rows tr")
    await visitor.go("#view=lifecycle")
    drawn = "document.querySelector('#lifecycle-view img')"
    await page.wait_for_function(f"{drawn}.complete && {drawn}.naturalWidth > 0")
    of_page = [request.url for request in visitor.requested if "/ui/" in request.url]
    assert len(of_page) > len(page_files("objectqueue")) - 2
    assert all("X-Amz-Signature=" in each for each in of_page)
    assert not any(key["AWS_SECRET_ACCESS_KEY"] in each for each in of_page)


@pytest.mark.req("OQ-200")
async def test_a_read_only_key_shows_all_and_changes_nothing(stage: Stage, visit: Visit) -> None:
    """Lists, details and history work; an action says which permission is missing."""
    task = stage.add(status="Failed")
    stage.worker("one")
    visitor = await visit(f"#shard=3&task={task['id']}", key=READER)
    page = visitor.page
    await page.wait_for_selector("#task-rows tr")
    await page.wait_for_selector("#timeline li")
    await visitor.act("Replay")
    await expect(page.locator("#detail-say")).to_contain_text("Not allowed to replay this task")
    await expect(page.locator("#detail-say")).to_contain_text("s3:PutObject")
    assert stage.versions(task) == 1
    await visitor.go("#view=workers")
    await expect(page.locator(".worker")).to_have_count(1)


@pytest.mark.req("OQ-200")
async def test_a_missing_permission_is_shown(stage: Stage, visit: Visit, s3_proxy: S3Proxy) -> None:
    """The list keeps its rows; the history alone may be missing; with it the message disappears."""
    task = stage.add()
    visitor = await visit(f"#shard=3&task={task['id']}", through=s3_proxy)
    page = visitor.page
    await page.wait_for_selector("#timeline li")
    await visitor.pause()
    rule = Rule(kind="ListObjectsV2", status=403, times=None)
    s3_proxy.rules.append(rule)
    await visitor.refresh()
    await expect(page.locator("#banner")).to_contain_text("Not allowed to list the tasks")
    await expect(page.locator("#banner")).to_contain_text("s3:ListBucket")
    await expect(page.locator("#task-rows tr")).to_have_count(1)
    s3_proxy.rules.remove(rule)
    s3_proxy.rules.append(Rule(kind="ListObjectVersions", status=403, times=None))
    stage.update(task)
    await page.click("#banner button")
    await expect(page.locator("#banner")).to_be_empty()
    await expect(page.locator("#timeline-problem")).to_contain_text("s3:ListBucketVersions")


async def test_a_failed_read_is_retried(stage: Stage, visit: Visit, s3_proxy: S3Proxy) -> None:
    """A lost or failed read is repeated; only trouble that lasts is shown, and it disappears by itself."""
    stage.add()
    visitor = await visit("#shard=3", through=s3_proxy)
    page = visitor.page
    await visitor.pause()
    s3_proxy.rules.append(Rule(kind="ListObjectsV2", status=503, times=2))
    await visitor.refresh()
    await expect(page.locator("#banner")).to_be_empty()
    s3_proxy.rules[:] = [Rule(kind="ListObjectsV2", status=500, times=3)]
    await visitor.refresh()
    await expect(page.locator("#banner")).to_contain_text("the store has trouble")
    await visitor.refresh()
    await expect(page.locator("#banner")).to_be_empty()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing."""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[str]:
    """The page on a web server that is not the store."""
    for name, path in page_files("objectqueue").items():
        (tmp_path / name).write_bytes(path.read_bytes())
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/index.html"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.req("OQ-200", "OQ-219")
async def test_from_another_origin_it_works_by_the_buckets_cors_rules(
    stage: Stage, visit: Visit, elsewhere: str
) -> None:
    """With the rules of `init` all works, actions too; without them the page says what is missing."""
    task = stage.add(status="Failed")
    cors = {
        "AllowedOrigins": ["*"],
        "AllowedMethods": ["GET", "PUT", "HEAD"],
        "AllowedHeaders": ["*"],
        "ExposeHeaders": ["ETag", "x-amz-version-id", "Date"],
        "MaxAgeSeconds": 3600,
    }
    raw, name = stage.bucket.raw, stage.bucket.name
    raw.put_bucket_cors(Bucket=name, CORSConfiguration={"CORSRules": [cors]})
    visitor = await visit(f"#shard=3&task={task['id']}", page=elsewhere)
    await visitor.page.wait_for_selector("#timeline li")
    # A refresh of its own might show the task before its entry is written.
    await visitor.pause()
    await visitor.act("Replay")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Pending")
    assert stage.read(task)["status"] == "Pending"
    assert len(stage.keys("ready/")) == 1
    only = {**cors, "AllowedOrigins": ["https://other.example"]}
    # The page may still be reading the effects of its action.
    await visitor.page.goto("about:blank")
    raw.put_bucket_cors(Bucket=name, CORSConfiguration={"CORSRules": [only]})
    visitor = await visit(page=elsewhere, connect=False)
    variables = stage.bucket.variables
    await visitor.page.fill("[name=address]", stage.address)
    await visitor.page.fill("[name=key]", variables["AWS_ACCESS_KEY_ID"])
    await visitor.page.fill("[name=secret]", variables["AWS_SECRET_ACCESS_KEY"])
    await visitor.page.click("#connect-button")
    await expect(visitor.page.locator(PROBLEM)).to_contain_text("CORS")
    assert visitor.problems
    assert all("CORS" in problem for problem in visitor.problems)
    visitor.problems.clear()


async def test_on_plain_http_it_signs_by_itself(stage: Stage, visit: Visit, home: str) -> None:
    """Where the browser has no cryptography, the page computes the signature itself."""
    task = stage.add(status="Failed")
    endpoint = stage.bucket.endpoint
    there = endpoint.replace("127.0.0.1", "store.test")
    visitor = await visit(
        f"#shard=3&task={task['id']}",
        page=home.replace(endpoint, there),
        address=stage.address.replace(endpoint, there),
    )
    assert await visitor.page.evaluate("[isSecureContext, typeof crypto.subtle]") == [False, "undefined"]
    await visitor.page.wait_for_selector("#timeline li")
    await visitor.act("Replay")
    await expect(visitor.page.locator("#detail-badge")).to_have_text("Pending")


async def test_after_connecting_the_page_can_call_that_store_only(
    stage: Stage, visit: Visit, elsewhere: str
) -> None:
    """A second policy is put in force: no other host can be called any more, whatever code would try it."""
    visitor = await visit("#shard=3")
    other = elsewhere.rpartition("/")[0]
    error = await visitor.page.evaluate(
        "place => fetch(place).then(() => 'answered', () => 'refused')", other
    )
    assert error == "refused"
    assert any("Content Security Policy" in problem for problem in visitor.problems)
    visitor.problems.clear()


async def test_a_wrong_clock_of_the_computer_does_no_harm(
    stage: Stage, visit: Visit, s3_proxy: S3Proxy
) -> None:
    """An hour off: the first refusal has the time; all is signed and written by the store's clock."""
    begun = datetime.now(UTC)
    task = stage.add(status="Failed")
    visitor = await visit("#shard=3", connect=False)
    page = visitor.page
    await page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3600000; }")
    variables = stage.bucket.variables
    await page.fill("[name=address]", stage.address)
    await page.fill("[name=key]", variables["AWS_ACCESS_KEY_ID"])
    await page.fill("[name=secret]", variables["AWS_SECRET_ACCESS_KEY"])
    await page.click("#connect-button")
    await page.click(f'tr[data-key="{task["id"]}"]')
    await page.wait_for_selector("#timeline li")
    await visitor.act("Replay")
    await expect(page.locator("#detail-badge")).to_have_text("Pending")
    written = datetime.fromisoformat(stage.read(task)["available_at"])
    # The clock of the store is known as exactly as its answers come quickly.
    slack = timedelta(minutes=1)
    assert begun - slack < written < datetime.now(UTC) + slack
