"""The one record that holds all the tables of a system, and the packages around them."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, fill
from codegen.spec import Spec

MESSAGE_BYTES = 4 * 1024 * 1024
"""gRPC's own limit, for a spec that does not set `limits.message_bytes`."""
CONCURRENT_STREAMS = 1024


def emit(spec: Spec) -> Iterator[Artefact]:
    limits = spec.system.policies.limits
    text = fill(
        "python/system.py.j2",
        spec,
        message_bytes=limits["message_bytes"].value if "message_bytes" in limits else MESSAGE_BYTES,
        concurrent_streams=(
            limits["concurrent_streams"].value if "concurrent_streams" in limits else CONCURRENT_STREAMS
        ),
    )
    yield Artefact(f"generated/{spec.name}/system.py", text)
    yield Artefact(f"generated/{spec.name}/__init__.py", fill("python/package.py.j2", spec))
