"""Metrics over all processes of a system, as in `metrics.yaml`: frozen records, filled in by the generated
module `metrics`. Keys are complete but for the prefix of a deployment.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

WINDOW_SLOTS = 128
"""Max seconds of a window; each second has a slot of a ring buffer."""


class Counts(Struct, frozen=True):
    """Counters that scripts keep in a hash; a field is the metric and its label values, separated by `|`."""

    hash: str
    labels: tuple[str, ...]
    series: tuple[tuple[str, ...], ...]
    """The label values of all series that are exported from the start."""
    bounds: tuple[str, ...] = ()
    """Upper bounds of a histogram, in seconds."""
    seconds: str | None = None
    """The variable with the length of a window."""
    since: str | None = None
    """The record time from which a histogram measures."""
    on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By change: the value of each label, a word, `{field}` of the record, or `<name>` of what is given."""


class IndexSizes(Struct, frozen=True):
    """Gauge: the number of entities in an index."""

    keys: Mapping[str, str]
    """The key of the index for each label value; an empty value where there is but one key."""
    label: str | None
    ordered: bool = True
    """Whether the index is a sorted set."""


class Ages(Struct, frozen=True):
    """Gauge: percentiles of the age of the entities in an index."""

    keys: Mapping[str, str]
    label: str | None
    percentiles: tuple[int, ...]
    """Several are distinguished by a label `percentile`."""


class States(Struct, frozen=True):
    """Gauge: the number of entities in each state."""

    keys: Mapping[str, str]
    label: str | None
    expiring: frozenset[str] = frozenset()
    """States whose entities expire some time after their last change, although the index still has them."""
    expires: str | None = None
    """The variable with that time in seconds."""


class Used(Struct, frozen=True):
    """Gauge: the used part of the capacity of all lease owners."""

    leased: str
    """The index of all leases."""
    holders: tuple[str, ...]
    """The indexes of the owners whose capacity counts."""
    hash: str
    """The key of an owner's hash; `{}` stands for the owner."""
    capacity: str


class Measured(Struct, frozen=True):
    """One metric. Its entity determines the server."""

    name: str
    type: str
    doc: str
    entity: str
    source: Counts | IndexSizes | Ages | States | Used
