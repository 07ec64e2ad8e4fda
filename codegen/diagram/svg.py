"""A state machine as an SVG document that is legible on light and dark pages."""

import re
from collections.abc import Collection, Mapping, Sequence
from html import escape

from codegen.diagram.layout import MARGIN, lay_out
from codegen.diagram.model import DiagramLayout, Edge, EdgeLabel, EdgeRoute, Rect, SelfLoops, StateBox
from codegen.diagram.style import HUES, format_stylesheet
from codegen.diagram.text_metrics import NAME_SIZE, NOTE_SIZE, STATE_SIZE, TITLE_SIZE, measure_text

_TITLE_BAND = 26.0
_ARROW, _ARROW_HALF = 9.0, 4.2
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def draw_state_diagram(
    title: str, states: Sequence[str], initial: str, terminal: Collection[str], edges: Sequence[Edge]
) -> str:
    """Draw the machine as one self-contained SVG document, the same bytes for the same machine everywhere."""
    layout = lay_out(states, initial, terminal, edges)
    width = max(layout.width, measure_text(title, TITLE_SIZE) + 2 * MARGIN)
    height = layout.height + _TITLE_BAND
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" class="machine" role="img"'
        f' width="{_format_number(width)}" height="{_format_number(height)}"'
        f' viewBox="0 0 {_format_point(width, height)}">',
        f"<title>{_escape_text(title)}</title>",
        f"<desc>{_escape_text(_describe_machine(layout, edges))}</desc>",
        f"<style>{format_stylesheet()}</style>",
        _format_rect("page", Rect(0.5, 0.5, width - 1, height - 1), 14.0),
        f'<text class="title" x="{_format_number(MARGIN)}" y="32">{_escape_text(title)}</text>',
        f'<g transform="translate(0 {_format_number(_TITLE_BAND)})">',
        *_draw_layout(layout, _assign_hues(edges)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _describe_machine(layout: DiagramLayout, edges: Sequence[Edge]) -> str:
    states = ", ".join(box.name for box in layout.boxes)
    first = ", ".join(box.name for box in layout.boxes if box.initial)
    final = ", ".join(box.name for box in layout.boxes if box.terminal) or "none"
    transitions = "; ".join(_describe_edge(edge) for edge in edges) or "none"
    return f"States: {states}. Initial: {first}. Terminal: {final}. Transitions: {transitions}."


def _describe_edge(edge: Edge) -> str:
    note = f" ({edge.note})" if edge.note else ""
    return f"{edge.source} to {edge.target} by {edge.name}{note}"


def _assign_hues(edges: Sequence[Edge]) -> dict[str, int]:
    """Assign a hue to each note, in order of first use; hue 0 is for no note at all."""
    hues = {"": 0}
    for edge in edges:
        hues.setdefault(edge.note, (len(hues) - 1) % HUES + 1)
    return hues


def _draw_layout(layout: DiagramLayout, hues: Mapping[str, int]) -> list[str]:
    lines = _draw_start(layout)
    for route in layout.routes:
        lines.extend(_draw_route(route, hues[route.edge.note]))
    for loop in layout.loops:
        lines.extend(_draw_loops(loop, hues))
    for box in layout.boxes:
        lines.extend(_draw_box(box))
    return lines


def _draw_start(layout: DiagramLayout) -> list[str]:
    x, y = layout.start
    tip = next(box.rect.x for box in layout.boxes if box.initial)
    return [
        '<g class="start">',
        f'<path class="line" d="M{_format_point(x, y)}H{_format_number(tip - _ARROW)}"/>',
        f'<circle cx="{_format_number(x)}" cy="{_format_number(y)}" r="6"/>',
        _draw_arrow_head(tip, y, 1.0, 0.0),
        "</g>",
    ]


def _draw_route(route: EdgeRoute, hue: int) -> list[str]:
    (tip_x, tip_y), (before_x, _) = route.points[-1], route.points[-2]
    towards = 1.0 if before_x < tip_x else -1.0
    path = _format_path((*route.points[:-1], (tip_x - towards * (_ARROW - 1), tip_y)))
    return [
        f'<g class="edge hue{hue}">',
        f"<title>{_escape_text(_describe_edge(route.edge))}</title>",
        f'<path class="halo" d="{path}"/>',
        f'<path class="line" d="{path}"/>',
        _draw_arrow_head(tip_x, tip_y, towards, 0.0),
        *_draw_label(route.label),
        "</g>",
    ]


def _format_path(points: Sequence[tuple[float, float]]) -> str:
    """Format the path through all points; adjacent level pieces are merged into one."""
    steps = [f"M{_format_point(*points[0])}"]
    for index in range(1, len(points)):
        (from_x, from_y), (x, y) = points[index - 1], points[index]
        if y != from_y:
            middle = (from_x + x) / 2
            steps.append(f"C{_format_point(middle, from_y)} {_format_point(middle, y)} {_format_point(x, y)}")
        elif index + 1 == len(points) or points[index + 1][1] != y:
            steps.append(f"H{_format_number(x)}")
    return "".join(steps)


def _draw_loops(loop: SelfLoops, hues: Mapping[str, int]) -> list[str]:
    """Draw an arc that leaves and enters the top of the box, its upper end behind the lowest label."""
    x, y = loop.box.rect.centre_x, loop.box.rect.y
    notes = list(dict.fromkeys(label.edge.note for label in loop.labels))
    curve = ((x - 34, y - 40), (x + 34, y - 40), (x + 14.5, y - 6.5))
    arc = f"M{_format_point(x - 11, y)}C{' '.join(_format_point(*point) for point in curve)}"
    stem = f"M{_format_point(x, y - 30)}V{_format_number(loop.labels[-1].rect.centre_y)}"
    lines = [
        f'<g class="edge hue{hues[notes[0]] if len(notes) == 1 else 0}">',
        f'<path class="line" d="{arc}{stem}"/>',
        _draw_arrow_head(x + 11, y, -0.5, 0.866),
    ]
    for label in loop.labels:
        lines.append(f'<g class="hue{hues[label.edge.note]}">')
        lines.append(f"<title>{_escape_text(_describe_edge(label.edge))}</title>")
        lines.extend([*_draw_label(label), "</g>"])
    return [*lines, "</g>"]


def _draw_arrow_head(x: float, y: float, along_x: float, along_y: float) -> str:
    """Draw an arrow head with its tip at (x, y); (along_x, along_y) is the unit vector of its direction."""
    back_x, back_y = x - _ARROW * along_x, y - _ARROW * along_y
    side_x, side_y = -_ARROW_HALF * along_y, _ARROW_HALF * along_x
    corners = (
        f"{_format_point(back_x + side_x, back_y + side_y)}L{_format_point(back_x - side_x, back_y - side_y)}"
    )
    return f'<path class="head" d="M{_format_point(x, y)}L{corners}Z"/>'


def _draw_label(label: EdgeLabel) -> list[str]:
    rect, edge = label.rect, label.edge
    lines = [_format_rect("pill", rect, 12.0)]
    both = bool(edge.name and edge.note)
    if edge.name:
        drop = -3.0 if both else NAME_SIZE * 0.35
        lines.append(_format_centred_text("name middle", rect, drop, edge.name))
    if edge.note:
        drop = 11.0 if both else NOTE_SIZE * 0.35
        lines.append(_format_centred_text("note middle", rect, drop, edge.note))
    return lines


def _draw_box(box: StateBox) -> list[str]:
    kind = "state first" if box.initial else "state"
    lines = [f'<g class="{kind}">', _format_rect("outer", box.rect, 11.0)]
    if box.terminal:
        rect = box.rect
        inner = Rect(rect.x + 4, rect.y + 4, rect.width - 8, rect.height - 8)
        lines.append(_format_rect("inner", inner, 7.5))
    return [*lines, _format_centred_text("middle", box.rect, STATE_SIZE * 0.35, box.name), "</g>"]


def _format_rect(kind: str, rect: Rect, radius: float) -> str:
    size = f'width="{_format_number(rect.width)}" height="{_format_number(rect.height)}"'
    corner = f'x="{_format_number(rect.x)}" y="{_format_number(rect.y)}"'
    return f'<rect class="{kind}" {corner} {size} rx="{_format_number(radius)}"/>'


def _format_centred_text(kind: str, rect: Rect, drop: float, text: str) -> str:
    position = f'x="{_format_number(rect.centre_x)}" y="{_format_number(rect.centre_y + drop)}"'
    return f'<text class="{kind}" {position}>{_escape_text(text)}</text>'


def _format_point(x: float, y: float) -> str:
    return f"{_format_number(x)} {_format_number(y)}"


def _format_number(number: float) -> str:
    """Format with at most one decimal, and never a minus zero."""
    return f"{round(number, 1) + 0.0:.1f}".removesuffix(".0")


def _escape_text(text: str) -> str:
    """Escape the text, and replace characters that XML does not allow at all."""
    return escape(_NOT_XML.sub("\ufffd", text))
