"""What load is put on a design: one file, changed by options, and the same for all that is compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

FOLDER = Path(__file__).parent / "workloads"
Kind = Literal["submit", "status", "result", "cancel", "list"]
SECONDARY: tuple[Kind, ...] = ("list",)
"""What is measured apart, because the designs need not agree on it."""

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]


class Part(BaseModel):
    """A piece of a workload: immutable, and with no room for keys that nobody reads."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Mix(Part):
    """How many requests of each kind there are in a deal."""

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

    def deal(self) -> tuple[Kind, ...]:
        """The kinds of one deal."""
        kinds: tuple[Kind, ...] = ("submit", "status", "result", "cancel", "list")
        return tuple(kind for kind in kinds for _ in range(getattr(self, kind)))

    @classmethod
    def parse(cls, text: str) -> Mix:
        """`submit:status:result`, with `:cancel` and `:list` where they are wanted."""
        numbers = [int(each) if each.isdecimal() else -1 for each in text.split(":")]
        if -1 in numbers or len(numbers) > len(cls.model_fields):
            raise ValueError(f"up to {len(cls.model_fields)} whole numbers with colons between them")
        return cls.model_validate(dict(zip(cls.model_fields, numbers, strict=False)))


class Step(Part):
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


class Load(Part):
    """A step at one level: what one run of the generator does."""

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


class Workload(Part):
    """Everything that decides what is sent, and for how long."""

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
        """The same for the same load, whatever file and options it came from."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def loads(self) -> Iterator[Load]:
        """Every step at every level, in order."""
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

    def changed(self, **options: Any) -> Workload:
        """The same with other values; options that are None are left as they are."""
        given = {name: value for name, value in options.items() if value is not None}
        return Workload.model_validate({**self.model_dump(), **given})

    def with_steps(self, loops: Sequence[str] = ("closed", "open"), **options: Any) -> Workload:
        """The same with other values in every step of these loops."""
        given = {name: value for name, value in options.items() if value is not None}
        steps = {
            name: {**step.model_dump(), **given} if step.loop in loops else step.model_dump()
            for name, step in self.steps.items()
        }
        return self.changed(steps=steps)

    def only(self, names: Sequence[str]) -> Workload:
        """The same with some of its steps."""
        if unknown := [name for name in names if name not in self.steps]:
            raise ValueError(f"no step is called {', '.join(unknown)}. There are: {', '.join(self.steps)}.")
        return self.changed(steps={name: self.steps[name].model_dump() for name in names})


def read(path: Path, *, quick: bool = False) -> Workload:
    """The workload of a file, in full or as its quick form has it."""
    given: dict[str, Any] = yaml.safe_load(path.read_text())
    shorter: dict[str, Any] = given.pop("quick", {})
    if quick:
        levels = shorter.pop("levels", {})
        for name, step in given["steps"].items():
            step["levels"] = levels.get(name, step["levels"])
        given |= shorter
    return Workload.model_validate(given)
