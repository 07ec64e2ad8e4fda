"""Turns a state machine into ordered columns of slots: states, labels and lanes for the edges between.

States stand in even columns. An edge owns one slot in every column it passes, so it never has to go
through a box, and its label takes the middle one of these slots, so labels cannot collide either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import fsum

from codegen.diagram.model import Edge

_STARTS = 12
_SWEEPS = 10


@dataclass(frozen=True, slots=True)
class Chain:
    """An edge as the slots it visits from left to right, both states included."""

    edge: Edge
    slots: tuple[int, ...]
    backward: bool

    @property
    def label(self) -> int:
        """The slot in which the label sits."""
        return self.slots[len(self.slots) // 2]


@dataclass(frozen=True, slots=True)
class Layers:
    """The columns from left to right, each with its slots from top to bottom; state i is slot i."""

    columns: list[list[int]]
    chains: tuple[Chain, ...]
    left: Mapping[int, Sequence[int]]
    right: Mapping[int, Sequence[int]]


def build_layers(states: Sequence[str], initial: str, edges: Sequence[Edge]) -> Layers:
    """The layers of a machine, ordered so that few edges cross; self loops are left out."""
    ranks = rank_states(states, initial, edges)
    columns: list[list[int]] = [[] for _ in range(2 * max(ranks.values()) + 1)]
    for index, state in enumerate(states):
        columns[2 * ranks[state]].append(index)
    chains = _chains(states, ranks, edges, columns)
    left: dict[int, list[int]] = {slot: [] for column in columns for slot in column}
    right: dict[int, list[int]] = {slot: [] for column in columns for slot in column}
    for chain in chains:
        for before, after in pairwise(chain.slots):
            right[before].append(after)
            left[after].append(before)
    return Layers(_ordered(columns, left, right), chains, left, right)


def rank_states(states: Sequence[str], initial: str, edges: Sequence[Edge]) -> dict[str, int]:
    """Each state's longest distance from the initial one, edges that lead back being turned round."""
    order = _topological(states, initial, edges)
    place = {state: index for index, state in enumerate(order)}
    ahead: dict[str, list[str]] = {state: [] for state in order}
    for edge in edges:
        if edge.source != edge.target:
            first, last = sorted((edge.source, edge.target), key=place.__getitem__)
            ahead[first].append(last)
    ranks = dict.fromkeys(order, 0)
    for state in order:
        for target in ahead[state]:
            ranks[target] = max(ranks[target], ranks[state] + 1)
    return ranks


def _topological(states: Sequence[str], initial: str, edges: Sequence[Edge]) -> list[str]:
    """The states in reverse order of depth-first departure, where only loops make an edge lead back.

    Successors are visited as declared in `states`, because authors list a life cycle from birth to death.
    """
    declared = {state: index for index, state in enumerate(states)}
    ahead: dict[str, list[str]] = {state: [] for state in states}
    for edge in edges:
        ahead[edge.source].append(edge.target)
    departed: list[str] = []
    seen: set[str] = set()
    for root in (initial, *states):
        stack = [(root, False)]
        while stack:
            state, leaving = stack.pop()
            if leaving:
                departed.append(state)
            elif state not in seen:
                seen.add(state)
                stack.append((state, True))
                following = sorted(ahead[state], key=declared.__getitem__, reverse=True)
                stack.extend((target, False) for target in following)
    departed.remove(initial)
    return [initial, *reversed(departed)]


def _chains(
    states: Sequence[str], ranks: Mapping[str, int], edges: Sequence[Edge], columns: list[list[int]]
) -> tuple[Chain, ...]:
    """One chain per edge; the new slots are appended to `columns`."""
    index = {state: number for number, state in enumerate(states)}
    chains = []
    fresh = len(states)
    for edge in edges:
        if edge.source == edge.target:
            continue
        first, last = sorted((edge.source, edge.target), key=ranks.__getitem__)
        between = range(2 * ranks[first] + 1, 2 * ranks[last])
        slots = tuple(range(fresh, fresh + len(between)))
        fresh += len(between)
        for column, slot in zip(between, slots, strict=True):
            columns[column].append(slot)
        chains.append(Chain(edge, (index[first], *slots, index[last]), first != edge.source))
    return tuple(chains)


def _ordered(
    columns: list[list[int]], left: Mapping[int, Sequence[int]], right: Mapping[int, Sequence[int]]
) -> list[list[int]]:
    """The columns in the order with the fewest crossings that sweeps from several beginnings come upon."""
    best, fewest = columns, _crossings(columns, right)
    for start in range(_STARTS):
        if not fewest:
            break
        current = [_shuffled(column, start) for column in columns]
        for sweep in range(_SWEEPS):
            _sweep(current, left if sweep % 2 == 0 else right, 1 if sweep % 2 == 0 else -1)
            _swap_neighbours(current, left, right)
            crossings = _crossings(current, right)
            if crossings < fewest:
                best, fewest = [list(column) for column in current], crossings
    return best


def _shuffled(column: Sequence[int], start: int) -> list[int]:
    """The column itself for start 0, else mixed up by arithmetic that is the same everywhere."""
    return sorted(column, key=lambda slot: (slot + 1) * start * 7919 % 1009)


def _sweep(columns: list[list[int]], beside: Mapping[int, Sequence[int]], step: int) -> None:
    """Sorts each column by where its neighbours stand in the one before it, rightwards for step 1."""
    indices = range(len(columns))[::step]
    for fixed, moved in pairwise(indices):
        columns[moved] = _by_barycentre(columns[moved], columns[fixed], beside)


def _by_barycentre(column: list[int], fixed: list[int], beside: Mapping[int, Sequence[int]]) -> list[int]:
    place = _places(fixed)
    stretch = (len(fixed) or 1) / (len(column) or 1)
    keys = {}
    for index, slot in enumerate(column):
        near = [place[other] for other in beside[slot]]
        keys[slot] = fsum(near) / len(near) if near else index * stretch
    return sorted(column, key=keys.__getitem__)


def _swap_neighbours(
    columns: list[list[int]], left: Mapping[int, Sequence[int]], right: Mapping[int, Sequence[int]]
) -> None:
    """Swaps slots next to each other as long as that saves a crossing."""
    for index, column in enumerate(columns):
        before = _places(columns[index - 1]) if index else {}
        after = _places(columns[index + 1]) if index + 1 < len(columns) else {}
        improved = True
        while improved:
            improved = False
            for at in range(len(column) - 1):
                upper, lower = column[at], column[at + 1]
                now = _inversions(left, before, upper, lower) + _inversions(right, after, upper, lower)
                then = _inversions(left, before, lower, upper) + _inversions(right, after, lower, upper)
                if then < now:
                    column[at], column[at + 1] = lower, upper
                    improved = True


def _inversions(beside: Mapping[int, Sequence[int]], place: Mapping[int, int], upper: int, lower: int) -> int:
    return sum(place[one] > place[two] for one in beside[upper] for two in beside[lower])


def _crossings(columns: Sequence[Sequence[int]], right: Mapping[int, Sequence[int]]) -> int:
    total = 0
    for column, following in pairwise(columns):
        place = _places(following)
        for at, upper in enumerate(column):
            total += sum(_inversions(right, place, upper, lower) for lower in column[at + 1 :])
    return total


def _places(column: Sequence[int]) -> dict[int, int]:
    return {slot: index for index, slot in enumerate(column)}
