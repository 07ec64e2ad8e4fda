"""Words of meaning that the tables still keep beside the physical names of an engine.

Uniqueness, the order of claims and retention are part of the lifecycle; the tables have them in the part that
says where an entity is kept. This module alone knows that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from runtime.model.lifecycles import Index, Lifecycle

_PLACEHOLDER = re.compile(r"{(\w+)}")


class Placed(Struct, frozen=True):
    """What the part about the engine says of the meaning."""

    unique: Mapping[str, str | None]
    """Fields that no two entities share, and the variable with the seconds for which that holds."""
    indexes: Mapping[str, Index]
    retained_s: str | None
    """The variable with the seconds for which an entity is kept that has ended."""
    trace: str | None


def read_placement(lifecycle: Lifecycle) -> Placed:
    """Collect those words from whichever part a lifecycle has."""
    unique: dict[str, str | None] = {}
    if (kept := lifecycle.kept) is not None:
        return Placed({**dict.fromkeys(kept.unique), **kept.unique_for}, kept.indexes, kept.expires, None)
    if (file := lifecycle.in_sqlite) is not None:
        return Placed({**dict.fromkeys(file.unique), **file.unique_for}, file.indexes, file.expires, None)
    if lifecycle.in_s3 is not None and lifecycle.in_s3.keyed_by:
        unique[lifecycle.in_s3.keyed_by] = None
    hashes = lifecycle.in_redis
    if hashes is None:
        return Placed(unique, {}, None, None)
    unique |= {name: each.seconds for name, each in hashes.unique.items()}
    return Placed(unique, hashes.indexes, hashes.expires, hashes.trace)


def index_fields(index: Index) -> tuple[str, ...]:
    """Return the fields of the record that the key of an index names."""
    return tuple(_PLACEHOLDER.findall(index.key))
