"""The capacity model, with costs that can be computed by hand."""

from __future__ import annotations

import pytest

from bench.capacity import check_step, count_hops, estimate_node_us, estimate_request_us, extrapolate
from bench.designs.anatomy import CREATE, ENQUEUE, SUBMIT, assemble_anatomy
from bench.designs.collector import CallSpan
from bench.workload import Mix
from tests.support.bench.canned_findings import COSTS, create_findings

SUBMITS = Mix(submit=1)
MIX = Mix(submit=1, status=2, result=1)


def test_calls_between_components_are_counted() -> None:
    """A submit makes two, running its job eight; the mix of four requests has six and those eight."""
    assert count_hops(SUBMITS) == 10
    assert count_hops(MIX) == (2 + 2 * 1 + 2 + 8) / 4


def test_a_monolith_pays_one_rpc_and_in_process_calls() -> None:
    """800 for the RPC, 180 for the submit beyond taking it in, 500 for running the job."""
    assert estimate_request_us(SUBMITS, COSTS, in_process=True) == pytest.approx(800 + 180 + 500)


def test_microservices_pay_every_call_as_an_rpc() -> None:
    """Eleven RPCs, and the handlers' own work, which is the in-process cost less its calls."""
    own = (180 - 2 * 20) + (500 - 8 * 20)
    assert estimate_request_us(SUBMITS, COSTS, in_process=False) == pytest.approx(11 * 800 + own)
    assert set(estimate_node_us(SUBMITS, COSTS, in_process=False)) == {
        *("client", "gateway", "job", "queue", "coordinator", "worker", "result")
    }


def test_a_check_uses_the_cores_that_others_left() -> None:
    """The predicted rate is the free part of the machine over the cost of a request among six nodes."""
    step = (
        create_findings().designs["monolith"].select("ladder", 8)[0].model_copy(update={"other_cpu_s": 4.0})
    )
    found = check_step(step, COSTS, 2, in_process=True)
    assert found.cores_available == 1.0
    assert found.predicted_us == pytest.approx(
        1.25 * estimate_request_us(MIX, COSTS, in_process=True), rel=1e-3
    )
    assert found.predicted_per_s == pytest.approx(1e6 / found.predicted_us, rel=1e-3)


def test_on_six_machines_the_busiest_node_decides() -> None:
    """A monolith's nodes have the same load; of the microservices the busiest one is the limit."""
    alike = extrapolate(MIX, COSTS, in_process=True, slots=6)
    apart = extrapolate(MIX, COSTS, in_process=False, slots=6)
    assert alike.requests_per_s == round(6e6 / alike.node_us["monolith"])
    assert apart.requests_per_s <= round(1e6 / max(apart.node_us.values()))
    assert alike.requests_per_s > apart.requests_per_s


def test_the_segments_of_a_submit_add_up() -> None:
    """Seven stretches from the client and back to it, with nothing left out between them."""
    spans = [
        CallSpan("t", SUBMIT, 100_000, 900_000),
        CallSpan("t", CREATE, 300_000, 400_000),
        CallSpan("t", ENQUEUE, 600_000, 650_000),
        CallSpan("other", SUBMIT, 0, 1),
    ]
    found = assemble_anatomy("taskqueue.microservices", {"t": (0, 1_000_000), "lost": (0, 5)}, spans)
    assert [each.median_us for each in found.segments] == [100, 200, 100, 200, 50, 250, 100]
    assert (found.calls, found.total_median_us) == (1, 1000)
