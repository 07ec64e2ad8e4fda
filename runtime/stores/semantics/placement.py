"""Words of meaning that the tables still keep beside the physical names of an engine.

Uniqueness, the order of claims and retention are part of the lifecycle; the tables have them in the part that
says where an entity is kept. This module alone knows that.
"""

from __future__ import annotations

import re

from runtime.model.lifecycles import Index, Lifecycle, Placed

_PLACEHOLDER = re.compile(r"{(\w+)}")


def read_placement(lifecycle: Lifecycle) -> Placed:
    """Return those words, whichever part of a lifecycle has them."""
    return lifecycle.storage.placed if lifecycle.storage is not None else Placed()


def index_fields(index: Index) -> tuple[str, ...]:
    """Return the fields of the record that the key of an index names."""
    return tuple(_PLACEHOLDER.findall(index.key))
