"""Authentication: only a certificate or a token proves a principal."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from msgspec.structs import replace

from generated.studio.system import SYSTEM
from runtime.call import identity
from runtime.call.identity import AuthenticationError, Authenticator, token_metadata

TOKENS = {"desk": "a secret", "printer": "another"}
DIGESTS = {name: hashlib.sha256(token.encode()).digest() for name, token in TOKENS.items()}


def by_token(token: str, digests: dict[str, bytes] = DIGESTS) -> str:
    ((header, value),) = token_metadata(token)
    assert header == identity.TOKEN_HEADER
    return Authenticator(SYSTEM, digests).identify((), value)


def by_certificate(*uris: bytes) -> str:
    return Authenticator(SYSTEM, DIGESTS).identify(uris, None)


@pytest.mark.req("CH-65")
@pytest.mark.parametrize("name", TOKENS)
def test_a_token_names_its_principal(name: str) -> None:
    """Each principal is identified by its own token."""
    assert by_token(TOKENS[name]) == name


@pytest.mark.req("CH-65")
@pytest.mark.parametrize("token", ["", "desk", "a secre", "a secret ", "A secret", "é"])
def test_an_unknown_token_is_refused(token: str) -> None:
    """A wrong token is refused, and not treated as no token."""
    with pytest.raises(AuthenticationError, match="not known"):
        by_token(token)


@pytest.mark.req("CH-65")
@pytest.mark.parametrize("value", ["desk", "Basic a secret", "a secret", "bearers a secret", ""])
def test_a_plain_name_in_metadata_is_no_proof(value: str) -> None:
    """Metadata that is no bearer token proves nothing, whatever it claims."""
    with pytest.raises(AuthenticationError, match="no bearer token"):
        Authenticator(SYSTEM, DIGESTS).identify((), value)


@pytest.mark.req("CH-65")
def test_every_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the first token fits or none does, all are compared, each in the time that any takes."""
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def compare(given: bytes, digest: bytes) -> bool:
        compared.append((given, digest))
        return real(given, digest)

    monkeypatch.setattr(hmac, "compare_digest", compare)
    by_token(TOKENS["desk"])
    assert [digest for _, digest in compared] == list(DIGESTS.values())
    with pytest.raises(AuthenticationError):
        by_token("wrong")
    assert len(compared) == 2 * len(DIGESTS)


@pytest.mark.req("CH-65")
def test_a_token_counts_only_for_those_who_may_prove_themselves_by_one() -> None:
    """A digest for the anonymous principal, or for a name that is none, opens nothing."""
    digest = hashlib.sha256(b"t").digest()
    for name in ("visitor", "stranger"):
        with pytest.raises(AuthenticationError):
            by_token("t", {name: digest})


@pytest.mark.req("CH-65")
def test_a_certificate_names_its_principal() -> None:
    """The URI of the certificate names the system and the principal."""
    assert by_certificate(b"spiffe://studio/foreman") == "foreman"


@pytest.mark.req("CH-65")
@pytest.mark.parametrize(
    "uri",
    [
        b"spiffe://locker/desk",
        b"spiffe://studio.evil/desk",
        b"spiffe://studio/desk/more",
        b"spiffe://studio/",
        b"spiffe://studio/stranger",
        b"spiffe://studio/visitor",
        b"https://studio/desk",
        b"x spiffe://studio/desk",
        b"\xff\xfe",
    ],
)
def test_a_certificate_of_anyone_else_is_refused(uri: bytes) -> None:
    """A valid certificate that names another system, or no principal that has one, proves nothing here."""
    with pytest.raises(AuthenticationError, match="no principal here"):
        by_certificate(uri)


@pytest.mark.req("CH-65")
def test_a_certificate_is_never_outranked_by_a_token() -> None:
    """A caller with a certificate is its principal or is refused; a token beside it changes nothing."""
    ((_, value),) = token_metadata(TOKENS["printer"])
    caller = Authenticator(SYSTEM, DIGESTS).identify
    assert caller([b"spiffe://studio/desk"], value) == "desk"
    with pytest.raises(AuthenticationError):
        caller([b"spiffe://locker/desk"], value)


@pytest.mark.req("CH-65")
def test_no_proof_is_the_anonymous_principal() -> None:
    """Without proof a caller is the anonymous principal, or is refused in a system that has none."""
    assert Authenticator(SYSTEM, None).identify((), None) == "visitor"
    proven_only = {name: each for name, each in SYSTEM.principals.items() if not each.anonymous}
    with pytest.raises(AuthenticationError, match="no certificate and no token"):
        Authenticator(replace(SYSTEM, principals=proven_only), None).identify((), None)


@pytest.mark.req("CH-65")
def test_a_certificate_has_one_uri_name() -> None:
    """A certificate with two names is refused, even if each of them is a principal's."""
    names = (b"spiffe://studio/desk", b"spiffe://studio/printer")
    with pytest.raises(AuthenticationError, match="more than one URI name"):
        Authenticator(SYSTEM, DIGESTS).identify(names, None)
