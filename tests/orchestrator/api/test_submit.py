"""POST /jobs."""
import time
from tests.orchestrator.stack import Node, Sql, Stack, submit, final


def test_one(api: Node, sql: Sql) -> None:
    job_id = submit(api.http)
    assert sql.job(job_id)["state"] == "QUEUED"

def test_two(stack: Stack) -> None:
    assert final(stack.api.http, submit(stack.api.http)) == "COMPLETED"
