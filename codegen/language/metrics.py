"""`metrics.yaml`: metrics over all processes of a system, and alerts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from codegen.language.base import Doc, LowerName, Part, UpperName

MetricName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
ChangeRef = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"),
    Field(description="A transition or shift, as `entity.name`; `entity.create` is the creation."),
]
IndexRef = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$"),
    Field(description="An index as `entity.name`."),
]


class Counted(Part):
    """Something that scripts count. Each label is a field of the record, a given value, or a fixed text."""

    on: Annotated[tuple[ChangeRef, ...], Field(min_length=1)]
    labels: dict[LowerName, LowerName] = Field(
        default={},
        description="Labels and the enum field of the record, or the reason, that each has the value of.",
    )
    fixed: dict[ChangeRef, dict[LowerName, str]] = Field(
        default={}, description="Labels that one of the happenings always has."
    )
    values: dict[LowerName, tuple[str, ...]] = Field(
        default={},
        description="All values of labels that are no enum; there is a zero for each from the start.",
    )


class Metric(Part):
    """One metric."""

    doc: Doc
    type: Literal["counter", "gauge", "histogram", "window"]
    counts: Counted | None = None
    since: LowerName | None = Field(
        default=None, description="Record time from which a histogram measures, to the moment of the change."
    )
    buckets: tuple[float, ...] = Field(default=(), description="Upper bounds of a histogram, in seconds.")
    seconds: UpperName | None = Field(
        default=None, description="The variable with the length of a window; it is not exported."
    )
    size_of: IndexRef | None = Field(default=None, description="How many are in an index, by its enum.")
    age_in: IndexRef | None = Field(default=None, description="How long those in an index have waited.")
    percentiles: tuple[int, ...] = ()
    states_of: LowerName | None = Field(default=None, description="How many entities are in each state.")
    used_of: LowerName | None = Field(
        default=None, description="The part of all capacity of the holders of this entity that is in use."
    )
    label: LowerName | None = Field(default=None, description="The label of a gauge that has one.")
    area: LowerName | None = Field(default=None, description="The row of the dashboard that shows it.")


class Alert(Part):
    """When somebody is to be told."""

    doc: Doc
    severity: Literal["critical", "warning"]
    expr: str = Field(description="In PromQL.")
    for_: Annotated[str, StringConstraints(pattern=r"^[0-9]+[smh]$")] = Field(default="0s", alias="for")
    summary: Doc


class MetricsFile(Part):
    """Metrics and alerts."""

    metrics: dict[MetricName, Metric] = {}
    alerts: dict[Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*$")], Alert] = {}
