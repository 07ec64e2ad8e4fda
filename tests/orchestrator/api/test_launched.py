"""Whole deployments as an operator starts them: with a database of their own, and with certificates."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest

from generated.orchestrator.clients import JobsServiceClient, OperatorServiceClient
from generated.orchestrator.messages import GetJobHistoryRequest, ListJobsRequest
from runtime.call.conditions import Condition
from runtime.certs import Authority
from runtime.launch import Launched, launched
from runtime.transport.tls import Credentials
from tests.support.eventually import eventually
from tests.support.orchestrator.stack import PATIENCE, SHORT, new_key
from tests.support.plain_http import NO_TLS

HISTORY = "/operator/jobs/00000000-0000-4000-8000-000000000000/history"


async def wait_until_completed(http: httpx.AsyncClient, job_id: str) -> None:
    await eventually(
        lambda: http.get(f"/jobs/{job_id}"), wanted=lambda answer: answer.json()["status"] == "COMPLETED"
    )


@pytest.mark.req("ORC-053", "ORC-080", "ORC-105", "ORC-163")
@pytest.mark.parametrize("deployment", ["local", "redis"])
async def test_without_settings_it_has_its_own_server(deployment: str) -> None:
    """Without an address of one and credentials a job is submitted and run by the started nodes api_only."""
    settings = {"POLL_INTERVAL_MS": "50"}
    name = f"orchestrator.{deployment}"
    async with launched(name, ports="auto", tls=False, settings=settings) as running:
        assert running.endpoints.keys() == {"api", "api.grpc", "worker"}
        async with httpx.AsyncClient(
            base_url=running.endpoints["api"], timeout=PATIENCE, verify=NO_TLS
        ) as http:
            body = {"jobType": "echo", "payload": {"hello": "world"}, "idempotencyKey": new_key()}
            answer = await http.post("/jobs", json=body)
            assert (answer.status_code, answer.json()["status"]) == (202, "PENDING")
            await wait_until_completed(http, answer.json()["jobId"])
        async with running.client() as client:
            listed = await client.of(JobsServiceClient).list_jobs(ListJobsRequest(), client.call())
        assert [job.job_id for job in listed.jobs] == [answer.json()["jobId"]]


@pytest.mark.req("ORC-032")
async def test_certificates_authenticate_the_same_callers_over_both_transports(
    database: str, tmp_path: Path
) -> None:
    """Under TLS every caller needs a certificate of the deployment; each has its permissions of the spec."""
    settings = {
        "DATABASE_URL": database,
        **{name: SHORT[name] for name in ("POLL_INTERVAL_MS", "LEASE_SECONDS", "LEASE_RENEW_SECONDS")},
    }
    async with launched("orchestrator.compose", ports="auto", tls=True, settings=settings) as running:
        url = running.endpoints["api"]
        assert url.startswith("https://")
        job_ids = []
        for name, on_jobs, on_history in (("client", 200, 403), ("operator", 200, 404), ("worker", 403, 403)):
            async with httpx.AsyncClient(
                base_url=url, timeout=60, verify=make_client_context(running, name, tmp_path)
            ) as http:
                body = {"jobType": "echo", "payload": {}, "idempotencyKey": new_key()}
                job_ids.append((await http.post("/jobs", json=body)).json()["jobId"])
                assert (await http.get("/jobs")).status_code == on_jobs
                assert (await http.get(HISTORY)).status_code == on_history
                await wait_until_completed(http, job_ids[-1])
        async with httpx.AsyncClient(
            base_url=url, timeout=60, verify=make_client_context(running, None, tmp_path)
        ) as http:
            refused = await http.get("/jobs")
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "UNAUTHENTICATED")
            assert (await http.get("/healthz")).status_code == 200
        with pytest.raises(httpx.TransportError):
            async with httpx.AsyncClient(
                base_url=url, timeout=60, verify=make_foreign_context(running, tmp_path)
            ) as http:
                await http.get("/jobs")
        async with running.client("operator") as client:
            past = await client.of(OperatorServiceClient).get_job_history(
                GetJobHistoryRequest(job_id=job_ids[0]), client.call()
            )
            assert [each.actor for each in past.transitions] == ["api", "api", "worker", "worker"]
        async with running.client("client") as client:
            with pytest.raises(Condition) as denied:
                await client.of(OperatorServiceClient).get_job_history(
                    GetJobHistoryRequest(job_id=job_ids[0]), client.call()
                )
            assert denied.value.code == "actor_not_allowed"


def make_client_context(running: Launched, principal: str | None, folder: Path) -> ssl.SSLContext:
    """The TLS context of a client that trusts the deployment, and may be one of its principals."""
    assert running._credentials is not None
    credentials = running._credentials.for_caller(principal)[0]
    assert credentials is not None
    return make_context(credentials, folder)


def make_foreign_context(running: Launched, folder: Path) -> ssl.SSLContext:
    """A certificate of the right name from an authority that the deployment does not trust."""
    assert running._credentials is not None
    trusted = running._credentials.for_caller(None)[0]
    assert trusted is not None
    issued = Authority("orchestrator").issue("operator")
    return make_context(Credentials(trusted.authority, issued.certificate, issued.key), folder)


def make_context(credentials: Credentials, folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=credentials.authority.decode())
    if credentials.certificate is not None and credentials.key is not None:
        certificate, key = folder / "own.crt", folder / "own.key"
        certificate.write_bytes(credentials.certificate)
        key.write_bytes(credentials.key)
        context.load_cert_chain(certificate, key)
    return context
