"""Percentiles by nearest rank, and histograms that can be added up."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bench.percentiles import LatencyHistogram
from tests.support.bench.canned_findings import create_histogram


@pytest.mark.req("TQ-202", "CH-93")
def test_percentiles_of_a_known_sample_are_by_nearest_rank() -> None:
    """The p-th percentile of n values is the one at place ceil(p/100 * n): no value is made up."""
    assert create_histogram(0.15, 0.2, 0.35, 0.4, 0.5).percentiles((5, 30, 40, 50, 100)) == [
        0.15,
        0.2,
        0.2,
        0.35,
        0.5,
    ]
    assert create_histogram(*(each / 100 for each in range(1, 101))).percentiles((50, 95, 99)) == [
        0.5,
        0.95,
        0.99,
    ]


@pytest.mark.req("TQ-202", "CH-93")
@given(some.lists(some.integers(1, 2000), min_size=1, max_size=60), some.integers(1, 100))
def test_percentiles_of_any_sample_are_by_nearest_rank(values: list[int], percent: int) -> None:
    """The histogram gives what sorting the values gives, where its three digits are exact."""
    rank = max(1, math.ceil(percent / 100 * len(values)))
    found = LatencyHistogram()
    for each in values:
        found.record(each / 1e6)
    assert found.percentiles((percent,)) == [sorted(values)[rank - 1] / 1000]


def test_histograms_of_two_processes_add_up() -> None:
    """Encoded and added histograms equal that of one process with all times."""
    together = LatencyHistogram([create_histogram(1, 2).encode(), create_histogram(3, 4).encode()])
    assert together.summarize() == create_histogram(1, 2, 3, 4).summarize()


def test_an_empty_histogram_has_a_summary() -> None:
    """Nothing recorded is no error: all is zero."""
    assert LatencyHistogram().summarize().count == 0
    assert LatencyHistogram().percentiles((50, 99)) == [0, 0]
    assert LatencyHistogram().to_distribution() == []


def test_the_distribution_ends_with_all() -> None:
    """Shares rise to one."""
    assert create_histogram(0.5, 0.5, 1, 2).to_distribution() == [(0.5, 0.5), (1, 0.75), (2, 1.0)]
