"""Servers that are part of a deployment: image, port, credentials and URL of each in containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codegen.language.deployments import Deployment
from codegen.source.spec import Spec


@dataclass(frozen=True, slots=True)
class BundledServer:
    """One kind of server. The template of its container is `templates/deploy/<host>.yaml.j2`."""

    host: str
    image: str
    port: int
    password: str
    """The variable with its password, which the operator chooses."""
    url_template: str
    """Its URL for nodes: {account} is the user and the database of the system, {password} the password."""
    further_ports: tuple[int, ...] = ()
    """Other ports that nodes may have to reach: of sentinels, or of the same service of a cloud provider."""
    options: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Further variables of its container: default and meaning of each."""
    user: str = ""
    """The variable with the user name, where the operator chooses that as well."""
    is_published: bool = False
    """Whether its port is published on the host."""
    has_default_endpoint: bool = False
    """Whether its clients have a default endpoint."""
    owner_url_template: str = ""
    """Its URL for the owner of the tables, where nodes connect with a role of their own."""
    service_password: str = ""
    """The variable with the password of that role."""

    @property
    def passwords(self) -> tuple[str, ...]:
        """The variables with its passwords."""
        return tuple(name for name in (self.password, self.service_password) if name)


SERVERS = {
    "postgres": BundledServer(
        host="postgres",
        image="postgres:18-alpine",
        port=5432,
        password="POSTGRES_PASSWORD",
        url_template="postgresql://{account}_service:{service_password}@postgres:5432/{account}",
        owner_url_template="postgresql://{account}:{password}@postgres:5432/{account}",
        service_password="POSTGRES_SERVICE_PASSWORD",
    ),
    "redis": BundledServer(
        host="redis",
        image="redis:7-alpine",
        port=6379,
        password="REDIS_PASSWORD",
        url_template="redis://:{password}@redis:6379/0",
        further_ports=(26379,),
        options={
            "REDIS_APPENDFSYNC": (
                "everysec",
                "When the redis server syncs writes to disk: always (before it answers) or everysec.",
            ),
            "REDIS_MAXMEMORY": ("1gb", "Memory limit of the redis server, which refuses writes above it."),
        },
    ),
    "s3": BundledServer(
        host="s3",
        image="chrislusf/seaweedfs:4.48",
        port=8333,
        password="AWS_SECRET_ACCESS_KEY",
        url_template="http://s3:8333",
        further_ports=(443,),
        user="AWS_ACCESS_KEY_ID",
        is_published=True,
        has_default_endpoint=True,
        options={"S3_PORT": ("8333", "Port of the s3 server on this machine.")},
    ),
}
"""By its name in deployments.yaml."""
SENTINELS = 3
REPLICAS = 2
"""Replicas beside the master: with one of three servers lost, the master still has a replica to write to."""
SENTINEL_PORT = 26379
SENTINEL_NETWORK = "${REDIS_NETWORK:-172.31.250}"
"""The first three numbers of the addresses of servers and sentinels, in compose syntax."""


def name_account(spec: Spec) -> str:
    """Name the user and the database of a system on its server."""
    return spec.name


def format_url(spec: Spec, name: str) -> str:
    """Format its URL for nodes, in compose syntax."""
    return _format_url(spec, name, SERVERS[name].url_template)


def format_owner_url(spec: Spec, name: str) -> str:
    """Format its URL for the owner of the tables, in compose syntax."""
    return _format_url(spec, name, SERVERS[name].owner_url_template)


def _format_url(spec: Spec, name: str, template: str) -> str:
    service = _require_variable(SERVERS[name].service_password)
    return template.format(
        account=name_account(spec), password=format_password(name), service_password=service
    )


def format_sentinel_url(spec: Spec) -> str:
    """Format the URL of a Redis master that sentinels elect, in compose syntax."""
    hosts = ",".join(f"{SENTINEL_NETWORK}.{21 + index}:{SENTINEL_PORT}" for index in range(SENTINELS))
    password = format_password("redis")
    return f"redis+sentinel://:{password}@{hosts}/{name_account(spec)}?sentinel_password={password}"


def list_bucket_variables(spec: Spec) -> set[str]:
    """List the variables that configure the buckets of a system."""
    buckets = [row.in_s3 for row in spec.lifecycle.entities.values() if row.in_s3 is not None]
    server = SERVERS["s3"]
    found = {
        name
        for each in buckets
        for name in (each.endpoint, each.bucket, each.region, each.prefix, each.unversioned)
        if name is not None
    }
    return {server.user, server.password, *found, *(each.retires.days for each in buckets if each.retires)}


def has_redis(spec: Spec, deployment: Deployment) -> bool:
    """Whether a Redis is part of the deployment, so that it can run with sentinels."""
    return "redis" in spec.servers_of(deployment)


def format_password(name: str) -> str:
    """Format the reference to its password, in compose syntax."""
    return _require_variable(SERVERS[name].password)


def _require_variable(variable: str) -> str:
    return f"${{{variable}:?must be set}}"
