"""Words that no lifecycle of the suite combines: the functions of the semantics by themselves."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from runtime.model.lifecycles import Backoff
from runtime.stores.memory.claim_index import ClaimIndex
from runtime.stores.semantics.edges import backoff_s
from runtime.stores.semantics.rules import EPOCH, prepare_rules
from tests.runtime.hand_world import HandWorld
from tests.support.stores.lifecycles import LETTER, PERMIT
from tests.support.stores.records import SHELVED, VARIABLES, WAITING, LetterRecord, PermitRecord


@pytest.mark.parametrize(
    ("tries", "counts", "seconds"), [(0, "tries", 2.0), (1, "tries", 4.0), (9, "tries", 7.0)]
)
def test_a_backoff_counts_the_failure_of_its_own_edge(tries: int, counts: str, seconds: float) -> None:
    """The count is that before the edge, which adds one to it."""
    rules = prepare_rules(PERMIT, PermitRecord, VARIABLES)
    waits = Backoff(until="wait_until", count="tries", base="BASE_S", max="MOST_S")
    edge = replace(rules.edges["fail"], increment=counts)
    record = PermitRecord(key="a", state=SHELVED, tries=tries)
    assert backoff_s(rules, edge, waits, record, HandWorld()) == seconds


@pytest.mark.parametrize(("tries", "seconds"), [(0, 2.0), (1, 2.0), (2, 4.0), (1000, 7.0), (10**6, 7.0)])
def test_a_backoff_of_an_edge_that_does_not_count(tries: int, seconds: float) -> None:
    """The failures are counted already, so that the first of them waits for the base."""
    rules = prepare_rules(PERMIT, PermitRecord, VARIABLES)
    waits = Backoff(until="wait_until", count="tries", base="BASE_S", max="MOST_S")
    edge = replace(rules.edges["fail"], increment=None)
    record = PermitRecord(key="a", state=SHELVED, tries=tries)
    assert backoff_s(rules, edge, waits, record, HandWorld()) == seconds


def test_a_time_that_is_put_off_counts_from_then_on() -> None:
    """An entity whose time changes while it waits is claimable at the later time only."""
    rules = prepare_rules(LETTER, LetterRecord, VARIABLES)
    index = ClaimIndex(rules)
    first = LetterRecord(key="a", state=WAITING, ready_at=EPOCH + timedelta(seconds=5))
    later = replace(first, ready_at=EPOCH + timedelta(seconds=9))
    index.replace("a", None, first)
    index.replace("a", first, later)
    assert [*index.candidates(6_000_000, None, ())] == []
    assert index.next_free() == 9_000_000
    assert [*index.candidates(9_000_000, None, ())] == ["a"]
