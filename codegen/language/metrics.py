"""`metrics.yaml`: metrics over all processes of a system, and alerts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from codegen.language.base import Doc, LowerName, Part, UpperName

MetricName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
ChangeRef = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"),
    Field(description="A transition or update, as `entity.name`; `entity.create` is the creation."),
]
IndexRef = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"),
    Field(description="An index as `entity.name`."),
]


class Counted(Part):
    """Changes that the scripts of the store count, atomically with each change."""

    on: Annotated[tuple[ChangeRef, ...], Field(min_length=1)] = Field(
        description="Transitions and updates, as `entity.name`; `entity.create` and `entity.delete`, too."
    )
    labels: dict[LowerName, LowerName] = Field(
        default={},
        description="Labels, and the record field, an enum, or the `reason` of the edge that each has the "
        "value of.",
    )
    fixed: dict[ChangeRef, dict[LowerName, str]] = Field(
        default={}, description="Labels with a fixed value for one of the changes."
    )
    values: dict[LowerName, tuple[str, ...]] = Field(
        default={},
        description="All values of a label that is no enum; each begins with 0 before anything is counted.",
    )


class Metric(Part):
    """One metric over all processes of the system, from the counters and indexes in Redis."""

    doc: Doc = Field(description="What it measures; the help text of the metric.")
    type: Literal["counter", "gauge", "histogram", "window"] = Field(
        description="`counter`, `gauge` and `histogram` as in Prometheus. A `window` counts the last "
        "seconds, for handlers; it is not exported."
    )
    counts: Counted | None = Field(
        default=None, description="What a counter, a histogram or a window counts; a gauge has none."
    )
    since: LowerName | None = Field(
        default=None,
        description="Record field, a timestamp, from which a histogram measures to the time of the change.",
    )
    buckets: tuple[float, ...] = Field(
        default=(), description="Upper bounds of a histogram in seconds, rising."
    )
    seconds: UpperName | None = Field(
        default=None, description="Variable with the length of a window in seconds, 120 at most."
    )
    size_of: IndexRef | None = Field(
        default=None, description="A gauge of the number of entities in an index, given as `entity.index`."
    )
    age_in: IndexRef | None = Field(
        default=None,
        description="A gauge of the seconds that entities have been in an index with a score, given as "
        "`entity.index`; at the percentiles below.",
    )
    percentiles: tuple[int, ...] = Field(
        default=(),
        description="Percentiles of `age_in`, from 1 to 100, as the label `percentile` if there are "
        "several; 100 is the oldest.",
    )
    states_of: LowerName | None = Field(
        default=None, description="A gauge of the number of entities in each state, of this entity."
    )
    used_of: LowerName | None = Field(
        default=None,
        description="A gauge of the fraction, 0 to 1, of the capacity of all holders of this entity that "
        "is leased.",
    )
    label: LowerName | None = Field(
        default=None,
        description="Label of a gauge that has several values: the enum in the key of the index, or the "
        "state.",
    )
    area: LowerName | None = Field(
        default=None, description="Row of the generated dashboard that shows it; `metrics` by default."
    )


class Alert(Part):
    """An alerting rule of Prometheus."""

    doc: Doc = Field(description="What it means and what to do; the description of the alert.")
    severity: Literal["critical", "warning"] = Field(description="Its label `severity`.")
    expr: str = Field(
        description="PromQL that is true while it fires; metrics, labels and values have to exist."
    )
    for_: Annotated[str, StringConstraints(pattern=r"^[0-9]+[smh]$")] = Field(
        default="0s", alias="for", description="How long the expression has to be true first, such as `5m`."
    )
    summary: Doc = Field(description="One line for the notification.")


class MetricsFile(Part):
    """Metrics over all processes of a system whose entities Redis keeps, and alerts."""

    metrics: dict[MetricName, Metric] = Field(
        default={}, description="Metrics by name; that of a counter ends with `_total`."
    )
    alerts: dict[Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*$")], Alert] = Field(
        default={}, description="Alerts by name."
    )
