"""The engine from outside the package: what its file promises, and that it stays small enough to be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runtime.observe.metrics import Metrics
from runtime.stores.engine import EngineContext, make_engine
from tests.runtime.hand_world import HandWorld, make_call
from tests.stores.toy.engine import FOLDER, NAME
from tests.support.stores.engines import SYSTEM
from tests.support.stores.lifecycles import ERRAND
from tests.support.stores.records import VARIABLES, WAITING, ErrandRecord
from tests.support.stores.shop import refused

HERE = Path(__file__).parent / "toy"
MOST_LINES = 400


def open_errands(folder: Path, world: HandWorld) -> Any:
    """The errands in a folder, as a node opens them."""
    values = {**VARIABLES, FOLDER: str(folder)}
    return make_engine(NAME, EngineContext(SYSTEM, world, Metrics(), values, "node")).store(
        ERRAND, ErrandRecord
    )


async def test_what_was_written_is_found_by_the_next_process(tmp_path: Path) -> None:
    """Records, history, unique values and pauses."""
    world = HandWorld()
    first = open_errands(tmp_path, world)
    client = make_call(world, caller="client")
    created = (await first.create(ErrandRecord(key="a", ticket="t"), client)).record
    await first.pause(1)
    second = open_errands(tmp_path, world)
    assert await second.get("a") == created
    assert await second.history("a") == await first.history("a")
    assert await second.paused() == {1}
    again = await second.create(ErrandRecord(key="b", ticket="t"), client)
    assert (again.record, again.is_new) == (created, False)


async def test_a_step_that_cannot_be_written_has_not_happened(tmp_path: Path) -> None:
    folder, world = tmp_path / "files", HandWorld()
    folder.mkdir()
    store, client = open_errands(folder, world), make_call(world, caller="client")
    await store.create(ErrandRecord(key="a"), client)
    folder.rename(tmp_path / "elsewhere")
    with refused("store_unavailable"):
        await store.create(ErrandRecord(key="b"), client)
    (tmp_path / "elsewhere").rename(folder)
    assert await store.get("b") is None
    assert (await store.get("a")).state == WAITING


def test_it_is_small_enough_to_be_read() -> None:
    lines = [line for path in HERE.glob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(lines) <= MOST_LINES
