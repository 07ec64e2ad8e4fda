"""The kinds of embedded servers, by their names in deployments.yaml."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis
from runtime.embedded.seaweedfs import EmbeddedSeaweedfs
from runtime.embedded.server import EmbeddedServer

KINDS: Mapping[str, type[EmbeddedServer]] = {
    "postgres": EmbeddedPostgres,
    "redis": EmbeddedRedis,
    "s3": EmbeddedSeaweedfs,
}
