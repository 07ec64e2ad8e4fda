"""Workload of a benchmark: one file, changed by options, and the same for all designs of a comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

FOLDER = Path(__file__).parent / "workloads"
RequestKind = Literal["submit", "status", "result", "cancel", "list"]
SECONDARY: tuple[RequestKind, ...] = ("list",)
"""Kinds that are measured apart, because the designs may differ in them."""

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class WorkloadPart(BaseModel):
    """Base of the parts of a workload: immutable, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Mix(WorkloadPart):
    """The number of requests of each kind in one cycle."""

    submit: Count = 0
    status: Count = 0
    result: Count = 0
    cancel: Count = 0
    list: Count = 0

    @model_validator(mode="after")
    def _has_submits(self) -> Mix:
        if not self.submit:
            raise ValueError("a mix needs at least one submit: the other requests are about submitted jobs")
        return self

    def expand(self) -> tuple[RequestKind, ...]:
        """List the kinds of one cycle, each as often as the mix has it."""
        kinds: tuple[RequestKind, ...] = ("submit", "status", "result", "cancel", "list")
        return tuple(kind for kind in kinds for _ in range(getattr(self, kind)))

    @classmethod
    def parse(cls, text: str) -> Mix:
        """Parse `submit:status:result[:cancel[:list]]`."""
        numbers = [int(each) if each.isdecimal() else -1 for each in text.split(":")]
        if -1 in numbers or len(numbers) > len(cls.model_fields):
            raise ValueError(f"up to {len(cls.model_fields)} whole numbers with colons between them")
        return cls.model_validate(dict(zip(cls.model_fields, numbers, strict=False)))


class Step(WorkloadPart):
    """One kind of load, at one or more levels."""

    about: str
    loop: Literal["closed", "open"]
    levels: Annotated[tuple[Positive, ...], Field(min_length=1)]
    mix: Mix
    job_ms: Count = 0
    payload_bytes: Count = 64
    keyed_share: Annotated[float, Field(ge=0, le=1)] = 0.0

    @model_validator(mode="after")
    def _users_are_whole(self) -> Step:
        if self.loop == "closed" and any(level != int(level) for level in self.levels):
            raise ValueError("a closed loop has a whole number of users")
        return self


class Load(WorkloadPart):
    """A step at one level: the input of one run of the generator."""

    step: str
    loop: Literal["closed", "open"]
    level: float
    mix: Mix
    job_ms: int
    payload_bytes: int
    keyed_share: float
    seed: int
    warm_up_s: float
    run_s: float

    @property
    def title(self) -> str:
        unit = "users" if self.loop == "closed" else "requests/s"
        return f"{self.step}, {self.level:g} {'user' if self.level == 1 and unit == 'users' else unit}"


class Workload(WorkloadPart):
    """All inputs of the generator: the loads, their times and the seed."""

    name: str
    seed: int
    tls: bool
    clients: Annotated[int, Field(ge=1)]
    warm_up_s: Annotated[float, Field(ge=0)]
    run_s: Positive
    drain_s: Positive
    repeats: Annotated[int, Field(ge=1)]
    steps: Annotated[Mapping[str, Step], Field(min_length=1)]

    @property
    def digest(self) -> str:
        """A hash of the workload, independent of the file and options that it came from."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def loads(self) -> Iterator[Load]:
        """List every step at every level, in order."""
        for name, step in self.steps.items():
            for level in step.levels:
                yield Load(
                    step=name,
                    loop=step.loop,
                    level=level,
                    mix=step.mix,
                    job_ms=step.job_ms,
                    payload_bytes=step.payload_bytes,
                    keyed_share=step.keyed_share,
                    seed=self.seed,
                    warm_up_s=self.warm_up_s,
                    run_s=self.run_s,
                )

    def with_options(self, **options: Any) -> Workload:
        """Copy with other values; options that are None do not change anything."""
        values = {name: value for name, value in options.items() if value is not None}
        return Workload.model_validate({**self.model_dump(), **values})

    def with_steps(self, loops: Sequence[str] = ("closed", "open"), **options: Any) -> Workload:
        """Copy with other values in every step of these loops."""
        values = {name: value for name, value in options.items() if value is not None}
        steps = {
            name: {**step.model_dump(), **values} if step.loop in loops else step.model_dump()
            for name, step in self.steps.items()
        }
        return self.with_options(steps=steps)

    def select_steps(self, names: Sequence[str]) -> Workload:
        """Copy with only the named steps."""
        if unknown := [name for name in names if name not in self.steps]:
            raise ValueError(f"no step is called {', '.join(unknown)}. There are: {', '.join(self.steps)}.")
        return self.with_options(steps={name: self.steps[name].model_dump() for name in names})


def read_workload(path: Path, *, quick: bool = False) -> Workload:
    """Read the workload of a file, in full or in its quick form."""
    values: dict[str, Any] = yaml.safe_load(path.read_text())
    shorter: dict[str, Any] = values.pop("quick", {})
    if quick:
        levels = shorter.pop("levels", {})
        for name, step in values["steps"].items():
            step["levels"] = levels.get(name, step["levels"])
        values |= shorter
    return Workload.model_validate(values)
