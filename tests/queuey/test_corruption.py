"""Content that the disk has changed: it is not served, an upload repairs it, and a job that needs it ends."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from generated.queuey.system import SYSTEM
from handlers.queuey import blobs
from handlers.queuey.blob_client import BlobClient, BlobCorrupt
from handlers.queuey.blobs import BlobFolder, CorruptBlob, FileFingerprint
from handlers.queuey.samples import binary
from runtime.node.node import Node
from runtime.world import RealWorld
from tests.support.plain_http import NO_TLS
from tests.support.queuey.processes import Works

SMALL = b"precious"
LARGE = bytes(range(256)) * (3 << 12)
"""Three mebibytes: more than is hashed before every answer."""


class Shelf:
    """A store in the test's own process, and the files behind it."""

    def __init__(self, folder: Path, log: io.StringIO, client: httpx.AsyncClient) -> None:
        self.folder = folder
        self.log = log
        self.http = client

    async def put(self, content: bytes) -> str:
        answer = await self.http.post("/blobs", content=content)
        assert answer.status_code == 201, answer.text
        return format_address(content)

    async def get(self, address: str, **headers: str) -> httpx.Response:
        return await self.http.get(f"/blobs/{address}", headers=headers)

    def file(self, address: str) -> Path:
        return self.folder / address[:2] / address


@pytest_asyncio.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    folder, log = tmp_path / "blobs", io.StringIO()
    settings = {"STORE_PATH": str(folder), "MDNS_ENABLED": "false"}
    node = Node(SYSTEM, "local", "store", settings, RealWorld(), log)
    await node.start(http_port=0)
    url = f"http://127.0.0.1:{node.http_port}"
    async with httpx.AsyncClient(base_url=url, timeout=60, verify=NO_TLS) as client:
        yield Shelf(folder, log, client)
    await node.stop()


def format_address(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def damage(path: Path) -> None:
    """Change the last byte of a file, and put its time of modification back, as a restored backup would."""
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        with path.open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\x00")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def is_refused(answer: httpx.Response) -> bool:
    found: tuple[int, str] = (answer.status_code, answer.json()["error"]["code"])
    return found == (404, "BLOB_CORRUPT")


@pytest.mark.req("QQ-X03")
@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("remembered", [False, True], ids=["fresh", "remembered"])
async def test_content_that_changes_after_it_was_read_is_not_served(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, content: bytes, remembered: bool
) -> None:
    """It is refused whole, in part, by its tag and by its head; an upload repairs it."""
    if remembered:
        # As for a file that has not changed for a while: the proof of its first verification is kept.
        monkeypatch.setattr(blobs, "_SETTLED_NS", -(1 << 62))
    address = await shelf.put(content)
    assert (await shelf.get(address)).content == content
    damage(shelf.file(address))
    assert is_refused(await shelf.get(address))
    assert is_refused(await shelf.get(address, range="bytes=0-3"))
    assert is_refused(await shelf.get(address, **{"if-none-match": f'"{address}"'}))
    assert (await shelf.http.head(f"/blobs/{address}")).status_code == 404
    assert shelf.log.getvalue().count('"event":"corrupt_content"') == 4
    repaired = await shelf.http.put(f"/blobs/{address}", content=content)
    assert (repaired.status_code, repaired.json()["known"]) == (201, False)
    assert (await shelf.get(address)).content == content
    assert (await shelf.http.post("/blobs", content=content)).json()["known"] is True


@pytest.mark.req("QQ-X03")
async def test_content_that_the_disk_cannot_read_is_corrupt_and_repaired(shelf: Shelf) -> None:
    """A file whose first read fails with EIO, as the memory of a process does at address 0."""
    address = await shelf.put(SMALL)
    shelf.file(address).unlink()
    shelf.file(address).symlink_to("/proc/self/mem")
    assert is_refused(await shelf.get(address))
    assert await shelf.put(SMALL) == address
    assert (await shelf.get(address)).content == SMALL


@pytest.mark.req("QQ-X03")
async def test_content_that_changes_during_a_download_ends_early(shelf: Shelf) -> None:
    """The client misses the end of it: the announced length is never reached."""
    content = LARGE * 16
    address = await shelf.put(content)
    received = 0
    with pytest.raises(httpx.RemoteProtocolError):
        async with shelf.http.stream("GET", f"/blobs/{address}") as answer:
            assert answer.status_code == 200
            async for piece in answer.aiter_raw():
                if not received:
                    # The rest waits in the file, because there are no buffers of this size in between.
                    damage(shelf.file(address))
                received += len(piece)
    assert 0 < received < len(content)
    assert is_refused(await shelf.get(address))


@pytest.mark.req("QQ-X03")
async def test_a_change_that_the_file_status_does_not_show_is_found_by_its_hash(tmp_path: Path) -> None:
    """The last piece of the content is not sent until its hash is right."""
    shelf = BlobFolder(str(tmp_path), len(LARGE))
    address = format_address(LARGE)
    place = tmp_path / address[:2] / address
    place.parent.mkdir()
    place.write_bytes(LARGE[:-1] + b"\x00")
    with place.open("rb") as source:
        proof = FileFingerprint.of(source)
    received = 0
    with pytest.raises(CorruptBlob):
        async for piece in shelf.read(address, proof, 0, len(LARGE)):
            received += len(piece)
    assert 0 < received < len(LARGE)


@pytest.fixture
def liar() -> Iterator[str]:
    """A proxy between a client and its store that answers with wrong content."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(b"wrong")

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


@pytest.mark.req("QQ-X03")
async def test_a_client_gives_up_on_content_that_stays_wrong(liar: str, tmp_path: Path) -> None:
    """The error is not that of an unreachable store, and no file is written."""
    async with asyncio.timeout(60), BlobClient(liar) as client:
        with pytest.raises(BlobCorrupt):
            await client.get(format_address(SMALL), tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.req("QQ-X01", "QQ-X03")
def test_a_job_that_needs_corrupt_content_fails_and_can_be_repaired(tmp_path: Path) -> None:
    """Its reason says so, be it the binary or the input; uploading again lets the same job succeed."""
    with Works(tmp_path) as works:
        program, input_ = works.put(binary("echo")), works.put(LARGE)
        works.runner("steady").wait()
        assert works.wait_until_ended(works.create_job(program, input_))["status"] == "completed"
        works.dismiss()
        damaged = works.put(binary("words"))
        for address in (damaged, input_):
            damage(tmp_path / "blobs" / address[:2] / address)
        runner = works.runner("next").wait()
        for job in (works.create_job(program, input_), works.create_job(damaged)):
            assert works.read_reason(job).startswith("CORRUPT: what is stored under ")
        assert not runner.events("store_away")
        assert (works.put(LARGE), works.put(binary("words"))) == (input_, damaged)
        assert (
            works.content(works.wait_until_ended(works.create_job(program, input_))["output_addr"]) == LARGE
        )
        assert works.wait_until_ended(works.create_job(damaged))["status"] == "completed"
