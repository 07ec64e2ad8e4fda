"""The servers that a deployment brings along: what each is called and how it is reached in containers."""

from __future__ import annotations

from dataclasses import dataclass

from codegen.spec import Spec


@dataclass(frozen=True, slots=True)
class Server:
    """One kind of server. Its container is described in `templates/deploy/<host>.yaml.j2`."""

    host: str
    image: str
    port: int
    password: str
    """The variable with its password, which whoever starts it makes up."""


SERVERS = {"postgres": Server("postgres", "postgres:18-alpine", 5432, "POSTGRES_PASSWORD")}
"""By the name that deployments.yaml has for it."""


def account(spec: Spec) -> str:
    """The user and the database of a system on its server."""
    return spec.name


def url(spec: Spec, name: str) -> str:
    """Where nodes find it, as compose reads it."""
    row = SERVERS[name]
    proof = f"{account(spec)}:{secret(name)}"
    return f"postgresql://{proof}@{row.host}:{row.port}/{account(spec)}"


def secret(name: str) -> str:
    """Its password, as compose reads it."""
    return f"${{{SERVERS[name].password}:?must be set}}"
