"""Differences of the differential test: made short, and told with the command that shows them again."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support.stores.differential.comparing import compare_setting, replay_command
from tests.support.stores.differential.lanes import LANES, Lane
from tests.support.stores.differential.operations import Stores, describe
from tests.support.stores.records import ErrandRecord

SEED = 3


class Forgetful:
    """A store that forgets how many it was asked for when it claims."""

    def __init__(self, store: Any) -> None:
        self._store = store

    async def claim(self, owner: str, count: int, *given: Any, **more: Any) -> Any:
        return await self._store.claim(owner, min(count, 1), *given, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class ForgetfulLane(Lane):
    def open_stores(self) -> Stores:
        stores = super().open_stores()
        return stores._replace(main=Forgetful(stores.main))


async def test_a_difference_is_made_short_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim of two answers one: some create, and the claim, are all that is told."""
    monkeypatch.setitem(LANES, "memory", ForgetfulLane)
    with pytest.raises(AssertionError) as found:
        for number in range(20):
            await compare_setting("memory", SEED, number, range(25))
    told = str(found.value).splitlines()
    assert told[0].startswith("memory answers something else than the oracle, in sequence ")
    sequence, number = map(int, re.findall(r"\d+", told[0]))
    assert told[1] == f"Again: {replay_command('memory', SEED, number, sequence)}"
    operations = [line.split(". ")[1].split("(")[0] for line in told if line.strip()[:1].isdigit()]
    assert operations[-1] == "Claim"
    assert len(operations) <= 4
    assert any(line.startswith("  the answer: ") for line in told)


def test_a_record_is_told_by_what_is_not_as_usual() -> None:
    assert describe([ErrandRecord(key="a", tries=2)]) == "[ErrandRecord(key='a', tries=2)]"
