"""A proxy before an S3 server that harms what passes it: delays, losses, wrong answers, other ETags."""

from __future__ import annotations

import asyncio
import re
import secrets
import ssl
import threading
import time
from collections.abc import Awaitable
from email.utils import formatdate, parsedate_to_datetime
from typing import Any, NamedTuple

from runtime.launch.embedded.ports import allocate_ports
from tests.support.s3.requests import Asked, Rule, signed_again

_STATUS_CODES = {
    403: "AccessDenied",
    404: "NoSuchKey",
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    500: "InternalError",
    501: "NotImplemented",
    503: "SlowDown",
}
_ETAG = re.compile(rb"(<ETag>)([^<]*)(</ETag>)")


class _Told(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class S3Proxy:
    """One proxy in a thread of its own; it passes `Host` on as it came, so signatures stay true."""

    def __init__(
        self,
        upstream: str,
        access_key: str,
        secret_key: str,
        region: str = "us-east-1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        host, _, port = upstream.removeprefix("http://").partition(":")
        self._upstream = (host, int(port))
        self._credentials = (access_key, secret_key, region)
        self._tls = tls
        self.seen: list[Asked] = []
        self.passing = 0
        """How many requests are not carried out yet, also those for whose answers nobody waits any more."""
        self.rules: list[Rule] = []
        self.rewrites_etags = False
        self.clock_offset_s = 0.0
        """How far the clock seems to be ahead that `Date` is from."""
        self.port = 0
        self._etags: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        self.up()

    def stop(self) -> None:
        self.down()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def up(self) -> None:
        """Listens, again on the same port where there was one."""
        self._do(self._listen())

    def down(self) -> None:
        """Ends every connection and refuses new ones, as a server that is away does."""
        self._do(self._refuse_all())

    def rule(self, **words: Any) -> Rule:
        """Adds a rule; where several take a request, the oldest one has it."""
        made = Rule(**words)
        self.rules.append(made)
        return made

    def asked(self, kind: str | None = None, key: str | None = None) -> list[Asked]:
        """What passed so far, in its order."""
        return [
            each
            for each in list(self.seen)
            if (kind is None or each.kind == kind) and (key is None or re.search(key, each.key))
        ]

    def forget(self) -> None:
        """Starts anew: no rules, nothing seen."""
        self.rules.clear()
        self.seen.clear()

    def _do(self, work: Awaitable[None]) -> None:
        asyncio.run_coroutine_threadsafe(_awaited(work), self._loop).result(60)

    async def _listen(self) -> None:
        if not self.port:
            # One that nobody else gets while it is not listened on.
            (self.port,) = allocate_ports(1)
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, limit=1 << 20, ssl=self._tls
        )

    async def _refuse_all(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()
        # One turn for the tasks of these connections to see that they have ended.
        for task in (tasks := asyncio.all_tasks() - {asyncio.current_task()}):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = _Upstream(self._upstream)
        self._open.add(writer)
        try:
            while (asked := await _request(reader, writer)) is not None:
                self.seen.append(asked)
                self.passing += 1
                try:
                    if not await self._pass(asked, server, writer):
                        break
                finally:
                    self.passing -= 1
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            server.close()
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def _pass(self, asked: Asked, server: _Upstream, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection stays."""
        rule = next((each for each in self.rules if each.takes(asked)), None) or Rule()
        if rule.delay_s:
            await asyncio.sleep(rule.delay_s)
        if rule.refuse:
            writer.transport.abort()
            return False
        if rule.status is not None and not rule.carried_out:
            told = _made_up(rule, self.clock_offset_s)
        else:
            told = await server.ask(self._changed(asked, rule))
            asked.forwarded = True
            told = (
                _made_up(rule, self.clock_offset_s) if rule.status is not None else self._reworded(told, rule)
            )
        if rule.drop:
            writer.transport.abort()
            return False
        asked.status = told.status
        lines = [f"HTTP/1.1 {told.status} -", *(f"{name}: {value}" for name, value in told.headers)]
        body = b"" if asked.method == "HEAD" else told.body
        writer.write("\r\n".join((*lines, "", "")).encode("latin-1") + body[: rule.truncate])
        await writer.drain()
        return rule.truncate is None

    def _changed(self, asked: Asked, rule: Rule) -> Asked:
        headers = {name: value for name, value in asked.headers.items() if name not in rule.strip}
        headers.pop("expect", None)
        for name in ("if-match", "if-none-match"):
            if headers.get(name, "*") in self._real:
                headers[name] = self._real[headers[name]]
        if headers == {name: value for name, value in asked.headers.items() if name != "expect"}:
            return Asked(asked.method, asked.target, headers, asked.body)
        changed = Asked(asked.method, asked.target, headers, asked.body)
        changed.headers = signed_again(changed, *self._credentials)
        return changed

    def _reworded(self, told: _Told, rule: Rule) -> _Told:
        body = told.body
        if self.rewrites_etags:
            body = _ETAG.sub(self._in_xml, body)
        headers = []
        for name, value in told.headers:
            if name.lower() in rule.strip_answer:
                continue
            new = value
            if name.lower() == "etag" and self.rewrites_etags:
                new = self._other(value)
            elif name.lower() == "date" and self.clock_offset_s:
                new = formatdate(parsedate_to_datetime(value).timestamp() + self.clock_offset_s, usegmt=True)
            elif name.lower() == "content-length" and len(body) != len(told.body):
                new = str(len(body))
            headers.append((name, new))
        return _Told(told.status, headers, body)

    def _in_xml(self, found: re.Match[bytes]) -> bytes:
        real = found[2].decode().replace("&#34;", '"').replace("&quot;", '"')
        return found[1] + self._other(real).replace('"', "&quot;").encode() + found[3]

    def _other(self, real: str) -> str:
        if real not in self._etags:
            made = f'"{secrets.token_hex(9)}-opaque"'
            self._etags[real], self._real[made] = made, real
        return self._etags[real]


class _Upstream:
    """The connection to the server that belongs to one connection of a client."""

    def __init__(self, place: tuple[str, int]) -> None:
        self._place = place
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, asked: Asked) -> _Told:
        kept = self._streams is not None
        try:
            return await self._ask(asked)
        except (OSError, EOFError):
            self.close()
            if not kept:
                raise
            # The server had ended a connection that was not used for a while.
            return await self._ask(asked)

    async def _ask(self, asked: Asked) -> _Told:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place, limit=1 << 20)
        reader, writer = self._streams
        headers = {**asked.headers, "content-length": str(len(asked.body))}
        headers.pop("transfer-encoding", None)
        lines = [f"{asked.method} {asked.target} HTTP/1.1", *(f"{n}: {v}" for n, v in headers.items())]
        writer.write("\r\n".join((*lines, "", "")).encode("latin-1") + asked.body)
        first, told = await _head(reader)
        status = int(first.split(" ")[1])
        small = {name.lower(): value for name, value in told}
        body = b"" if asked.method == "HEAD" or status in {204, 304} else await _body(reader, small)
        kept = [pair for pair in told if pair[0].lower() not in {"transfer-encoding", "content-length"}]
        length = small.get("content-length") if asked.method == "HEAD" else str(len(body))
        if status != 204 and length is not None:
            kept.append(("Content-Length", length))
        if small.get("connection", "").lower() == "close":
            self.close()
        return _Told(status, kept, body)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def _awaited(work: Awaitable[None]) -> None:
    await work


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked | None:
    try:
        first, headers = await _head(reader)
    except (EOFError, OSError):
        return None
    small = {name.lower(): value for name, value in headers}
    method, target, _ = first.split(" ", 2)
    if small.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    has_body = "content-length" in small or "transfer-encoding" in small
    return Asked(method, target, small, await _body(reader, small) if has_body else b"")


async def _head(reader: asyncio.StreamReader) -> tuple[str, list[tuple[str, str]]]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:] if line)
    return lines[0], [(name.strip(), value.strip()) for name, _, value in pairs]


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        if "content-length" not in headers:
            return await reader.read()
        return await reader.readexactly(int(headers["content-length"]))
    parts = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readline()
    while (await reader.readline()).strip():
        pass
    return b"".join(parts)


def _made_up(rule: Rule, clock_offset_s: float) -> _Told:
    assert rule.status is not None
    code = rule.code or _STATUS_CODES.get(rule.status, "Error")
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>made up</Message></Error>".encode()
    pairs = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
    date = formatdate(time.time() + clock_offset_s, usegmt=True)
    return _Told(rule.status, [*pairs, ("Date", date)], body)
