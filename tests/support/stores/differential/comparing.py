"""Run sequences on an engine: the first difference from the oracle, made short, and a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec.structs import replace

from runtime.model.lifecycles import Lifecycle
from tests.support.stores.differential.drawing import (
    VARIABLES,
    Setting,
    Step,
    answer_steps,
    draw_setting,
    draw_steps,
)
from tests.support.stores.differential.lanes import Lane, make_lane
from tests.support.stores.differential.operations import Operation, Reopen, Tokens, ask_engine, describe
from tests.support.stores.engines import claims_by_creation, close_opened

REMEMBERED = 512
"""How many drawn sequences are remembered, for the next engine that runs them."""
SHRINKING = 400
"""How many shorter sequences are tried."""


class Difference(NamedTuple):
    """Where an engine has answered something else than the oracle."""

    place: int
    """Of the operation, in its sequence."""
    got: Any


@lru_cache(maxsize=REMEMBERED)
def get_setting(seed: int, number: int) -> Setting:
    """Draw a setting, or remember it."""
    return draw_setting(seed, number)


@lru_cache(maxsize=REMEMBERED)
def get_steps(seed: int, number: int, sequence: int, *, by_creation: bool) -> Sequence[Step]:
    """Draw a sequence, or remember it."""
    return draw_steps(seed, number, sequence, get_setting(seed, number), by_creation=by_creation)


async def compare_setting(
    engine: str, seed: int, number: int, sequences: Sequence[int], *, shrinks: bool = True
) -> None:
    """Run sequences of one setting on an engine; fail with a report where it answers something else."""
    setting = get_setting(seed, number)
    by_creation = claims_by_creation(engine, setting.lifecycle, VARIABLES)
    lane = make_lane(engine, setting)
    try:
        for sequence in sequences:
            steps = get_steps(seed, number, sequence, by_creation=by_creation)
            difference = await run_steps(lane, sequence, steps)
            if difference is not None:
                few: Sequence[Step] = steps[: difference.place + 1]
                if shrinks:
                    few, difference = await _shrink(
                        lane, sequence, steps, difference, by_creation=by_creation
                    )
                told = [*_report(engine, seed, number, sequence, setting, few, difference, len(steps))]
                raise AssertionError("\n".join(told))
        await lane.end()
    finally:
        await close_opened()


async def run_steps(lane: Lane, sequence: int, steps: Sequence[Step]) -> Difference | None:
    """Run a sequence in stores that are empty; return the first difference."""
    stores = await lane.begin(sequence)
    lease = lane.setting.lifecycle.lease
    tokens = Tokens(lease.token) if lease is not None and lease.token else None
    for place, step in enumerate(steps):
        if isinstance(step.operation, Reopen):
            stores = lane.open_stores()
        answer = await ask_engine(step.operation, stores)
        if tokens is not None:
            answer = tokens.rename(answer, step.answer)
        if answer != step.answer:
            return Difference(place, answer)
    return None


async def _shrink(
    lane: Lane, sequence: int, steps: Sequence[Step], difference: Difference, *, by_creation: bool
) -> tuple[Sequence[Step], Difference]:
    """Leave out operations as long as there is a difference; what the oracle answers may become another."""
    found = [*steps[: difference.place + 1]], difference
    tried, size = 0, len(found[0]) // 2
    while size and tried < SHRINKING:
        begin = 0
        while begin < len(found[0]) and tried < SHRINKING:
            left: list[Operation] = [each.operation for each in found[0]]
            del left[begin : begin + size]
            fewer = answer_steps(left, sequence, lane.setting, by_creation=by_creation)
            another = await run_steps(lane, sequence, fewer)
            tried += 1
            if another is None:
                begin += size
            else:
                found = fewer[: another.place + 1], another
        size //= 2
    return found


def _report(
    engine: str,
    seed: int,
    number: int,
    sequence: int,
    setting: Setting,
    steps: Sequence[Step],
    difference: Difference,
    drawn: int,
) -> Iterator[str]:
    last = steps[-1]
    yield f"{engine} answers something else than the oracle, in sequence {sequence} of lifecycle {number}."
    yield f"Again: {replay_command(engine, seed, number, sequence)}"
    yield f"Lifecycle, of which {setting.bound or 'all'} that have ended are kept:"
    yield from (f"  {line}" for line in describe_lifecycle(setting.lifecycle))
    yield f"Operations that show it, {len(steps)} of {drawn}, with what the oracle answers:"
    for place, step in enumerate(steps, 1):
        yield f"  {place}. {describe(step.operation)}"
        yield f"     -> {describe(step.answer)}"
    yield f"{engine} answers to the last of them:"
    yield f"     -> {describe(difference.got)}"
    yield from (f"  {line}" for line in _fields_apart(last.answer, difference.got))


def replay_command(engine: str, seed: int, number: int, sequence: int) -> str:
    """The command that runs one sequence again."""
    place = f"--engine {engine} --seed {seed} --lifecycle {number} --sequence {sequence}"
    return f"nox -s tool -- python -m tests.support.stores.differential {place}"


def describe_lifecycle(lifecycle: Lifecycle) -> Iterator[str]:
    """Write a lifecycle: its edges and updates one a line, and all else before them."""
    yield describe(replace(lifecycle, edges={}, by_name=(), updates={}))
    for change in (*lifecycle.edges.values(), *lifecycle.by_name, *lifecycle.updates.values()):
        yield describe(change)


def _fields_apart(wanted: Any, got: Any, path: str = "") -> Iterator[str]:
    """Name the parts of two answers that are not the same."""
    if wanted == got:
        return
    if type(wanted) is type(got) and hasattr(wanted, "__struct_fields__"):
        for name in wanted.__struct_fields__:
            yield from _fields_apart(getattr(wanted, name), getattr(got, name), f"{path}.{name}")
    elif isinstance(wanted, (list, tuple)) and isinstance(got, (list, tuple)) and len(wanted) == len(got):
        for place, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from _fields_apart(one, other, f"{path}[{place}]")
    else:
        yield f"{path or 'the answer'}: {describe(wanted)} by the oracle, {describe(got)} here"
