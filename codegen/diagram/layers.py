"""Layered graph of a state machine: ordered columns of slots for states, edge labels and edge lanes.

States are in even columns. An edge owns one slot in every column that it crosses, so it never passes
through a box, and its label gets the middle one of these slots, so labels do not collide either.
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
    """An edge as the slots that it crosses from left to right, both states included."""

    edge: Edge
    slots: tuple[int, ...]
    backward: bool

    @property
    def label(self) -> int:
        """The slot of the label."""
        return self.slots[len(self.slots) // 2]


@dataclass(frozen=True, slots=True)
class Layers:
    """The columns from left to right, each with its slots from top to bottom; state i is slot i."""

    columns: list[list[int]]
    chains: tuple[Chain, ...]
    left: Mapping[int, Sequence[int]]
    right: Mapping[int, Sequence[int]]


def build_layers(states: Sequence[str], initial: str, edges: Sequence[Edge]) -> Layers:
    """Build the layers of a machine, ordered for few edge crossings; self loops are left out."""
    ranks = rank_states(states, initial, edges)
    columns: list[list[int]] = [[] for _ in range(2 * max(ranks.values()) + 1)]
    for index, state in enumerate(states):
        columns[2 * ranks[state]].append(index)
    chains = _build_chains(states, ranks, edges, columns)
    left: dict[int, list[int]] = {slot: [] for column in columns for slot in column}
    right: dict[int, list[int]] = {slot: [] for column in columns for slot in column}
    for chain in chains:
        for before, after in pairwise(chain.slots):
            right[before].append(after)
            left[after].append(before)
    return Layers(_order_columns(columns, left, right), chains, left, right)


def rank_states(states: Sequence[str], initial: str, edges: Sequence[Edge]) -> dict[str, int]:
    """Compute each state's longest distance from the initial one, with back edges reversed."""
    order = _sort_topologically(states, initial, edges)
    position = {state: index for index, state in enumerate(order)}
    ahead: dict[str, list[str]] = {state: [] for state in order}
    for edge in edges:
        if edge.source != edge.target:
            first, last = sorted((edge.source, edge.target), key=position.__getitem__)
            ahead[first].append(last)
    ranks = dict.fromkeys(order, 0)
    for state in order:
        for target in ahead[state]:
            ranks[target] = max(ranks[target], ranks[state] + 1)
    return ranks


def _sort_topologically(states: Sequence[str], initial: str, edges: Sequence[Edge]) -> list[str]:
    """Sort the states by reverse postorder of a depth-first search, so that only cycles have back edges.

    Successors are visited as declared in `states`, because authors list a lifecycle from start to end.
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


def _build_chains(
    states: Sequence[str], ranks: Mapping[str, int], edges: Sequence[Edge], columns: list[list[int]]
) -> tuple[Chain, ...]:
    """Build one chain per edge, and append the new slots to `columns`."""
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


def _order_columns(
    columns: list[list[int]], left: Mapping[int, Sequence[int]], right: Mapping[int, Sequence[int]]
) -> list[list[int]]:
    """Order the columns for few crossings: the best result of sweeps from several starting orders."""
    best, fewest = columns, _count_crossings(columns, right)
    for start in range(_STARTS):
        if not fewest:
            break
        current = [_shuffle_column(column, start) for column in columns]
        for sweep in range(_SWEEPS):
            _sort_columns(current, left if sweep % 2 == 0 else right, 1 if sweep % 2 == 0 else -1)
            _swap_neighbours(current, left, right)
            crossings = _count_crossings(current, right)
            if crossings < fewest:
                best, fewest = [list(column) for column in current], crossings
    return best


def _shuffle_column(column: Sequence[int], start: int) -> list[int]:
    """Permute a column: unchanged for start 0, else by arithmetic that is deterministic on every machine."""
    return sorted(column, key=lambda slot: (slot + 1) * start * 7919 % 1009)


def _sort_columns(columns: list[list[int]], neighbours: Mapping[int, Sequence[int]], step: int) -> None:
    """Sort each column by the positions of its neighbours in the column before it, rightwards for step 1."""
    indices = range(len(columns))[::step]
    for fixed, free in pairwise(indices):
        columns[free] = _sort_by_barycentre(columns[free], columns[fixed], neighbours)


def _sort_by_barycentre(
    column: list[int], fixed: list[int], neighbours: Mapping[int, Sequence[int]]
) -> list[int]:
    position = _index_slots(fixed)
    stretch = (len(fixed) or 1) / (len(column) or 1)
    keys = {}
    for index, slot in enumerate(column):
        near = [position[other] for other in neighbours[slot]]
        keys[slot] = fsum(near) / len(near) if near else index * stretch
    return sorted(column, key=keys.__getitem__)


def _swap_neighbours(
    columns: list[list[int]], left: Mapping[int, Sequence[int]], right: Mapping[int, Sequence[int]]
) -> None:
    """Swap adjacent slots as long as that saves a crossing."""
    for index, column in enumerate(columns):
        before = _index_slots(columns[index - 1]) if index else {}
        after = _index_slots(columns[index + 1]) if index + 1 < len(columns) else {}
        improved = True
        while improved:
            improved = False
            for at in range(len(column) - 1):
                upper, lower = column[at], column[at + 1]
                now = _count_inversions(left, before, upper, lower) + _count_inversions(
                    right, after, upper, lower
                )
                then = _count_inversions(left, before, lower, upper) + _count_inversions(
                    right, after, lower, upper
                )
                if then < now:
                    column[at], column[at + 1] = lower, upper
                    improved = True


def _count_inversions(
    neighbours: Mapping[int, Sequence[int]], position: Mapping[int, int], upper: int, lower: int
) -> int:
    return sum(position[one] > position[two] for one in neighbours[upper] for two in neighbours[lower])


def _count_crossings(columns: Sequence[Sequence[int]], right: Mapping[int, Sequence[int]]) -> int:
    total = 0
    for column, following in pairwise(columns):
        position = _index_slots(following)
        for at, upper in enumerate(column):
            total += sum(_count_inversions(right, position, upper, lower) for lower in column[at + 1 :])
    return total


def _index_slots(column: Sequence[int]) -> dict[int, int]:
    return {slot: index for index, slot in enumerate(column)}
