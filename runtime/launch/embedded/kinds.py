"""The kinds of embedded servers, by their names in deployments.yaml."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.launch.embedded.postgres import EmbeddedPostgres
from runtime.launch.embedded.redis import EmbeddedRedis
from runtime.launch.embedded.seaweedfs import EmbeddedSeaweedfs
from runtime.launch.embedded.server import EmbeddedServer

KINDS: Mapping[str, type[EmbeddedServer]] = {
    "postgres": EmbeddedPostgres,
    "redis": EmbeddedRedis,
    "s3": EmbeddedSeaweedfs,
}
