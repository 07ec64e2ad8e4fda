"""The blob store over HTTP: addresses, ranges, limits, and a folder that no path escapes."""

from __future__ import annotations

import asyncio
import hashlib
import io
import resource
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from generated.queuey.system import SYSTEM
from handlers.queuey.blob_client import BlobClient, BlobMissing, StoreUnavailable
from runtime.node.node import Node
from runtime.world import RealWorld
from tests.support.eventually import eventually, wait_until
from tests.support.plain_http import NO_TLS
from tests.support.queuey.processes import Process

MOST = 1 << 20


class Shop:
    """A store in the test's own process."""

    def __init__(self, folder: Path, node: Node, client: httpx.AsyncClient) -> None:
        self.folder = folder
        self.node = node
        self.http = client

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.node.http_port}"

    def files(self) -> list[Path]:
        return [each for each in self.folder.rglob("*") if each.is_file()]


@pytest_asyncio.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    folder = tmp_path / "blobs"
    settings = {"STORE_PATH": str(folder), "MAX_BLOB_BYTES": str(MOST), "MDNS_ENABLED": "false"}
    node = Node(SYSTEM, "local", "store", settings, RealWorld(), io.StringIO())
    await node.start(http_port=0)
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{node.http_port}", timeout=30, verify=NO_TLS
    ) as client:
        yield Shop(folder, node, client)
    await node.stop()


def format_address(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.req("QQ-X03")
@pytest.mark.parametrize("content", [b"", b"x", bytes(range(256)) * 2000])
async def test_content_is_returned_from_its_address(shop: Shop, content: bytes) -> None:
    first = await shop.http.post("/blobs", content=content)
    assert first.status_code == 201
    assert first.json() == {"address": format_address(content), "size": len(content), "known": False}
    again = await shop.http.post("/blobs", content=content)
    assert (again.status_code, again.json()["known"]) == (200, True)
    assert len(shop.files()) == 1
    back = await shop.http.get(f"/blobs/{format_address(content)}")
    assert (back.status_code, back.content) == (200, content)
    assert back.headers["etag"] == f'"{format_address(content)}"'
    assert back.headers["content-type"] == "application/octet-stream"


@pytest.mark.req("QQ-X03")
async def test_an_address_that_was_computed_by_the_client(shop: Shop) -> None:
    right = await shop.http.put(f"/blobs/{format_address(b'abc')}", content=b"abc")
    assert right.status_code == 201
    wrong = await shop.http.put(f"/blobs/{format_address(b'abd')}", content=b"abc")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "WRONG_ADDRESS")
    assert len(shop.files()) == 1


@pytest.mark.req("QQ-X03")
@pytest.mark.parametrize(
    ("range_", "status", "part"),
    [
        ("bytes=0-3", 206, b"0123"),
        ("bytes=4-", 206, b"456789"),
        ("bytes=-2", 206, b"89"),
        ("bytes=8-99", 206, b"89"),
        ("bytes=10-", 416, b""),
        ("bytes=5-2", 416, b""),
        ("bytes=-0", 416, b""),
        ("lines=1-2", 200, b"0123456789"),
    ],
)
async def test_ranges(shop: Shop, range_: str, status: int, part: bytes) -> None:
    content = b"0123456789"
    await shop.http.post("/blobs", content=content)
    answer = await shop.http.get(f"/blobs/{format_address(content)}", headers={"range": range_})
    assert (answer.status_code, answer.content) == (status, part)


@pytest.mark.req("QQ-X03")
async def test_a_known_etag_is_answered_with_not_modified(shop: Shop) -> None:
    await shop.http.post("/blobs", content=b"abc")
    path, tag = f"/blobs/{format_address(b'abc')}", f'"{format_address(b"abc")}"'
    assert (await shop.http.get(path, headers={"if-none-match": tag})).status_code == 304
    head = await shop.http.head(path)
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "3", b"")
    changed = await shop.http.get(path, headers={"range": "bytes=1-1", "if-range": '"other"'})
    assert (changed.status_code, changed.content) == (200, b"abc")


@pytest.mark.req("QQ-X03")
async def test_too_much_content_is_refused_before_and_during_the_upload(shop: Shop) -> None:
    before = await shop.http.post("/blobs", content=b"x" * (MOST + 1))
    assert (before.status_code, before.json()["error"]["code"]) == (413, "BLOB_TOO_LARGE")

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(MOST // 65536 + 2):
            yield b"x" * 65536

    during = await shop.http.post("/blobs", content=endless())
    assert during.status_code == 413
    assert shop.files() == []


@pytest.mark.req("QQ-X03")
@pytest.mark.parametrize(
    "address",
    ["0" * 64, "0" * 63, "..", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00", "A" * 64, "unfinished"],
)
async def test_malformed_addresses_are_not_found(shop: Shop, address: str) -> None:
    answer = await shop.http.get(f"/blobs/{address}")
    assert answer.status_code == 404


@pytest.mark.req("QQ-X03")
async def test_corrupt_content_is_not_served(shop: Shop) -> None:
    await shop.http.post("/blobs", content=b"precious")
    await shop.node.stop()
    shop.files()[0].write_bytes(b"precioux")
    settings = {"STORE_PATH": str(shop.folder), "MDNS_ENABLED": "false"}
    node = Node(SYSTEM, "local", "store", settings, RealWorld(), io.StringIO())
    await node.start(http_port=0)
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{node.http_port}", timeout=60, verify=NO_TLS
    ) as client:
        assert (await client.get(f"/blobs/{format_address(b'precious')}")).status_code == 404
        assert (await client.post("/blobs", content=b"precious")).status_code == 201
        assert (await client.get(f"/blobs/{format_address(b'precious')}")).content == b"precious"
    await node.stop()


@pytest.mark.req("QQ-X03")
async def test_concurrent_and_aborted_uploads_of_one_content(shop: Shop) -> None:
    content = bytes(range(256)) * 1024

    async def slowly() -> AsyncIterator[bytes]:
        for at in range(0, len(content), 16384):
            await asyncio.sleep(0)
            yield content[at : at + 16384]

    async def broken() -> AsyncIterator[bytes]:
        yield content[:16384]
        raise ConnectionError

    writers = [shop.http.post("/blobs", content=slowly()) for _ in range(8)]
    quitters = [shop.http.post("/blobs", content=broken()) for _ in range(4)]
    answers = await asyncio.gather(*writers, *quitters, return_exceptions=True)
    assert {each.json()["address"] for each in answers[:8] if isinstance(each, httpx.Response)} == {
        format_address(content)
    }
    back = await shop.http.get(f"/blobs/{format_address(content)}")
    assert back.content == content
    await eventually(shop.files, wanted=lambda files: len(files) == 1)


@pytest.mark.req("QQ-X03")
async def test_an_unwritable_folder_is_an_error(shop: Shop) -> None:
    shop.folder.mkdir(parents=True, exist_ok=True)
    (shop.folder / "unfinished").write_text("in the way")
    answer = await shop.http.post("/blobs", content=b"x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "BLOB_STORE_UNAVAILABLE")


@pytest.mark.req("QQ-X03")
async def test_the_client_verifies_content(shop: Shop, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"content")
    async with BlobClient(shop.url) as client:
        address = await client.put(source)
        await client.get(address, target)
        assert target.read_bytes() == b"content"
        with pytest.raises(BlobMissing):
            await client.get("0" * 64, target)
    async with BlobClient("http://127.0.0.1:9") as unreachable:
        with pytest.raises(StoreUnavailable):
            await unreachable.put(source)


@pytest.mark.req("QQ-X08")
async def test_tokens_distinguish_callers(tmp_path: Path) -> None:
    tokens = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("client", "runner")}
    settings = {
        "DB_PATH": str(tmp_path / "q.db"),
        "MDNS_ENABLED": "false",
        "ACCEPTED_TOKENS": ",".join(f"{name}={digest}" for name, digest in tokens.items()),
    }
    node = Node(SYSTEM, "local", "queue", settings, RealWorld(), io.StringIO())
    await node.start(port=0, http_port=0)
    try:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{node.http_port}", timeout=60, verify=NO_TLS
        ) as http:
            codes = {}
            for caller_ in (None, "client", "runner", "stranger"):
                headers = {"authorization": f"Bearer {caller_}"} if caller_ else {}
                create = await http.post("/jobs/create", json={"binary_addr": "b"}, headers=headers)
                claim = await http.post("/jobs/claim", json={"runner_id": "r"}, headers=headers)
                codes[caller_] = (create.status_code, claim.status_code)
        assert codes == {None: (401, 401), "client": (200, 403), "runner": (403, 200), "stranger": (401, 401)}
    finally:
        await node.stop()


@pytest.mark.req("QQ-X03")
def test_a_kill_during_an_upload_and_a_full_disk(tmp_path: Path) -> None:
    """Partial content is never served, before and after; content that does not fit is refused."""
    store = Process(tmp_path, "store", "store", {"STORE_PATH": str(tmp_path / "blobs")})
    content = bytes(range(256)) * 4096
    store.begin().wait()
    try:
        with socket.create_connection(("127.0.0.1", store.ports["http_port"])) as halfway:
            head = f"POST /blobs HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n"
            halfway.sendall(head.encode() + content[: len(content) // 2])
            wait_until(lambda: list((tmp_path / "blobs").rglob("unfinished/*")))
            store.kill()
        store.begin().wait()
        with httpx.Client(base_url=store.url, timeout=60, verify=NO_TLS) as http:
            assert http.get(f"/blobs/{format_address(content)}").status_code == 404
            assert store.process is not None
            resource.prlimit(store.process.pid, resource.RLIMIT_FSIZE, (len(content) // 2, -1))
            full = http.post("/blobs", content=content)
            assert (full.status_code, full.json()["error"]["code"]) == (503, "BLOB_STORE_UNAVAILABLE")
            assert http.get(f"/blobs/{format_address(content)}").status_code == 404
            assert http.post("/blobs", content=b"small").status_code == 201
            resource.prlimit(store.process.pid, resource.RLIMIT_FSIZE, (-1, -1))
            assert http.post("/blobs", content=content).status_code == 201
            assert http.get(f"/blobs/{format_address(content)}").content == content
    finally:
        store.kill()
