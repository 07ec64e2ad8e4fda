"""The pictures of state machines: their content, and that nothing in them collides."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codegen.diagram import DiagramLayout, Edge, Rect, draw_state_diagram, format_mermaid, lay_out
from codegen.diagram.layers import rank_states

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Machine:
    states: list[str]
    initial: str
    terminal: list[str]
    edges: list[Edge]

    def layout(self) -> DiagramLayout:
        return lay_out(self.states, self.initial, self.terminal, self.edges)

    def svg(self, title: str = "Machine") -> str:
        return draw_state_diagram(title, self.states, self.initial, self.terminal, self.edges)


JOB = Machine(
    ["QUEUED", "RUNNING", "DONE", "FAILED", "CANCELED"],
    "QUEUED",
    ["DONE", "FAILED", "CANCELED"],
    [
        Edge("QUEUED", "RUNNING", "dispatch", "coordinator"),
        Edge("RUNNING", "DONE", "complete", "coordinator"),
        Edge("RUNNING", "FAILED", "fail", "coordinator"),
        Edge("QUEUED", "CANCELED", "withdraw", "gateway"),
        Edge("RUNNING", "CANCELED", "abandon", "coordinator"),
    ],
)

LEASE = Machine(
    ["PENDING", "LEASED", "RETRY_WAIT", "SUCCEEDED", "DEAD", "CANCELED"],
    "PENDING",
    ["SUCCEEDED", "CANCELED"],
    [
        Edge("PENDING", "LEASED", "claim", "worker"),
        Edge("LEASED", "PENDING", "release", "worker"),
        Edge("LEASED", "PENDING", "expire", "reaper"),
        Edge("LEASED", "SUCCEEDED", "complete", "worker"),
        Edge("LEASED", "RETRY_WAIT", "fail", "worker"),
        Edge("RETRY_WAIT", "PENDING", "requeue", "scheduler"),
        Edge("LEASED", "DEAD", "give_up", "worker"),
        Edge("DEAD", "PENDING", "replay", "operator"),
        Edge("PENDING", "CANCELED", "cancel", "operator"),
        Edge("LEASED", "LEASED", "renew", "worker"),
    ],
)

ALONE = Machine(["ALONE"], "ALONE", [], [])

NASTY = Machine(
    ["<a> & 'b'", 'c "d"', "end"],
    "<a> & 'b'",
    ["end"],
    [
        Edge("<a> & 'b'", 'c "d"', "]]> <script>", "&amp; \x00\ud800"),
        Edge('c "d"', "end", "x: y; #z", ""),
        Edge("end", "end", "", ""),
    ],
)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    words = st.text(max_size=24)
    states = draw(st.lists(words, min_size=1, max_size=10, unique=True))
    ends = st.sampled_from(states)
    edges = draw(st.lists(st.builds(Edge, ends, ends, words, words), max_size=22))
    return Machine(states, draw(ends), draw(st.lists(ends, unique=True)), edges)


def list_texts(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter(f"{SVG}text")]


def find_collisions(layout: DiagramLayout) -> list[tuple[Rect, Rect]]:
    rects = [box.rect for box in layout.boxes] + [label.rect for label in layout.labels]
    return [pair for pair in combinations(rects, 2) if pair[0].overlaps(pair[1])]


def find_trespasses(layout: DiagramLayout) -> list[tuple[Edge, Rect]]:
    """The edges that run through a label that is not their own, or through any box between their ends."""
    found = []
    for route in layout.routes:
        boxes = [box.rect for box in layout.boxes if box.name not in (route.edge.source, route.edge.target)]
        labels = [label.rect for label in layout.labels if label is not route.label]
        for step in pairwise(route.points):
            found += [(route.edge, rect) for rect in boxes + labels if rect.overlaps(around(step))]
    return found


def around(step: tuple[tuple[float, float], tuple[float, float]]) -> Rect:
    """The bounding box of a step, which contains the S-curve between its corners."""
    (x, y), (to_x, to_y) = step
    return Rect(min(x, to_x), min(y, to_y), abs(x - to_x), abs(y - to_y))


@pytest.mark.parametrize("machine", [JOB, LEASE, ALONE, NASTY])
def test_every_state_and_edge_is_written_in_well_formed_xml(machine: Machine) -> None:
    """The picture parses as XML, and names each state, edge and note."""
    drawn = list_texts(machine.svg("T"))
    wanted = [*machine.states, *(text for edge in machine.edges for text in (edge.name, edge.note) if text)]
    readable = [re.sub("[\x00\ud800]", "\ufffd", text) for text in wanted]
    assert sorted(drawn) == sorted(["T", *readable])


@given(machines(), st.text(max_size=30))
def test_no_text_breaks_the_xml(machine: Machine, title: str) -> None:
    """Whatever the names are, the picture is encodable and well-formed."""
    root = ET.fromstring(machine.svg(title).encode())
    assert root.tag == f"{SVG}svg"


@given(machines())
def test_boxes_and_labels_never_collide(machine: Machine) -> None:
    """In any graph no two boxes or labels overlap, and no edge runs through a foreign one."""
    layout = machine.layout()
    assert find_collisions(layout) == []
    assert find_trespasses(layout) == []


@given(machines())
def test_everything_is_within_the_picture(machine: Machine) -> None:
    """All boxes, labels and edges keep inside the view box, and each edge has exactly one label."""
    layout = machine.layout()
    canvas = Rect(0, 0, layout.width, layout.height)
    shapes = [box.rect for box in layout.boxes] + [label.rect for label in layout.labels]
    shapes += [around(step) for route in layout.routes for step in pairwise(route.points)]
    for shape in shapes:
        assert shape.x >= canvas.x and shape.y >= canvas.y
        assert shape.right <= canvas.right and shape.bottom <= canvas.bottom
    assert len(layout.labels) == len(machine.edges)


@given(machines())
def test_edges_join_the_states_they_name(machine: Machine) -> None:
    """An edge begins on a side of its source, ends on a side of its target and passes through its label."""
    layout = machine.layout()
    rects = {box.name: box.rect for box in layout.boxes}
    for route in layout.routes:
        for (x, y), state in ((route.points[0], route.edge.source), (route.points[-1], route.edge.target)):
            assert x in (rects[state].x, round(rects[state].right, 1))
            assert rects[state].y < y < rects[state].bottom
        assert any(around(step).overlaps(route.label.rect) for step in pairwise(route.points))


def test_numbers_have_one_decimal_at_most() -> None:
    """No coordinate has more than one decimal, so the bytes do not depend on the machine."""
    drawing = LEASE.svg().partition("</style>")[2]
    numbers = re.findall(r"-?\d+\.\d+", drawing)
    assert numbers
    assert all(re.fullmatch(r"\d+\.[1-9]", number) for number in numbers)


def test_the_order_of_a_collection_of_terminal_states_is_irrelevant() -> None:
    """Terminal states may come as a list or a set without changing the picture or the Mermaid text."""
    svg = draw_state_diagram("T", JOB.states, JOB.initial, set(JOB.terminal), JOB.edges)
    assert svg == JOB.svg("T")
    assert format_mermaid(JOB.initial, set(JOB.terminal), JOB.edges) == format_mermaid(
        JOB.initial, JOB.terminal[::-1], JOB.edges
    )


def test_the_bytes_do_not_depend_on_the_hash_seed() -> None:
    """Two processes with different hash seeds draw the same bytes."""
    code = (
        "from codegen.diagram import Edge, draw_state_diagram as draw\n"
        "edges = [Edge(a, b, a + b, b) for a in 'abcdef' for b in 'abcdef' if (ord(a) * ord(b)) % 3]\n"
        "print(draw('T', 'abcdef', 'a', {'e', 'f'}, edges))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_ranks_are_longest_paths_without_back_edges() -> None:
    """Retries do not push a state to the right, a detour does."""
    assert rank_states(JOB.states, JOB.initial, JOB.edges) == {
        "QUEUED": 0,
        "RUNNING": 1,
        "DONE": 2,
        "FAILED": 2,
        "CANCELED": 2,
    }
    ranks = rank_states(LEASE.states, LEASE.initial, LEASE.edges)
    assert [ranks[state] for state in LEASE.states] == [0, 1, 2, 2, 2, 1]


def test_the_initial_state_stays_leftmost_in_a_cycle() -> None:
    """Edges into the initial state, even from states it cannot reach, do not change its rank."""
    edges = [Edge("A", "B", "go", ""), Edge("B", "A", "back", ""), Edge("C", "A", "enter", "")]
    assert rank_states(["C", "B", "A"], "A", edges) == {"A": 0, "B": 1, "C": 1}


def test_a_back_edge_points_to_the_left() -> None:
    """A retry starts at the left side of its source and ends at the right side of its target."""
    layout = LEASE.layout()
    rects = {box.name: box.rect for box in layout.boxes}
    route = next(route for route in layout.routes if route.edge.name == "requeue")
    assert route.points[0][0] == rects["RETRY_WAIT"].x
    assert route.points[-1][0] == round(rects["PENDING"].right, 1)


def test_parallel_edges_have_routes_of_their_own() -> None:
    """Three edges between the same two states start, run and end at different heights."""
    routes = [route for route in LEASE.layout().routes if route.edge.name in ("claim", "release", "expire")]
    assert len({route.label.rect.y for route in routes}) == 3
    assert len({route.points[0] for route in routes} | {route.points[-1] for route in routes}) == 6


def test_self_loops_are_stacked_above_their_state() -> None:
    """All self loops of a state have one ear, with their labels above the box."""
    edges = [Edge("A", "A", name, "clock") for name in ("tick", "tock", "ring")]
    (loop,) = lay_out(["A"], "A", [], edges).loops
    assert [label.edge.name for label in loop.labels] == ["tick", "tock", "ring"]
    bottoms = [loop.box.rect.y, *(label.rect.y for label in loop.labels)]
    assert all(label.rect.bottom < top for label, top in zip(loop.labels, bottoms, strict=False))


def test_a_planar_machine_is_drawn_without_crossings() -> None:
    """In the lease machine, which needs no crossing, no two edges swap places between two columns."""
    steps = [
        tuple(sorted(step))
        for route in LEASE.layout().routes
        for step in pairwise(route.points)
        if step[0][0] != step[1][0]
    ]
    for ((x, y), (to_x, to_y)), ((other_x, other_y), (to_other_x, to_other_y)) in combinations(steps, 2):
        if (x, to_x) == (other_x, to_other_x):
            assert (y - other_y) * (to_y - to_other_y) >= 0


def test_terminal_states_have_a_double_border_and_the_initial_one_an_arrow() -> None:
    """There is one inner border per terminal state and one start dot."""
    svg = JOB.svg()
    assert svg.count('class="inner"') == len(JOB.terminal)
    assert svg.count("<circle") == 1
    assert svg.count('class="state first"') == 1


def test_the_picture_is_accessible_and_follows_the_colour_scheme() -> None:
    """The root is an image with a title and a description, and it has colours for dark pages."""
    root = ET.fromstring(JOB.svg("Jobs"))
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "Jobs"
    assert "QUEUED to CANCELED by withdraw (gateway)" in (root.findtext(f"{SVG}desc") or "")
    assert "prefers-color-scheme:dark" in (root.findtext(f"{SVG}style") or "")


@pytest.mark.parametrize(
    ("states", "initial", "terminal", "edges"),
    [
        ([], "A", [], []),
        (["A", "A"], "A", [], []),
        (["A"], "A", ["B"], []),
        (["A"], "A", [], [Edge("A", "B", "go", "")]),
    ],
)
def test_a_machine_that_contradicts_itself_is_refused(
    states: list[str], initial: str, terminal: list[str], edges: list[Edge]
) -> None:
    """Unknown and repeated states are errors instead of pictures that mislead."""
    with pytest.raises(ValueError, match=r"twice|not one of the states"):
        lay_out(states, initial, terminal, edges)


def test_mermaid_has_start_edges_and_ends() -> None:
    """The Mermaid text has the start, every labelled edge, and the end of each terminal state."""
    assert format_mermaid(JOB.initial, JOB.terminal, JOB.edges) == (
        "stateDiagram-v2\n"
        "    direction LR\n"
        "    [*] --> QUEUED\n"
        "    QUEUED --> RUNNING: dispatch (coordinator)\n"
        "    RUNNING --> DONE: complete (coordinator)\n"
        "    RUNNING --> FAILED: fail (coordinator)\n"
        "    QUEUED --> CANCELED: withdraw (gateway)\n"
        "    RUNNING --> CANCELED: abandon (coordinator)\n"
        "    DONE --> [*]\n"
        "    FAILED --> [*]\n"
        "    CANCELED --> [*]\n"
    )


def test_mermaid_gets_no_special_character() -> None:
    """Odd state names get an alias, and special characters in labels are escaped."""
    text = format_mermaid(
        "s2", ["end"], [Edge("s2", "two words", "x: y; #z", ""), Edge("two words", "end", "", "")]
    )
    assert text.splitlines()[2:] == [
        '    state "two words" as s2_',
        '    state "end" as s3',
        "    [*] --> s2",
        "    s2 --> s2_: x\uff1a y\uff1b \uff03z",
        "    s2_ --> s3",
        "    s3 --> [*]",
    ]
