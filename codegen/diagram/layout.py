"""DiagramLayout of a state machine: columns of slots become boxes, label pills and edge routes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from codegen.diagram.layers import Chain, Layers, build_layers
from codegen.diagram.model import DiagramLayout, Edge, EdgeLabel, EdgeRoute, Rect, SelfLoops, StateBox
from codegen.diagram.slot_positions import Spring, solve_heights
from codegen.diagram.text_metrics import NAME_SIZE, NOTE_SIZE, STATE_SIZE, measure_text

MARGIN = 28.0

_BOX_HEIGHT, _BOX_MIN_WIDTH, _BOX_PADDING = 46.0, 92.0, 18.0
_PILL_HEIGHT, _PILL_HEIGHT_BARE, _PILL_MIN_WIDTH, _PILL_PADDING = 37.0, 24.0, 46.0, 11.0
_LOOP_RISE, _LOOP_STACK = 20.0, 7.0
_LANE_HALF = 2.0
_STUB, _CLEARANCE = 9.0, 4.0
_PORT_GAP, _SLOT_GAP, _BOX_GAP, _START_GAP = 17.0, 14.0, 30.0, 42.0
_COLUMN_GAP, _COLUMN_GAP_MAX, _COLUMN_GAP_SLOPE = 42.0, 114.0, 0.45


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a slot: its full width, and its extent above and below its centre line."""

    width: float
    above: float
    below: float
    box: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """A machine in columns, with the size of every slot and each link's offset from a slot's centre line."""

    states: Sequence[str]
    layers: Layers
    loops: Sequence[Sequence[Edge]]
    sizes: Mapping[int, _Size]
    ports: Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True)
class _Grid:
    """The coordinates of each slot: the sides of its column and its centre line."""

    sides: Mapping[int, tuple[float, float]]
    ys: Mapping[int, float]


def lay_out(
    states: Sequence[str], initial: str, terminal: Collection[str], edges: Sequence[Edge]
) -> DiagramLayout:
    """Lay out a machine, rounded to one decimal; raises ValueError on an unknown state."""
    _check_states(states, initial, terminal, edges)
    plan = _build_plan(states, initial, edges)
    ys = _solve_heights(plan)
    grid = _Grid(_place_columns(plan, ys), ys)
    boxes = tuple(
        StateBox(state, _place_box(plan, grid, slot), state == initial, state in terminal)
        for slot, state in enumerate(states)
    )
    start = boxes[states.index(initial)].rect
    return DiagramLayout(
        width=_round(max(right for _, right in grid.sides.values()) + MARGIN),
        height=_round(max(ys[slot] + plan.sizes[slot].below for slot in ys) + MARGIN),
        boxes=boxes,
        routes=tuple(_place_route(plan, grid, boxes, chain) for chain in plan.layers.chains),
        loops=tuple(_place_loops(box, loops) for box, loops in zip(boxes, plan.loops, strict=True) if loops),
        start=(_round(start.x - _START_GAP + 8), start.centre_y),
    )


def _check_states(
    states: Sequence[str], initial: str, terminal: Collection[str], edges: Sequence[Edge]
) -> None:
    known = set(states)
    if len(known) != len(states):
        raise ValueError("a state is listed twice")
    ends = [end for edge in edges for end in (edge.source, edge.target)]
    for state in (initial, *sorted(terminal), *ends):
        if state not in known:
            raise ValueError(f"{state!r} is not one of the states")


def _build_plan(states: Sequence[str], initial: str, edges: Sequence[Edge]) -> _Plan:
    layers = build_layers(states, initial, edges)
    loops = [[edge for edge in edges if edge.source == edge.target == state] for state in states]
    return _Plan(
        states, layers, loops, _measure_slots(states, layers, loops), _place_ports(layers, len(states))
    )


def _measure_slots(
    states: Sequence[str], layers: Layers, loops: Sequence[Sequence[Edge]]
) -> dict[int, _Size]:
    sizes = {slot: _Size(0.0, _LANE_HALF, _LANE_HALF, False) for column in layers.columns for slot in column}
    for chain in layers.chains:
        width, height = _measure_label(chain.edge)
        sizes[chain.label] = _Size(width, height / 2, height / 2, False)
    for slot, state in enumerate(states):
        links = max(len(layers.left[slot]), len(layers.right[slot]))
        half = max(_BOX_HEIGHT, links * _PORT_GAP + 12) / 2
        pills = [_measure_label(edge) for edge in loops[slot]]
        tower = sum((height + _LOOP_STACK for _, height in pills), _LOOP_RISE if pills else 0.0)
        width = max([_measure_box(state), *(width for width, _ in pills)])
        sizes[slot] = _Size(width, half + tower, half, True)
    return sizes


def _measure_box(state: str) -> float:
    return max(_BOX_MIN_WIDTH, measure_text(state, STATE_SIZE) + 2 * _BOX_PADDING)


def _measure_label(edge: Edge) -> tuple[float, float]:
    widest = max(measure_text(edge.name, NAME_SIZE), measure_text(edge.note, NOTE_SIZE))
    height = _PILL_HEIGHT if edge.name and edge.note else _PILL_HEIGHT_BARE
    return max(widest + 2 * _PILL_PADDING, _PILL_MIN_WIDTH), height


def _place_ports(layers: Layers, states: int) -> dict[tuple[int, int], float]:
    """Spread the links over the sides of a state in the order of their other ends, so they do not cross."""
    position = {slot: index for column in layers.columns for index, slot in enumerate(column)}
    ports: dict[tuple[int, int], float] = {}
    for side in (layers.left, layers.right):
        for slot, others in side.items():
            spread = _PORT_GAP if slot < states else 0.0
            for index, other in enumerate(sorted(others, key=position.__getitem__)):
                ports[slot, other] = (index - (len(others) - 1) / 2) * spread
    return ports


def _solve_heights(plan: _Plan) -> dict[int, float]:
    """Compute every slot's centre line, the topmost slot starting at the margin."""
    columns, sizes = plan.layers.columns, plan.sizes
    gaps = [
        [_measure_gap(sizes[upper], sizes[lower]) for upper, lower in pairwise(column)] for column in columns
    ]
    springs = []
    for chain in plan.layers.chains:
        for one, two in pairwise(chain.slots):
            rise = plan.ports[one, two] - plan.ports[two, one]
            springs.append(Spring(one, two, rise, _weigh_link(plan, chain, one, two)))
    ys = solve_heights(columns, gaps, springs)
    top = min(y - sizes[slot].above for slot, y in ys.items())
    return {slot: y - top + MARGIN for slot, y in ys.items()}


def _weigh_link(plan: _Plan, chain: Chain, one: int, two: int) -> float:
    """Weigh how level a link should be: most of all far from boxes, least where many edges fan out."""
    if plan.sizes[one].box:
        fan = len(plan.layers.right[one])
    elif plan.sizes[two].box:
        fan = len(plan.layers.left[two])
    else:
        return 4.0
    return (1.0 + 1.0 / fan) * (1.5 if len(chain.slots) == 3 else 1.0)


def _measure_gap(upper: _Size, lower: _Size) -> float:
    return upper.below + lower.above + (_BOX_GAP if upper.box and lower.box else _SLOT_GAP)


def _place_columns(plan: _Plan, ys: Mapping[int, float]) -> dict[int, tuple[float, float]]:
    """Compute the left and right side of every slot's column; steep edges widen the gap that they cross."""
    sides = {}
    x = MARGIN + _START_GAP
    for column in plan.layers.columns:
        width = max(plan.sizes[slot].width for slot in column)
        sides.update(dict.fromkeys(column, (x, x + width)))
        climbs = [
            abs(ys[slot] + plan.ports[slot, other] - ys[other] - plan.ports[other, slot])
            for slot in column
            for other in plan.layers.right[slot]
        ]
        gap = _COLUMN_GAP + _COLUMN_GAP_SLOPE * max(climbs, default=0.0)
        x += width + min(gap, _COLUMN_GAP_MAX)
    return sides


def _place_box(plan: _Plan, grid: _Grid, slot: int) -> Rect:
    """Place a state's box, as wide as the widest name in its column needs."""
    left, right = grid.sides[slot]
    width = max(
        _measure_box(state) for other, state in enumerate(plan.states) if grid.sides[other] == (left, right)
    )
    half = plan.sizes[slot].below
    return _build_rect((left + right) / 2, grid.ys[slot] - half, width, 2 * half)


def _place_route(plan: _Plan, grid: _Grid, boxes: Sequence[StateBox], chain: Chain) -> EdgeRoute:
    first, *between, last = chain.slots
    leave = grid.ys[first] + plan.ports[first, between[0]]
    arrive = grid.ys[last] + plan.ports[last, between[-1]]
    points = [(boxes[first].rect.right, leave), (grid.sides[first][1] + _STUB, leave)]
    for slot in between:
        left, right = grid.sides[slot]
        points.extend((x, grid.ys[slot]) for x in (left - _CLEARANCE, right + _CLEARANCE))
    points.extend([(grid.sides[last][0] - _STUB, arrive), (boxes[last].rect.x, arrive)])
    rounded = tuple((_round(x), _round(y)) for x, y in (reversed(points) if chain.backward else points))
    width, height = _measure_label(chain.edge)
    left, right = grid.sides[chain.label]
    rect = _build_rect((left + right) / 2, grid.ys[chain.label] - height / 2, width, height)
    return EdgeRoute(chain.edge, EdgeLabel(chain.edge, rect), rounded)


def _place_loops(box: StateBox, edges: Sequence[Edge]) -> SelfLoops:
    labels = []
    bottom = box.rect.y - _LOOP_RISE
    for edge in edges:
        width, height = _measure_label(edge)
        labels.append(EdgeLabel(edge, _build_rect(box.rect.centre_x, bottom - height, width, height)))
        bottom -= height + _LOOP_STACK
    return SelfLoops(box, tuple(labels))


def _build_rect(centre_x: float, top: float, width: float, height: float) -> Rect:
    return Rect(_round(centre_x - width / 2), _round(top), _round(width), _round(height))


def _round(number: float) -> float:
    return round(number, 1)
