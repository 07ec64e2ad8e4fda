"""Who is calling over HTTP: by token, by certificate, or without proof where the listener says so."""

from __future__ import annotations

import importlib
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from runtime.call.conditions import Condition
from runtime.certs import Authority
from runtime.client import Client
from runtime.model.system import System
from tests.runtime.transport.http.counter import TOKENS, Served, bearer
from tests.support.eventually import wait_until
from tests.support.plain_http import NO_TLS

STAMP = "/forms/7/stamp"
PATIENCE_S = 60


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


def test_a_token_proves_its_principal(http: httpx.Client, clerk: httpx.Client) -> None:
    """The matrix is the same as over gRPC."""
    assert clerk.put(STAMP, json={"ink": "red"}).status_code == 200
    assert code(clerk.post("/parcels", json={})) == (403, "NOT_ALLOWED")
    assert code(http.put(STAMP, json={"ink": "red"}, headers=bearer("courier"))) == (403, "NOT_ALLOWED")


@pytest.mark.parametrize(
    "value", ["Bearer wrong", "clerk", "Basic Y2xlcms6", "bearers clerk-secret", "Bearer é"]
)
def test_a_wrong_proof_is_no_proof(http: httpx.Client, value: str) -> None:
    """Not even where no proof is needed: a proof that is given is checked."""
    response = http.get("/forms", headers=[(b"authorization", value.encode())])
    assert code(response) == (401, "STRANGER")
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "bEaReR"])
def test_the_scheme_of_a_token_is_taken_in_any_case(http: httpx.Client, scheme: str) -> None:
    headers = {"authorization": f"{scheme} {TOKENS['clerk']}"}
    assert http.put(STAMP, json={"ink": "red"}, headers=headers).status_code == 200


@pytest.mark.parametrize("second", ["clerk-secret", "courier-secret", "unknown"])
def test_two_authorization_headers_prove_nothing(http: httpx.Client, kiosk: Served, second: str) -> None:
    """Whatever they say: a proxy and a node might each take another one of them."""
    headers = [("authorization", f"Bearer {each}") for each in (TOKENS["clerk"], second)]
    response = http.put(STAMP, json={"ink": "red"}, headers=[*headers, ("x-request-id", f"two-{second}")])
    assert code(response) == (401, "STRANGER")
    assert "more than one authorization header" in response.json()["error"]["message"]
    lines = [line for line in kiosk.log if line.get("request_id") == f"two-{second}"]
    assert [line["event"] for line in lines] == ["call_denied", "rpc_error"]


def test_who_shows_nothing_is_whom_the_listener_says(http: httpx.Client, kiosk: Served) -> None:
    """A courier at this kiosk, although a courier elsewhere has to show a token."""
    http.get("/forms", headers={"x-request-id": "an-unknown-path"})
    line = next(line for line in reversed(kiosk.log) if line.get("request_id") == "an-unknown-path")
    assert line["caller"] == "courier"


def test_a_caller_without_proof_is_unauthenticated(http: httpx.Client) -> None:
    """401 and not 403: the caller is not identified yet. Details of the request are not revealed."""
    assert code(http.put(STAMP, json={"ink": "green"})) == (401, "STRANGER")
    assert code(http.put(STAMP, content=b"{")) == (401, "STRANGER")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]:80", ""]
)
def test_a_page_of_another_site_has_no_principal(http: httpx.Client, host: str) -> None:
    """A foreign name that resolves to this machine does not admit a browser."""
    assert code(http.get("/forms", headers={"host": host})) == (401, "STRANGER")
    assert http.get("/forms", headers={"host": host, **bearer("clerk")}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1.evil.example:80", "null", ""])
def test_nor_is_a_page_that_calls_across(http: httpx.Client, origin: str) -> None:
    """A browser names the site of the page; a page of this machine is a local caller."""
    assert code(http.post("/forms:close", headers={"origin": origin})) == (401, "STRANGER")
    own = http.post("/forms:close", headers={"origin": f"http://localhost:{http.base_url.port}"})
    assert code(own) == (503, "LUNCH_BREAK")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:7080", "[::1]:7080", "127.1.2.3"])
def test_this_machine_has_many_names(http: httpx.Client, host: str) -> None:
    """All of them are its own."""
    assert http.get("/forms", headers={"host": host}).status_code == 200


def test_without_such_a_listener_only_the_anonymous_principal_is_let_in(counter: System) -> None:
    """The desk of the branch knows couriers by their token only; recipients are anonymous everywhere."""
    address = {"VAULT_ADDR": "127.0.0.1:1"}
    with (
        Served(counter, "branch", "desk", address) as desk,
        httpx.Client(base_url=desk.url, timeout=60, verify=NO_TLS) as client,
    ):
        assert client.get("/forms").status_code == 200
        assert code(client.post("/forms/p1/fill", json={"answers": {}})) == (401, "STRANGER")
        assert (
            client.post("/forms/p1/fill", json={"answers": {}}, headers=bearer("courier")).status_code == 202
        )
        unknown = "00000000-0000-4000-8000-000000000000"
        assert code(client.get(f"/parcels/{unknown}")) == (503, "VAULT_CLOSED")


async def test_the_other_listener_has_an_anonymous_caller_of_its_own(kiosk: Served, counter: System) -> None:
    """Over gRPC, too, a caller without proof is the principal of the listener, or unauthenticated."""
    messages = importlib.import_module("generated.counter.messages")
    async with Client(counter, lambda _component: [f"127.0.0.1:{kiosk.node.port}"]) as client:
        desk = client.service("DeskService")
        answer = await desk.fill_form(messages.FillFormRequest(form_name="a", answers="{}"), client.call())
        assert answer.form_name == "a"
        with pytest.raises(Condition, match="no certificate and no token") as caught:
            await desk.stamp_form(messages.StampFormRequest(form_number=1, ink="red"), client.call())
        assert caught.value.code == "stranger"


@pytest.fixture(scope="module")
def authority(counter: System) -> Authority:
    return Authority(counter.name)


@pytest.fixture(scope="module")
def secure(
    counter: System, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """A kiosk with a certificate of its own."""
    folder = tmp_path_factory.mktemp("certificates")
    own = authority.issue("desk")
    for name, content in (("ca", authority.certificate), ("crt", own.certificate), ("key", own.key)):
        (folder / name).write_bytes(content)
    files = {"LOCKER_CERT": "crt", "LOCKER_KEY": "key", "LOCKER_AUTHORITY": "ca"}
    environ = {name: str(folder / file) for name, file in files.items()}
    with Served(counter, "kiosk", "kiosk", environ) as served:
        yield served


def make_tls_context(authority: Authority, tmp_path: Path, principal: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    if principal is not None:
        issued = authority.issue(principal)
        (tmp_path / "crt").write_bytes(issued.certificate)
        (tmp_path / "key").write_bytes(issued.key)
        context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    return context


def test_a_certificate_proves_its_principal(secure: Served, authority: Authority, tmp_path: Path) -> None:
    """By the same name as over gRPC. A principal that proves itself otherwise is refused."""
    url = secure.url.replace("http:", "https:")
    with httpx.Client(
        base_url=url, timeout=60, verify=make_tls_context(authority, tmp_path, "clerk")
    ) as client:
        assert client.put(STAMP, json={"ink": "red"}).status_code == 200
        assert client.put(STAMP, json={"ink": "blue"}).status_code == 200
    with httpx.Client(
        base_url=url, timeout=60, verify=make_tls_context(authority, tmp_path, "courier")
    ) as client:
        assert code(client.get("/forms")) == (401, "STRANGER")


def test_a_certificate_is_optional(secure: Served, authority: Authority, tmp_path: Path) -> None:
    """A token does as well, and health needs no proof at all; one of another authority is refused."""
    url = secure.url.replace("http:", "https:")
    with httpx.Client(base_url=url, timeout=60, verify=make_tls_context(authority, tmp_path)) as client:
        assert client.get("/healthz").status_code == 200
        assert client.put(STAMP, json={"ink": "red"}, headers=bearer("clerk")).status_code == 200
        assert code(client.put(STAMP, json={"ink": "red"})) == (401, "STRANGER")
    stranger = Authority("counter")
    context = make_tls_context(authority, tmp_path)
    issued = stranger.issue("clerk")
    (tmp_path / "crt").write_bytes(issued.certificate)
    (tmp_path / "key").write_bytes(issued.key)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")
    with (
        httpx.Client(base_url=url, timeout=60, verify=context) as client,
        pytest.raises(httpx.TransportError),
    ):
        client.get("/healthz")


def test_plain_http_is_not_spoken_there(secure: Served) -> None:
    """A token that is sent in the clear by mistake gets no answer; the log has a line about it."""
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{secure.url}/healthz")

    def messages() -> list[str]:
        messages = (each["message"] for each in secure.log if each["event"] == "handshake_failed")
        return [each for each in messages if each.endswith("http request")]

    lines = wait_until(messages)
    assert lines == ["a client was refused: http request"]
