"""Defaults of a command: addresses, certificates and tokens."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from runtime.cli.location import find_chosen_deployment
from runtime.model.system import Deployment, Method, Node, System
from runtime.node.systems import outside_principals, token_variable
from runtime.transport.tls import Credentials


def grpc_ingress(deployment: Deployment, service: str) -> list[Node]:
    """Return the ingress nodes of a deployment with a gRPC listener for a service."""
    nodes = [deployment.nodes[name] for name in deployment.ingress]
    return [each for each in nodes if each.port_variable is not None and service in each.serves]


def default_address(system: System, service: str) -> str | None:
    """Return the default address of a service; None where its port is arbitrary.

    It is that of the chosen deployment, else of the first that has the service.
    """
    order = (find_chosen_deployment(system), *system.deployments.values())
    for node in (node for deployment in order for node in grpc_ingress(deployment, service)):
        variable = node.port_variable or ""
        port = node.defaults.get(variable) or system.variables[variable].default
        return f"127.0.0.1:{port}" if port and int(port) else None
    return None


def token_variables(system: System, method: Method) -> list[str]:
    """Return the variables with tokens of external principals that may call a method, in the spec's order."""
    allowed = system.matrix.get(method.path, {})
    return [
        token_variable(name)
        for name in outside_principals(system)
        if name in allowed and "token" in system.principals[name].proofs
    ]


def choose_token(system: System, methods: Sequence[Method], environ: Mapping[str, str]) -> str | None:
    """Choose the variable with the token: of a principal that may call all of the methods, else the first."""
    by_method = [[name for name in token_variables(system, each) if environ.get(name)] for each in methods]
    for name in by_method[0]:
        if all(name in names for names in by_method):
            return name
    return next(iter(by_method[0]), None)


def check_files(ca_file: Path | None, cert_file: Path | None, key_file: Path | None) -> None:
    """Refuse invalid certificates and keys, and incomplete sets of them."""
    if (cert_file is None) != (key_file is None):
        raise click.UsageError("--cert-file and --key-file are given together or not at all.")
    if cert_file is not None and ca_file is None:
        raise click.UsageError("--cert-file needs --ca-file, the authority behind the server's certificate.")
    if ca_file is None:
        return
    files = (("--ca-file", ca_file), ("--cert-file", cert_file), ("--key-file", key_file))
    authority, *own = (_read(option, file) for option, file in files)
    try:
        Credentials(authority or b"", *own).for_client()
    except (ssl.SSLError, TypeError, ValueError):
        raise click.UsageError(
            f"--cert-file, --key-file: {cert_file} and {key_file} are no certificate and its key in PEM form."
        ) from None


def _read(option: str, file: Path | None) -> bytes | None:
    try:
        return file.read_bytes() if file is not None else None
    except OSError as error:
        raise click.UsageError(f"{option}: {file} cannot be read: {error.strerror}.") from None
