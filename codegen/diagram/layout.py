"""Places a state machine in the plane: columns of slots become boxes, label pills and edge routes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from codegen.diagram.layers import Chain, Layers, build_layers
from codegen.diagram.metrics import NAME_SIZE, NOTE_SIZE, STATE_SIZE, text_width
from codegen.diagram.model import Edge, Label, Layout, Loop, Rect, Route, StateBox
from codegen.diagram.slot_heights import Spring, settle

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
    """What a slot needs: its full width, and how far it reaches above and below its centre line."""

    width: float
    above: float
    below: float
    box: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """A machine in columns, with what every slot needs and where each link leaves a slot's centre line."""

    states: Sequence[str]
    layers: Layers
    loops: Sequence[Sequence[Edge]]
    sizes: Mapping[int, _Size]
    ports: Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where each slot came to lie: the sides of its column and its centre line."""

    sides: Mapping[int, tuple[float, float]]
    ys: Mapping[int, float]


def lay_out(states: Sequence[str], initial: str, terminal: Collection[str], edges: Sequence[Edge]) -> Layout:
    """The finished layout of a machine, rounded to one decimal; raises ValueError on an unknown state."""
    _check(states, initial, terminal, edges)
    plan = _plan(states, initial, edges)
    ys = _heights(plan)
    grid = _Grid(_sides(plan, ys), ys)
    boxes = tuple(
        StateBox(state, _box_rect(plan, grid, slot), state == initial, state in terminal)
        for slot, state in enumerate(states)
    )
    start = boxes[states.index(initial)].rect
    return Layout(
        width=_round(max(right for _, right in grid.sides.values()) + MARGIN),
        height=_round(max(ys[slot] + plan.sizes[slot].below for slot in ys) + MARGIN),
        boxes=boxes,
        routes=tuple(_route(plan, grid, boxes, chain) for chain in plan.layers.chains),
        loops=tuple(_loop(box, loops) for box, loops in zip(boxes, plan.loops, strict=True) if loops),
        start=(_round(start.x - _START_GAP + 8), start.centre_y),
    )


def _check(states: Sequence[str], initial: str, terminal: Collection[str], edges: Sequence[Edge]) -> None:
    known = set(states)
    if len(known) != len(states):
        raise ValueError("a state is listed twice")
    ends = [end for edge in edges for end in (edge.source, edge.target)]
    for state in (initial, *sorted(terminal), *ends):
        if state not in known:
            raise ValueError(f"{state!r} is not one of the states")


def _plan(states: Sequence[str], initial: str, edges: Sequence[Edge]) -> _Plan:
    layers = build_layers(states, initial, edges)
    loops = [[edge for edge in edges if edge.source == edge.target == state] for state in states]
    return _Plan(states, layers, loops, _sizes(states, layers, loops), _ports(layers, len(states)))


def _sizes(states: Sequence[str], layers: Layers, loops: Sequence[Sequence[Edge]]) -> dict[int, _Size]:
    sizes = {slot: _Size(0.0, _LANE_HALF, _LANE_HALF, False) for column in layers.columns for slot in column}
    for chain in layers.chains:
        width, height = _pill_size(chain.edge)
        sizes[chain.label] = _Size(width, height / 2, height / 2, False)
    for slot, state in enumerate(states):
        links = max(len(layers.left[slot]), len(layers.right[slot]))
        half = max(_BOX_HEIGHT, links * _PORT_GAP + 12) / 2
        pills = [_pill_size(edge) for edge in loops[slot]]
        tower = sum((height + _LOOP_STACK for _, height in pills), _LOOP_RISE if pills else 0.0)
        width = max([_box_width(state), *(width for width, _ in pills)])
        sizes[slot] = _Size(width, half + tower, half, True)
    return sizes


def _box_width(state: str) -> float:
    return max(_BOX_MIN_WIDTH, text_width(state, STATE_SIZE) + 2 * _BOX_PADDING)


def _pill_size(edge: Edge) -> tuple[float, float]:
    widest = max(text_width(edge.name, NAME_SIZE), text_width(edge.note, NOTE_SIZE))
    height = _PILL_HEIGHT if edge.name and edge.note else _PILL_HEIGHT_BARE
    return max(widest + 2 * _PILL_PADDING, _PILL_MIN_WIDTH), height


def _ports(layers: Layers, states: int) -> dict[tuple[int, int], float]:
    """Links spread over the sides of a state in the order of what they lead to, so they do not tangle."""
    place = {slot: index for column in layers.columns for index, slot in enumerate(column)}
    ports: dict[tuple[int, int], float] = {}
    for side in (layers.left, layers.right):
        for slot, others in side.items():
            spread = _PORT_GAP if slot < states else 0.0
            for index, other in enumerate(sorted(others, key=place.__getitem__)):
                ports[slot, other] = (index - (len(others) - 1) / 2) * spread
    return ports


def _heights(plan: _Plan) -> dict[int, float]:
    """Every slot's centre line, the topmost slot starting at the margin."""
    columns, sizes = plan.layers.columns, plan.sizes
    gaps = [
        [_distance(sizes[upper], sizes[lower]) for upper, lower in pairwise(column)] for column in columns
    ]
    springs = []
    for chain in plan.layers.chains:
        for one, two in pairwise(chain.slots):
            rise = plan.ports[one, two] - plan.ports[two, one]
            springs.append(Spring(one, two, rise, _stiffness(plan, chain, one, two)))
    ys = settle(columns, gaps, springs)
    top = min(y - sizes[slot].above for slot, y in ys.items())
    return {slot: y - top + MARGIN for slot, y in ys.items()}


def _stiffness(plan: _Plan, chain: Chain, one: int, two: int) -> float:
    """How much a link should be level: most of all far from boxes, least where many edges fan out."""
    if plan.sizes[one].box:
        fan = len(plan.layers.right[one])
    elif plan.sizes[two].box:
        fan = len(plan.layers.left[two])
    else:
        return 4.0
    return (1.0 + 1.0 / fan) * (1.5 if len(chain.slots) == 3 else 1.0)


def _distance(upper: _Size, lower: _Size) -> float:
    return upper.below + lower.above + (_BOX_GAP if upper.box and lower.box else _SLOT_GAP)


def _sides(plan: _Plan, ys: Mapping[int, float]) -> dict[int, tuple[float, float]]:
    """Left and right side of every slot's column; steep edges push the columns they join apart."""
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


def _box_rect(plan: _Plan, grid: _Grid, slot: int) -> Rect:
    """A state's box, as wide as the widest name in its column needs."""
    left, right = grid.sides[slot]
    width = max(
        _box_width(state) for other, state in enumerate(plan.states) if grid.sides[other] == (left, right)
    )
    half = plan.sizes[slot].below
    return _rect((left + right) / 2, grid.ys[slot] - half, width, 2 * half)


def _route(plan: _Plan, grid: _Grid, boxes: Sequence[StateBox], chain: Chain) -> Route:
    first, *between, last = chain.slots
    leave = grid.ys[first] + plan.ports[first, between[0]]
    arrive = grid.ys[last] + plan.ports[last, between[-1]]
    points = [(boxes[first].rect.right, leave), (grid.sides[first][1] + _STUB, leave)]
    for slot in between:
        left, right = grid.sides[slot]
        points.extend((x, grid.ys[slot]) for x in (left - _CLEARANCE, right + _CLEARANCE))
    points.extend([(grid.sides[last][0] - _STUB, arrive), (boxes[last].rect.x, arrive)])
    rounded = tuple((_round(x), _round(y)) for x, y in (reversed(points) if chain.backward else points))
    width, height = _pill_size(chain.edge)
    left, right = grid.sides[chain.label]
    rect = _rect((left + right) / 2, grid.ys[chain.label] - height / 2, width, height)
    return Route(chain.edge, Label(chain.edge, rect), rounded)


def _loop(box: StateBox, edges: Sequence[Edge]) -> Loop:
    labels = []
    bottom = box.rect.y - _LOOP_RISE
    for edge in edges:
        width, height = _pill_size(edge)
        labels.append(Label(edge, _rect(box.rect.centre_x, bottom - height, width, height)))
        bottom -= height + _LOOP_STACK
    return Loop(box, tuple(labels))


def _rect(centre_x: float, top: float, width: float, height: float) -> Rect:
    return Rect(_round(centre_x - width / 2), _round(top), _round(width), _round(height))


def _round(number: float) -> float:
    return round(number, 1)
