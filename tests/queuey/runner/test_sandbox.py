"""Well-behaved and hostile binaries: all are contained."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from handlers.queuey.samples import binary, names
from handlers.queuey.sandbox import Limits, SandboxPool, SandboxResult

LIMITS = Limits(seconds=60.0, fuel=0, memory_bytes=16 << 20, output_bytes=1 << 20)
HASTY = Limits(seconds=1.0, fuel=0, memory_bytes=16 << 20, output_bytes=1 << 20)


class Box:
    """A pool of sandboxes and a helper to run a sample in it."""

    def __init__(self, sandboxes: SandboxPool, folder: Path) -> None:
        self.sandboxes = sandboxes
        self._folder = folder

    async def run(
        self, name: str, input_: bytes = b"", content: bytes | None = None
    ) -> tuple[SandboxResult, bytes, bytes]:
        """The result of the run, its output and its standard error."""
        path = self._folder / f"{name}.wasm"
        path.write_bytes(binary(name) if content is None else content)
        async with self.sandboxes.scratch() as scratch:
            stdin = scratch / "stdin"
            stdin.write_bytes(input_)
            run = await self.sandboxes.run(name, path, stdin, scratch)
            return run, run.stdout.read_bytes(), run.stderr.read_bytes()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def box(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Box]:
    async with SandboxPool(LIMITS) as sandboxes:
        yield Box(sandboxes, tmp_path_factory.mktemp("binaries"))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def hasty_box(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Box]:
    """One with a short time limit."""
    async with SandboxPool(HASTY) as sandboxes:
        yield Box(sandboxes, tmp_path_factory.mktemp("hasty"))


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.req("QQ-X01")
@pytest.mark.parametrize(
    ("text", "count"), [(b"", 0), (b"one", 1), (b" two\twords\n", 2), (b"w " * 70_000, 70_000)]
)
async def test_words_are_counted(box: Box, text: bytes, count: int) -> None:
    run, written, _ = await box.run("words", text)
    assert (run.exit_code, run.reason) == (0, None)
    assert written == f"{count}\n".encode()


@pytest.mark.req("QQ-X01")
async def test_echo_returns_its_input(box: Box) -> None:
    input_ = bytes(range(256)) * 1000
    run, written, complaints = await box.run("echo", input_)
    assert (run.exit_code, written, complaints) == (0, input_, b"")


@pytest.mark.req("QQ-X04")
async def test_standard_error_and_exit_codes_are_stored(box: Box) -> None:
    assert (await box.run("complain"))[2] == b"this is not right\n"
    run, _, _ = await box.run("exit")
    assert (run.exit_code, run.reason) == (7, "EXITED")


@pytest.mark.req("QQ-X02")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("trap", "TRAPPED"),
        ("recursion", "TRAPPED"),
        ("hog", "TRAPPED"),
    ],
)
async def test_a_binary_that_breaks_a_limit_is_ended_and_the_next_one_runs(
    box: Box, name: str, reason: str
) -> None:
    run, written, _ = await box.run(name)
    assert run.reason == reason
    assert len(written) <= LIMITS.output_bytes
    again, _, _ = await box.run("noop")
    assert again.reason is None


@pytest.mark.req("QQ-X02")
@pytest.mark.parametrize(
    ("name", "reason"), [("loop", "OUT_OF_TIME"), ("sleep", "OUT_OF_TIME"), ("flood", "OUTPUT_TOO_LARGE")]
)
async def test_a_binary_that_does_not_end_is_killed_and_the_next_one_runs(
    hasty_box: Box, name: str, reason: str
) -> None:
    run, written, _ = await hasty_box.run(name)
    assert run.reason == reason
    assert len(written) <= HASTY.output_bytes
    assert (await hasty_box.run("noop"))[0].reason is None


@pytest.mark.req("QQ-X02")
@pytest.mark.parametrize("name", ["files", "surroundings"])
async def test_the_sandbox_has_no_files_environment_or_network(
    box: Box, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    run, _, _ = await box.run(name)
    assert (run.exit_code, run.reason) == (0, None)


@pytest.mark.req("QQ-X02")
@pytest.mark.parametrize(
    "text",
    [
        '(module (memory 4096) (func (export "_start")))',
        '(module (table 10000000 funcref) (memory (export "memory") 1) (func (export "_start")))',
    ],
)
async def test_a_binary_that_needs_too_much_from_the_start_is_refused(box: Box, text: str) -> None:
    import wasmtime

    run, _, _ = await box.run(f"large{len(text)}", content=bytes(wasmtime.wat2wasm(text)))
    assert run.reason == "OUT_OF_MEMORY"


@pytest.mark.req("QQ-X02")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("garbage", b"\x7fELF and so on"),
        ("nothing", b""),
        ("startless", b"\0asm\x01\0\0\0"),
        ("foreign", None),
    ],
)
async def test_a_file_that_is_no_wasi_binary_is_refused(box: Box, name: str, content: bytes | None) -> None:
    import wasmtime

    if content is None:
        text = '(module (import "env" "system" (func)) (func (export "_start")))'
        content = bytes(wasmtime.wat2wasm(text))
    run, _, _ = await box.run(name, content=content)
    assert run.reason == "NOT_WASI"
    assert run.detail


@pytest.mark.req("QQ-X02")
async def test_instructions_are_counted(tmp_path: Path) -> None:
    async with SandboxPool(
        Limits(seconds=30, fuel=100_000, memory_bytes=1 << 20, output_bytes=1024)
    ) as sandboxes:
        box = Box(sandboxes, tmp_path)
        assert (await box.run("loop"))[0].reason == "OUT_OF_FUEL"
        assert (await box.run("noop"))[0].reason is None


async def test_all_samples_are_binaries() -> None:
    assert {"echo", "words", "loop", "hog", "trap"} <= set(names())
    assert all(binary(name).startswith(b"\0asm") for name in names())
