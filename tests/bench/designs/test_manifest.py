"""The manifest, by which a reader can judge a measurement or repeat it."""

from __future__ import annotations

import json

import jsonschema
import pytest

from bench.designs.manifest import Manifest, describe_machine
from generated.taskqueue.system import SYSTEM
from tests.support.bench.canned_findings import LAUNCHES, WORKLOAD, create_manifest


@pytest.mark.req("TQ-201")
def test_a_manifest_has_its_schema_and_reads_back() -> None:
    """The file that is written is valid by the schema of the models, and gives the same manifest again."""
    text = create_manifest().model_dump_json()
    jsonschema.validate(json.loads(text), Manifest.model_json_schema(mode="serialization"))
    assert Manifest.model_validate_json(text) == create_manifest()


@pytest.mark.req("TQ-201")
def test_a_manifest_records_the_circumstances() -> None:
    """Spec, versions, cores, load before, workload with its warm-up and run, order of the runs."""
    found = create_manifest()
    assert found.designs["monolith"].spec_digest == SYSTEM.digest
    assert found.workload == WORKLOAD
    assert (found.machine.cores, found.machine.load_before) == (2, (0.1, 0.2, 0.3))
    assert found.order == ("taskqueue.microservices", "taskqueue.monolith") * 2


@pytest.mark.req("CH-91")
def test_a_manifest_lists_the_nodes_in_their_order() -> None:
    """The owner of a job depends on the order of the nodes, so every launch has its list."""
    found = create_manifest().designs["monolith"]
    assert found.launches == (LAUNCHES["monolith"].addresses,) * 2
    assert found.nodes == tuple(f"monolith-{each}" for each in range(6))


@pytest.mark.req("CH-24")
def test_a_manifest_notes_the_bound_on_submit_keys() -> None:
    """It is per process, so the monolith's is six times as large in all; a note says so."""
    found = create_manifest()
    assert found.designs["microservices"].dedup.in_all == 10_000
    assert found.designs["monolith"].dedup.in_all == 60_000
    assert "monolith remembers 60000 submit keys in all (10000 a process)" in found.notes[0]


def test_the_machine_is_described_as_it_is() -> None:
    """Versions are those that run here."""
    found = describe_machine()
    assert found.cores >= 1
    assert found.packages["grpcio"]
