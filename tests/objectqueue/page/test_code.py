"""The computations of the page, in the browser, compared with those of other programs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from playwright.async_api import Page

pytestmark = pytest.mark.asyncio(loop_scope="session")
RANDOM = random.Random(20)


@pytest_asyncio.fixture(loop_scope="session")
async def code(tab: Page, home: str) -> AsyncIterator[Page]:
    """A tab where the modules of the page can be called."""
    await tab.goto(home)
    yield tab


async def call(code: Page, module: str, body: str, given: Any = None) -> Any:
    """The value of some JavaScript that has a module as `m` and an argument as `given`."""
    found = f"await import(location.pathname.replace('index.html', '{module}'))"
    script = f"async given => {{ const m = {found}; {body} }}"
    return await code.evaluate(script, given)


async def test_digests_equal_those_of_hashlib(code: Page) -> None:
    """With and without the browser's cryptography, for lengths about the borders of blocks, and long ones."""
    lengths = [*range(0, 130, 3), 55, 56, 63, 64, 65, 119, 120, 1000, 70_001]
    texts = [RANDOM.randbytes(length) for length in lengths]
    script = """
      const bytes = list => list.map(text => Uint8Array.from(atob(text), sign => sign.charCodeAt(0)));
      const told = [];
      for (const one of bytes(given)) {
        const key = one.slice(0, 100);
        const some = key.length ? key : new Uint8Array(1);
        told.push([m.hex(m.sha256Here(one)), m.hex(await m.sha256(one)),
                   m.hex(m.hmacHere(key, one)), m.hex(await m.hmac(some, one))]);
      }
      return told;"""
    digests = await call(code, "sha256.js", script, [base64.b64encode(text).decode() for text in texts])
    for text, (own, browsers, own_keyed, browsers_keyed) in zip(texts, digests, strict=True):
        assert own == browsers == hashlib.sha256(text).hexdigest()
        assert own_keyed == hmac.new(text[:100], text, "sha256").hexdigest()
        assert browsers_keyed == hmac.new(text[:100] or b"\0", text, "sha256").hexdigest()


async def test_signatures_equal_those_of_botocore(code: Page) -> None:
    """Of requests with a query, odd characters in the key, a body, conditions and a session token."""
    url = "http://s3.example:8333/bucket/tasks/3/a%20b%2B%C3%BC%27.json?versions=&prefix=a%2Fb%20c&max-keys=5"
    at = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    for token in (None, "to/ken=="):
        script = """
          const at = new Date("2026-02-03T04:05:06Z");
          const who = { key: "AK", secret: "se/cret", token: given.token };
          const headers = { "If-Match": '"etag"', "Content-Type": "application/json" };
          const url = new URL(given.url);
          return m.signed({ method: "PUT", url, headers, body: given.body, who, region: "eu-west-1", at });"""
        signed = await call(code, "sign.js", script, {"url": url, "token": token, "body": '{"ü": 1}'})
        request = AWSRequest(
            "PUT", url, {"If-Match": '"etag"', "Content-Type": "application/json"}, '{"ü": 1}'.encode()
        )
        request.context.update(payload_signing_enabled=True, timestamp=at.strftime("%Y%m%dT%H%M%SZ"))
        signer = S3SigV4Auth(Credentials("AK", "se/cret", token), "s3", "eu-west-1")
        request.headers["X-Amz-Date"] = request.context["timestamp"]
        if token:
            request.headers["X-Amz-Security-Token"] = token
        request.headers["X-Amz-Content-SHA256"] = signer.payload(request)
        string = signer.string_to_sign(request, signer.canonical_request(request))
        assert signed["authorization"].rpartition("=")[2] == signer.signature(string, request)
        assert signed["x-amz-date"] == request.context["timestamp"]


@pytest.mark.req("OQ-034")
async def test_json_goes_through_without_loss(code: Page) -> None:
    """Numbers that JavaScript would change, the order of keys, odd keys, and texts of every kind."""
    values = [
        "null",
        "-0",
        "1.0",
        "1e400",
        "0.1",
        "123456789012345678901234567890",
        '"\\u0000\\ud83d\\ude00\\\\\\""',
        '{"__proto__": 1, "constructor": 2, "10": 3, "9": 4, "": 5}',
        "[[], {}, [{}]]",
        json.dumps(_make_random_value(6)),
    ]
    script = "return given.map(text => [m.jsonText(m.parseJson(text)), m.prettyJson(m.parseJson(text))])"
    for text, (line, pretty) in zip(values, await call(code, "json.js", script, values), strict=True):
        for printed in (line, pretty):
            assert _parse_exactly(printed) == _parse_exactly(text)


async def test_invalid_json_is_refused(code: Page) -> None:
    """With the position of the error, as the standard has it."""
    wrong = [
        "",
        " ",
        "{",
        "[1,]",
        '{"a":}',
        '{"a" 1}',
        "01",
        "1.",
        "'a'",
        '"a',
        '"\\x"',
        '"\n"',
        "nul",
        "1 2",
        "{1: 2}",
    ]
    script = """return given.map(text => {
      try { m.parseJson(text); return "taken"; } catch (error) { return error.name; }
    });"""
    assert await call(code, "json.js", script, wrong) == ["SyntaxError"] * len(wrong)


async def test_times_keep_their_microseconds(code: Page) -> None:
    """In both directions, and as the minutes of index keys."""
    texts = ["2026-11-16T12:41:42.049324Z", "1970-01-01T00:00:00.000001Z", "2026-01-01T00:00:00.900000Z"]
    script = (
        "return given.map(text => [m.isoTime(m.microseconds(text)), m.indexMinute(m.microseconds(text))])"
    )
    for text, (again, minute) in zip(texts, await call(code, "time.js", script, texts), strict=True):
        assert again == text
        assert minute == f"{int(datetime.fromisoformat(text).timestamp() // 60):010d}"
    odd = ["", "soon", "2026-11-16", None, 5, "2026-11-16T12:41:42+00:00", "2026-11-16T12:41:42.5Z"]
    parsed = await call(code, "time.js", "return given.map(m.microseconds)", odd)
    assert parsed[:5] == [None] * 5
    assert (parsed[5] % 1_000_000, parsed[6] % 1_000_000) == (0, 500_000)


async def test_the_clock_is_learned_from_whole_seconds(code: Page) -> None:
    """Several answers give the offset far better than a second; a clock that is set anew is adopted."""
    script = """
      let local = 1_700_000_000_000;
      const clock = new m.Clock(() => local);
      const server = offset => new Date(Math.floor((local + offset) / 1000) * 1000).toUTCString();
      clock.learn("no date", local);
      const before = clock.known;
      for (let step = 0; step < 60; step += 1) { local += 137; clock.learn(server(4321), local); }
      const first = clock.offset;
      local += 1000;
      clock.learn(server(-90000), local);
      return [before, first, clock.offset];"""
    before, first, second = await call(code, "clock.js", script)
    assert before is False
    assert abs(first - 4321) < 100
    assert abs(second + 90_000) <= 1000


def _make_random_value(depth: int) -> Any:
    choice = RANDOM.randrange(6 if depth else 4)
    if choice == 0:
        return RANDOM.choice([None, True, False])
    if choice == 1:
        return RANDOM.randrange(-(10 ** RANDOM.randrange(1, 25)), 10**20)
    if choice == 2:
        return RANDOM.random() * 10 ** RANDOM.randrange(-30, 30)
    if choice == 3:
        return "".join(chr(RANDOM.choice([RANDOM.randrange(32, 126), 0x1F600, 10, 0xE9])) for _ in range(9))
    if choice == 4:
        return [_make_random_value(depth - 1) for _ in range(4)]
    return {str(RANDOM.random()): _make_random_value(depth - 1) for _ in range(4)}


def _parse_exactly(text: str) -> Any:
    """The value of a JSON text with numbers as they are written and the order of keys."""
    return json.loads(
        text, parse_int=lambda n: ("n", n), parse_float=lambda n: ("n", n), object_pairs_hook=list
    )
