"""What is measured over all processes of a system, as `metrics.yaml` says: frozen records, filled in by the
generated module `metrics`. Keys are written out, but for what every key of a deployment begins with.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

WINDOW_SLOTS = 128
"""How many seconds a window goes back at most; each has a slot that is used again."""


class Counts(Struct, frozen=True):
    """What scripts count in a hash; a field is the metric and the values of its labels, with `|` between."""

    hash: str
    labels: tuple[str, ...]
    series: tuple[tuple[str, ...], ...]
    """The values of the labels of all series that are there from the start."""
    bounds: tuple[str, ...] = ()
    """Upper bounds of a histogram, in seconds."""
    seconds: str | None = None
    """The variable with the length of a window."""


class Sizes(Struct, frozen=True):
    """How many are in an index."""

    keys: Mapping[str, str]
    """Values of the label, and the key of the index for each; an empty label where there is but one key."""
    label: str | None
    ordered: bool = True
    """Whether the index is a sorted set."""


class Ages(Struct, frozen=True):
    """How long those in an index have been there, by rank: the part of them that is not older."""

    keys: Mapping[str, str]
    label: str | None
    percentiles: tuple[int, ...]
    """Where there is more than one, a label `percentile` tells them apart."""


class States(Struct, frozen=True):
    """How many entities are in each state."""

    keys: Mapping[str, str]
    label: str | None
    expiring: frozenset[str] = frozenset()
    """Those that are forgotten some time after their last change, although the index still has them."""
    expires: str | None = None
    """The variable with that time in seconds."""


class Used(Struct, frozen=True):
    """The part of the capacity of all holders that is in use."""

    leased: str
    """The index of all leases."""
    holders: tuple[str, ...]
    """The indexes of the holders whose capacity counts."""
    hash: str
    """The hash of a holder; `{}` stands for its key."""
    capacity: str


class Measured(Struct, frozen=True):
    """One metric. The entity says on which server it is."""

    name: str
    type: str
    doc: str
    entity: str
    source: Counts | Sizes | Ages | States | Used
