"""The servers that a deployment brings along: what each is called and how it is reached in containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from codegen.language.deployments import Deployment
from codegen.source.spec import Spec


@dataclass(frozen=True, slots=True)
class Server:
    """One kind of server. Its container is described in `templates/deploy/<host>.yaml.j2`."""

    host: str
    image: str
    port: int
    password: str
    """The variable with its password, which whoever starts it makes up."""
    place: str
    """Where it is: {account} stands for the system's user and database, {password} for the password."""
    further_ports: tuple[int, ...] = ()
    """Other ports of it: of those that tell where it is if it is one of several, or where others run it."""
    options: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What else its container can be told: default and meaning of each variable."""
    user: str = ""
    """The variable with the name that belongs to the password, where whoever starts it makes that up, too."""
    is_open: bool = False
    """Whether it is used from outside as well."""
    has_usual_place: bool = False
    """Whether those who are not told where it is know where to look."""
    owner_place: str = ""
    """Where it is for the owner of what is in it, where nodes come with a role of their own."""
    service_password: str = ""
    """The variable with the password of that role."""

    @property
    def passwords(self) -> tuple[str, ...]:
        """The variables with its passwords."""
        return tuple(name for name in (self.password, self.service_password) if name)


SERVERS = {
    "postgres": Server(
        host="postgres",
        image="postgres:18-alpine",
        port=5432,
        password="POSTGRES_PASSWORD",
        place="postgresql://{account}_service:{service_password}@postgres:5432/{account}",
        owner_place="postgresql://{account}:{password}@postgres:5432/{account}",
        service_password="POSTGRES_SERVICE_PASSWORD",
    ),
    "redis": Server(
        host="redis",
        image="redis:7-alpine",
        port=6379,
        password="REDIS_PASSWORD",
        place="redis://:{password}@redis:6379/0",
        further_ports=(26379,),
        options={
            "REDIS_APPENDFSYNC": (
                "everysec",
                "When the redis server has a write on disk: always (before it answers) or everysec.",
            ),
            "REDIS_MAXMEMORY": ("1gb", "Memory from which on the redis server takes nothing new."),
        },
    ),
    "s3": Server(
        host="s3",
        image="chrislusf/seaweedfs:4.48",
        port=8333,
        password="AWS_SECRET_ACCESS_KEY",
        place="http://s3:8333",
        further_ports=(443,),
        user="AWS_ACCESS_KEY_ID",
        is_open=True,
        has_usual_place=True,
        options={"S3_PORT": ("8333", "Port of the s3 server on this machine.")},
    ),
}
"""By the name that deployments.yaml has for it."""
SENTINELS = 3
REPLICAS = 2
"""Besides the server itself: with one of three lost, the master still has a replica to write to."""
SENTINEL_PORT = 26379
WATCHED_NETWORK = "${REDIS_NETWORK:-172.31.250}"
"""The first three numbers of the addresses of servers that are watched, as compose reads it."""


def account(spec: Spec) -> str:
    """The user and the database of a system on its server."""
    return spec.name


def url(spec: Spec, name: str) -> str:
    """Where nodes find it, as compose reads it."""
    return _placed(spec, name, SERVERS[name].place)


def owner_url(spec: Spec, name: str) -> str:
    """Where the owner of what is in it finds it, as compose reads it."""
    return _placed(spec, name, SERVERS[name].owner_place)


def _placed(spec: Spec, name: str, place: str) -> str:
    service = _required(SERVERS[name].service_password)
    return place.format(account=account(spec), password=secret(name), service_password=service)


def watched_url(spec: Spec) -> str:
    """Where nodes find the Redis that is the master of its group, as compose reads it."""
    hosts = ",".join(f"{WATCHED_NETWORK}.{21 + index}:{SENTINEL_PORT}" for index in range(SENTINELS))
    password = secret("redis")
    return f"redis+sentinel://:{password}@{hosts}/{account(spec)}?sentinel_password={password}"


def set_up_names(spec: Spec) -> set[str]:
    """The variables that tell which buckets a system needs, and how they have to be."""
    kept = [row.in_s3 for row in spec.lifecycle.entities.values() if row.in_s3 is not None]
    server = SERVERS["s3"]
    found = {
        name
        for each in kept
        for name in (each.endpoint, each.bucket, each.region, each.prefix, each.unversioned)
        if name is not None
    }
    return {server.user, server.password, *found, *(each.retires.days for each in kept if each.retires)}


def has_redis(deployment: Deployment) -> bool:
    """Whether it brings a Redis along, which can be one of several then."""
    return "redis" in deployment.servers


def secret(name: str) -> str:
    """Its password, as compose reads it."""
    return _required(SERVERS[name].password)


def _required(variable: str) -> str:
    return f"${{{variable}:?must be set}}"
