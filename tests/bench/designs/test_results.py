"""Results of a step; listings are separate from the primary numbers."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from bench.designs.findings import DesignFindings
from bench.designs.results import DesignResult, summarize_requests
from bench.percentiles import LatencyHistogram
from bench.workload import RequestKind
from tests.support.bench.canned_findings import create_findings, create_histogram


@pytest.mark.req("TQ-202")
def test_a_result_has_rates_percentiles_and_end_to_end_times() -> None:
    """Requests and jobs per second, p50/p95/p99, and submit to done, in a file with a schema."""
    design = create_findings().designs["monolith"]
    stored = json.loads(design.model_dump_json())
    jsonschema.validate(stored, DesignResult.model_json_schema(mode="serialization"))
    step = stored["steps"][0]
    assert step["primary"]["per_s"] == 7.5
    assert step["jobs"]["done_per_s"] == 1.0
    assert {"p50_ms", "p95_ms", "p99_ms"} <= step["primary"]["latency"].keys()
    assert {"p50_ms", "p95_ms", "p99_ms"} <= step["jobs"]["end_to_end"].keys()


@pytest.mark.req("TQ-204")
def test_listings_are_in_no_primary_number() -> None:
    """A slow listing changes neither the primary rate nor a primary percentile."""
    latencies: dict[RequestKind, LatencyHistogram] = {
        "status": create_histogram(1, 2),
        "list": create_histogram(900),
    }
    answered: dict[RequestKind, int] = {"status": 2, "list": 1}
    failed: dict[RequestKind, dict[str, int]] = {"list": {"UNAVAILABLE": 3}}
    primary = summarize_requests(latencies, answered, failed, 1.0, secondary=False)
    assert (primary.answered, primary.latency.max_ms, primary.failed) == (2, 2, {})
    assert primary.by_kind.keys() == {"status"}
    secondary = summarize_requests(latencies, answered, failed, 1.0, secondary=True)
    assert secondary.answered == 1
    assert secondary.latency.max_ms == pytest.approx(900, rel=1e-3)
    assert secondary.failed == {"list": {"UNAVAILABLE": 3}}


def test_findings_can_be_read_again(tmp_path: Path) -> None:
    """A report can be made from the files alone."""
    found = create_findings()
    found.save(tmp_path)
    assert DesignFindings.load(tmp_path) == found
