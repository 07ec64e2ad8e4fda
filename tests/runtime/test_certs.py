"""Tests of the private authority and the certificates of a deployment's nodes."""

from __future__ import annotations

import re
import stat
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.verification import PolicyBuilder, Store

from runtime import certs
from runtime.certs import Authority, make_certificates
from runtime.node.systems import load_system
from tests.support import quick_yaml

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = load_system("taskqueue")
COMPONENTS = ["gateway", "job", "queue", "coordinator", "worker", "result"]


def run(*arguments: object) -> Result:
    """The command as a user would give it."""
    return CliRunner().invoke(certs.command, [str(each) for each in arguments])


def certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def names(path: Path) -> x509.SubjectAlternativeName:
    return certificate(path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value


def test_each_node_of_one_component_proves_that_component(tmp_path: Path) -> None:
    """A node that hosts one component has that component's URI, and no other, in its certificate."""
    make_certificates(SYSTEM, "microservices", tmp_path)

    for component in COMPONENTS:
        found = names(tmp_path / f"{component}.crt")
        assert found.get_values_for_type(x509.UniformResourceIdentifier) == [
            f"spiffe://taskqueue/{component}"
        ]
        assert found.get_values_for_type(x509.DNSName) == [f"{component}.taskqueue", component, "localhost"]
        assert found.get_values_for_type(x509.IPAddress) == [ip_address("127.0.0.1")]


def test_a_node_of_several_components_proves_itself_as_none_of_them(tmp_path: Path) -> None:
    """A node of several components has its own name as URI, but answers to each component's server name."""
    make_certificates(SYSTEM, "monolith", tmp_path)

    found = names(tmp_path / "monolith.crt")
    assert found.get_values_for_type(x509.UniformResourceIdentifier) == ["spiffe://taskqueue/monolith"]
    assert found.get_values_for_type(x509.DNSName) == [
        *(f"{component}.taskqueue" for component in COMPONENTS),
        "monolith",
        *(f"monolith-{place}" for place in range(6)),
        "localhost",
    ]


def test_a_certificate_is_good_for_both_sides_of_a_connection(tmp_path: Path) -> None:
    """The authority vouches for a node as a server under its names, and as a client."""
    make_certificates(SYSTEM, "microservices", tmp_path)
    policy = PolicyBuilder().store(Store([certificate(tmp_path / "ca.crt")]))
    leaf = certificate(tmp_path / "queue.crt")

    policy.build_server_verifier(x509.DNSName("queue.taskqueue")).verify(leaf, [])
    policy.build_client_verifier().verify(leaf, [])


def test_another_authority_does_not_vouch_for_it(tmp_path: Path) -> None:
    """A certificate of one authority is worth nothing to those who trust another of the same name."""
    make_certificates(SYSTEM, "microservices", tmp_path)
    other = x509.load_pem_x509_certificate(Authority("taskqueue").certificate)
    verifier = PolicyBuilder().store(Store([other])).build_client_verifier()

    with pytest.raises(x509.verification.VerificationError):
        verifier.verify(certificate(tmp_path / "queue.crt"), [])


@pytest.mark.parametrize("deployment", ["microservices", "monolith"])
def test_the_files_are_those_that_compose_asks_for(tmp_path: Path, deployment: str) -> None:
    """The folder has the secrets of the generated compose file, and not the authority's key."""
    path = ROOT / f"generated/taskqueue/deploy/{deployment}/compose.yaml"
    wanted: dict[str, Any] = quick_yaml.read(path.read_text())["secrets"]

    make_certificates(SYSTEM, deployment, tmp_path)

    assert {each.name for each in tmp_path.iterdir()} == set(wanted)


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    """Private keys are elliptic ones that only the user can read, and belong to their certificates."""
    folder = tmp_path / "new"
    make_certificates(SYSTEM, "microservices", folder)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for path in folder.glob("*.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        key = load_pem_private_key(path.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert isinstance(key.curve, ec.SECP256R1)
        assert key.public_key() == certificate(path.with_suffix(".crt")).public_key()


def test_they_last_as_long_as_asked(tmp_path: Path) -> None:
    """The number of days is that of the command line, for the authority and all it signed."""
    result = run("taskqueue.microservices", "--out", tmp_path, "--days", 2)

    assert result.exit_code == 0, result.output
    for path in tmp_path.glob("*.crt"):
        found = certificate(path)
        assert (found.not_valid_after_utc - found.not_valid_before_utc).days == 2


def test_an_authority_is_not_replaced_by_accident(tmp_path: Path) -> None:
    """A second run is refused and changes nothing; `--force` makes everything anew."""
    assert run("taskqueue.microservices", "--out", tmp_path).exit_code == 0
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    refused = run("taskqueue.microservices", "--out", tmp_path)
    assert refused.exit_code == 1
    assert "ca.crt is there already. --force" in refused.output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first

    assert run("taskqueue.microservices", "--out", tmp_path, "--force").exit_code == 0
    assert (tmp_path / "ca.crt").read_bytes() != first["ca.crt"]


def test_each_deployment_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second deployment is given certificates, also by force, and those of the first stay as they are."""
    monkeypatch.chdir(tmp_path)
    first, second = "taskqueue.microservices", "orchestrator.compose"
    assert run(first).exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.glob(f"certs/{first}/*")}

    for options in ((), ("--force",)):
        result = run(second, *options)
        assert (result.exit_code, result.stderr) == (0, "")
        assert f"CERTS_DIR={tmp_path}/certs/{second} " in result.stdout
        assert {path: path.read_bytes() for path in tmp_path.glob(f"certs/{first}/*")} == before
        assert (tmp_path / "certs" / second / "ca.crt").exists()


@pytest.mark.parametrize("name", ["taskqueue.microservices", "taskqueue.monolith", "orchestrator.compose"])
def test_compose_looks_where_the_certificates_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Without options, the folder of the command and that of the generated file are the same."""
    system, _, deployment = name.partition(".")
    place = Path(f"generated/{system}/deploy/{deployment}/compose.yaml")
    secrets: dict[str, Any] = quick_yaml.read((ROOT / place).read_text())["secrets"]
    monkeypatch.chdir(tmp_path)
    run(name)

    for secret, row in secrets.items():
        folder = row["file"].removeprefix("${CERTS_DIR:-").partition("}")[0]
        assert (tmp_path / place.parent / folder / secret).resolve().exists()


def test_the_page_on_deploying_names_files_that_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands in it find the certificates."""
    text = (ROOT / "docs/how-to/deploy.md").read_text(encoding="utf-8")
    found = re.findall(r"-- (\w+\.\w+) .*--ca-file (\S+)", text)
    assert found
    monkeypatch.chdir(tmp_path)
    for deployment, path in found:
        assert run(deployment).exit_code == 0
        assert Path(path).exists()


def test_certificates_of_the_shared_folder_are_kept_and_mentioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For earlier certificates there is a hint on how to use them."""
    monkeypatch.chdir(tmp_path)
    make_certificates(SYSTEM, "microservices", tmp_path / "certs")
    before = (tmp_path / "certs/ca.crt").read_bytes()

    result = run("taskqueue.microservices")
    assert result.exit_code == 0
    assert f"with CERTS_DIR={tmp_path}/certs they go on with the old ones" in result.stderr
    assert (tmp_path / "certs/ca.crt").read_bytes() == before
    assert (tmp_path / "certs/taskqueue.microservices/ca.crt").exists()


def test_the_folder_keeps_itself_out_of_version_control(tmp_path: Path) -> None:
    """Whatever the folder is called, git does not offer its keys for a commit."""
    run("taskqueue.microservices", "--out", tmp_path / "keys")

    assert (tmp_path / "keys" / ".gitignore").read_text() == "*\n"


def test_an_unknown_deployment_is_reported_with_a_suggestion(tmp_path: Path) -> None:
    """A wrong name ends with exit code 2, a suggestion, and nothing written."""
    result = run("taskqueue.microservice", "--out", tmp_path / "none")

    assert result.exit_code == 2
    assert "Did you mean 'taskqueue.microservices'?" in result.output
    assert not (tmp_path / "none").exists()


def test_its_help_lists_the_deployments() -> None:
    """The help says what can stand for SYSTEM.DEPLOYMENT."""
    assert "taskqueue.monolith" in run("--help").output
