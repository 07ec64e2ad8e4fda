"""Vertical positions of slots: as level as possible along the edges, never closer than the gaps allow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

_SWEEPS = 20
_NEARLY_LEVEL = 12.0
# Extra gap that is left at first, so that nearly level links can still be made level at the end.
_SLACK = 4.0
_BLUNT = (40.0, 40.0, 20.0, 10.0, 6.0, 4.0, 3.0, 2.0, 1.5, 1.0, 1.0, 0.5, 0.5, 0.5)


@dataclass(frozen=True, slots=True)
class Spring:
    """A soft constraint that slot `two` is `rise` lower than slot `one`."""

    one: int
    two: int
    rise: float
    weight: float


def solve_heights(
    columns: Sequence[Sequence[int]], gaps: Sequence[Sequence[float]], springs: Sequence[Spring]
) -> dict[int, float]:
    """Solve for the slots' heights; `gaps` are the least distances from each slot of a column to the next.

    The method is iteratively reweighted least squares: every round weakens the springs that are stretched
    most. So a picture with a few bends and many straight lines wins over one with many slight bends.
    """
    loose = [[gap + _SLACK for gap in column] for column in gaps]
    ys = {
        slot: y for column, gap in zip(columns, loose, strict=True) for slot, y in _stack_column(column, gap)
    }
    for blunt in _BLUNT:
        pulls: dict[int, list[tuple[int, float, float]]] = {slot: [] for slot in ys}
        for spring in springs:
            weight = spring.weight / max(abs(_measure_stretch(spring, ys)), blunt)
            pulls[spring.one].append((spring.two, -spring.rise, weight))
            pulls[spring.two].append((spring.one, spring.rise, weight))
        for sweep in range(_SWEEPS):
            order = range(len(columns)) if sweep % 2 == 0 else range(len(columns) - 1, -1, -1)
            for index in order:
                _solve_column(columns[index], loose[index], pulls, ys)
    _level_links(columns, gaps, springs, ys)
    return ys


def _stack_column(column: Sequence[int], gaps: Sequence[float]) -> list[tuple[int, float]]:
    """Stack the slots of a column one below the other, centred on zero."""
    offsets = _accumulate_gaps(gaps)
    return [(slot, offset - offsets[-1] / 2) for slot, offset in zip(column, offsets, strict=True)]


def _accumulate_gaps(gaps: Sequence[float]) -> list[float]:
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    return offsets


def _solve_column(
    column: Sequence[int],
    gaps: Sequence[float],
    pulls: Mapping[int, Sequence[tuple[int, float, float]]],
    ys: dict[int, float],
) -> None:
    """Set a column's slots to their best heights while all other columns are fixed."""
    targets = []
    offsets = _accumulate_gaps(gaps)
    for slot, offset in zip(column, offsets, strict=True):
        weight = fsum(pull for _, _, pull in pulls[slot]) or 0.001
        aim = fsum((ys[other] + rise) * pull for other, rise, pull in pulls[slot]) / weight
        targets.append((aim - offset, weight))
    for slot, offset, height in zip(column, offsets, _fit_monotone(targets), strict=True):
        ys[slot] = height + offset


def _fit_monotone(targets: Sequence[tuple[float, float]]) -> list[float]:
    """Fit the non-decreasing numbers nearest to the weighted targets (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for target, pull in targets:
        value, weight, count = target, pull, 1
        while blocks and blocks[-1][0] >= value:
            other, heft, members = blocks.pop()
            value = (other * heft + value * weight) / (heft + weight)
            weight += heft
            count += members
        blocks.append((value, weight, count))
    return [value for value, _, count in blocks for _ in range(count)]


def _level_links(
    columns: Sequence[Sequence[int]],
    gaps: Sequence[Sequence[float]],
    springs: Sequence[Spring],
    ys: dict[int, float],
) -> None:
    """Level the links that are nearly level, where there is room to displace a whole connected group."""
    limits = [
        (upper, lower, gap)
        for column, near in zip(columns, gaps, strict=True)
        for upper, lower, gap in zip(column, column[1:], near, strict=False)
    ]
    group = {slot: [slot] for slot in ys}
    for spring in sorted(springs, key=lambda spring: round(abs(_measure_stretch(spring, ys)), 3)):
        stretch = _measure_stretch(spring, ys)
        one, two = group[spring.one], group[spring.two]
        if one is two or abs(stretch) > _NEARLY_LEVEL:
            continue
        candidates = (
            ((two, -stretch), (one, stretch)) if len(two) <= len(one) else ((one, stretch), (two, -stretch))
        )
        for members, offset in candidates:
            if _has_room(set(members), offset, limits, ys):
                ys.update({slot: ys[slot] + offset for slot in members})
                one.extend(two)
                group.update(dict.fromkeys(two, one))
                break


def _measure_stretch(spring: Spring, ys: Mapping[int, float]) -> float:
    return ys[spring.two] - ys[spring.one] - spring.rise


def _has_room(
    members: set[int], offset: float, limits: Sequence[tuple[int, int, float]], ys: Mapping[int, float]
) -> bool:
    """Whether all members can be displaced by `offset` without coming too close to a fixed slot."""
    for upper, lower, gap in limits:
        if (upper in members) != (lower in members):
            distance = ys[lower] - ys[upper] + (offset if lower in members else -offset)
            if distance < gap:
                return False
    return True
