"""Workloads: one file with recorded defaults, and options that change it without a change of code."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from bench.workload import FOLDER, Mix, read_workload

FULL = read_workload(FOLDER / "taskqueue.yaml")


@pytest.mark.req("CH-93", "TQ-203")
def test_the_defaults_are_those_of_the_requirements() -> None:
    """Warm-up 10 s, run 60 s, concurrency 1/8/32, mix 1:2:1."""
    ladder = FULL.steps["ladder"]
    assert (FULL.warm_up_s, FULL.run_s) == (10.0, 60.0)
    assert list(ladder.levels) == [1, 8, 32]
    assert ladder.mix == Mix(submit=1, status=2, result=1)
    assert (ladder.loop, ladder.job_ms) == ("closed", 0)


@pytest.mark.req("TQ-203")
def test_concurrency_duration_and_mix_are_options() -> None:
    """Each of the three factors can be set without touching the file; what is not set stays."""
    changed = FULL.with_steps(["closed"], levels=(2, 4)).with_steps(
        mix=Mix.parse("3:1:1:1").model_dump(), job_ms=25
    )
    assert list(changed.steps["ladder"].levels) == [2, 4]
    assert changed.steps["steady"].levels == FULL.steps["steady"].levels
    assert all(step.mix == Mix(submit=3, status=1, result=1, cancel=1) for step in changed.steps.values())
    assert all(step.job_ms == 25 for step in changed.steps.values())
    assert changed.digest != FULL.digest


def test_the_quick_form_has_the_same_steps() -> None:
    """It is shorter and nothing else."""
    quick = read_workload(FOLDER / "taskqueue.yaml", quick=True)
    assert quick.steps.keys() == FULL.steps.keys()
    assert quick.seed == FULL.seed
    assert sum(load.run_s for load in quick.loads()) * 10 < sum(load.run_s for load in FULL.loads())


def test_a_workload_that_makes_no_sense_is_refused() -> None:
    """Mixes without submits, fractions of users and unknown steps or keys are refused."""
    with pytest.raises(ValidationError, match="at least one submit"):
        Mix.parse("0:1:1")
    with pytest.raises(ValidationError, match="whole number of users"):
        FULL.with_steps(["closed"], levels=(1.5,))
    with pytest.raises(ValueError, match="no step is called ladders"):
        FULL.select_steps(["ladders"])
    with pytest.raises(ValidationError, match="run_seconds"):
        FULL.with_options(run_seconds=3)
