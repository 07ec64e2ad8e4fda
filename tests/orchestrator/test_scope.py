"""Features that this version omits on purpose, and their messages."""

from __future__ import annotations

import pytest

from generated.orchestrator.lifecycle import JOB
from tests.support.orchestrator.stack import Node, submit


@pytest.mark.req("ORC-X04")
def test_a_job_cannot_be_canceled(api: Node) -> None:
    """There are six edges and none is a cancel; the error lists the transitions that exist."""
    assert {edge.name for edge in JOB.edges.values()} == {
        *("accept", "acquire", "complete", "fail", "requeue", "bury"),
    }
    job_id = submit(api.http)
    refused = api.http.delete(f"/jobs/{job_id}")
    assert refused.status_code == 405
    assert refused.json()["error"]["code"] == "METHOD_NOT_ALLOWED"
    assert "GET" in refused.headers["allow"]
    assert api.http.post(f"/jobs/{job_id}/cancel").status_code == 404
    assert api.http.get(f"/jobs/{job_id}").json()["status"] == "PENDING"
