"""Values of a diagram: the edges that are its input and the placed shapes that are its output."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edge:
    """One transition of a state machine; `note` names for example the callers that may drive it."""

    source: str
    target: str
    name: str
    note: str


@dataclass(frozen=True, slots=True)
class Rect:
    """An axis-parallel rectangle, `x` and `y` being its top left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def centre_x(self) -> float:
        return self.x + self.width / 2

    @property
    def centre_y(self) -> float:
        return self.y + self.height / 2

    def overlaps(self, other: "Rect") -> bool:
        """Whether the two rectangles overlap or touch."""
        apart_x = self.right < other.x or other.right < self.x
        apart_y = self.bottom < other.y or other.bottom < self.y
        return not (apart_x or apart_y)


@dataclass(frozen=True, slots=True)
class StateBox:
    """The placed box of a state."""

    name: str
    rect: Rect
    initial: bool
    terminal: bool


@dataclass(frozen=True, slots=True)
class EdgeLabel:
    """The placed pill with an edge's name and note."""

    edge: Edge
    rect: Rect


@dataclass(frozen=True, slots=True)
class EdgeRoute:
    """An edge's path from source to target: each step is level, or an S-curve that starts and ends level."""

    edge: Edge
    label: EdgeLabel
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class SelfLoops:
    """All self loops of one state: one arc on top of the box under a stack of labels, lowest first."""

    box: StateBox
    labels: tuple[EdgeLabel, ...]


@dataclass(frozen=True, slots=True)
class DiagramLayout:
    """A placed machine; all coordinates are within (0, 0) and (width, height)."""

    width: float
    height: float
    boxes: tuple[StateBox, ...]
    routes: tuple[EdgeRoute, ...]
    loops: tuple[SelfLoops, ...]
    start: tuple[float, float]

    @property
    def labels(self) -> tuple[EdgeLabel, ...]:
        """Every label of every edge."""
        looped = tuple(label for loop in self.loops for label in loop.labels)
        return tuple(route.label for route in self.routes) + looped
