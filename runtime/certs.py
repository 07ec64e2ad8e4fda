"""`python -m runtime.certs <system>.<deployment>`: a private CA and short-lived certificates.

The key of the CA is never written: nothing that is left on a disk can sign another certificate. A renewal is
therefore a new CA, which `--force` makes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import click
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from runtime.model.system import Deployment, System
from runtime.node.deployment_argument import ChosenDeployment, DeploymentCommand, deployment_argument
from runtime.node.systems import outside_principals
from runtime.transport.tls import certificate_name, server_name

AUTHORITY_FILE = "ca.crt"
FOLDER = Path("certs")
"""The folder with a folder for each deployment: a CA is trusted by one deployment only."""
DAYS = 7
_SKEW = timedelta(minutes=5)
"""Clock skew: how far behind the clock of a verifier may be."""


class Issued(NamedTuple):
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A CA of one system, whose key is only in memory."""

    def __init__(self, system: str, days: int = DAYS) -> None:
        self._system = system
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._begin = datetime.now(UTC) - _SKEW
        self._end = datetime.now(UTC) + timedelta(days=days)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{system} authority")])
        self._certificate = (
            self._builder(subject, subject, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, principal: str, names: Iterable[str] = ()) -> Issued:
        """Issue a certificate for a principal, which is valid for a server of these names, too."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, principal)])
        known_as: list[x509.GeneralName] = [
            x509.UniformResourceIdentifier(f"spiffe://{self._system}/{principal}"),
            *(x509.DNSName(name) for name in dict.fromkeys((*names, "localhost"))),
            x509.IPAddress(ip_address("127.0.0.1")),
        ]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        issuer = self._certificate.subject
        certificate = (
            self._builder(subject, issuer, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(x509.SubjectAlternativeName(known_as), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Issued(
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
    ) -> x509.CertificateBuilder:
        signer = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._begin)
            .not_valid_after(self._end)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
        )


def make_certificates(system: System, deployment: str, folder: Path, *, days: int = DAYS) -> Authority:
    """Write `ca.crt` and the `.crt` and `.key` of each identity of a deployment."""
    authority = Authority(system.name, days)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, known_as in identities(system, system.deployments[deployment]).items():
        issued = authority.issue(name, known_as)
        _write(folder / f"{name}.key", issued.key, 0o600)
        _write(folder / f"{name}.crt", issued.certificate, 0o644)
    _write(folder / AUTHORITY_FILE, authority.certificate, 0o644)
    return authority


def identities(system: System, deployment: Deployment) -> dict[str, list[str]]:
    """Return the identities of the nodes and external principals of a deployment, with their host names."""
    found: dict[str, list[str]] = {}
    for node in deployment.nodes.values():
        host = node.name.replace("_", "-")
        replicas = [f"{host}-{place}" for place in range(node.replicas)] if node.replicas > 1 else []
        components = [server_name(system.name, component) for component in node.hosts]
        found.setdefault(certificate_name(node), []).extend((*components, host, *replicas))
    for name in outside_principals(system):
        if "certificate" in system.principals[name].proofs:
            found.setdefault(name, [])
    return found


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    """Write a file atomically: no reader sees a part of it, or a key with an open mode."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@click.command(cls=DeploymentCommand)
@deployment_argument
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder for the certificates; {FOLDER}/SYSTEM.DEPLOYMENT if not given.",
)
@click.option(
    "--days", type=click.IntRange(1, 825), default=DAYS, show_default=True, help="They last so long."
)
@click.option("--force", is_flag=True, help="Replace an authority that is there already.")
def command(chosen: ChosenDeployment, out: Path | None, days: int, force: bool) -> None:
    """Make a private authority, and a certificate for each node and each caller outside that has one."""
    if out is None:
        out = FOLDER / str(chosen)
        _mention_shared_folder(out)
    if (out / AUTHORITY_FILE).exists() and not force:
        raise click.ClickException(
            f"{out / AUTHORITY_FILE} is there already. --force makes a new authority and new certificates; "
            "what was started with the old ones has to be started again."
        )
    try:
        make_certificates(chosen.system, chosen.deployment.name, out, days=days)
        # The folder has private keys, so it excludes itself from version control.
        (out / ".gitignore").write_text("*\n")
    except OSError as error:
        raise click.ClickException(f"The certificates cannot be written: {error}") from None
    names = ", ".join(identities(*chosen))
    click.echo(f"{out}/{AUTHORITY_FILE} and, each with .crt and .key: {names}; good for {days} days.")
    click.echo(f"For compose: CERTS_DIR={out.absolute()} RUN_AS={os.getuid()}:{os.getgid()}")


def _mention_shared_folder(out: Path) -> None:
    """Mention certificates in the folder that all deployments shared before."""
    if (FOLDER / AUTHORITY_FILE).exists():
        click.echo(
            f"{FOLDER / AUTHORITY_FILE} stays as it is. Compose files now look in a folder for each "
            f"deployment, here {out}; with CERTS_DIR={FOLDER.absolute()} they go on with the old ones.",
            err=True,
        )


if __name__ == "__main__":
    sys.exit(command.main(prog_name="python -m runtime.certs"))
