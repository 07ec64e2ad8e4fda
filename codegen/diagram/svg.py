"""Writes a laid out state machine as an SVG that is legible on light and dark pages."""

import re
from collections.abc import Collection, Mapping, Sequence
from html import escape

from codegen.diagram.layout import MARGIN, lay_out
from codegen.diagram.metrics import NAME_SIZE, NOTE_SIZE, STATE_SIZE, TITLE_SIZE, text_width
from codegen.diagram.model import Edge, Label, Layout, Loop, Rect, Route, StateBox
from codegen.diagram.style import HUES, stylesheet

_TITLE_BAND = 26.0
_ARROW, _ARROW_HALF = 9.0, 4.2
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def state_diagram(
    title: str, states: Sequence[str], initial: str, terminal: Collection[str], edges: Sequence[Edge]
) -> str:
    """The machine as one self-contained SVG document, the same bytes for the same machine everywhere."""
    layout = lay_out(states, initial, terminal, edges)
    width = max(layout.width, text_width(title, TITLE_SIZE) + 2 * MARGIN)
    height = layout.height + _TITLE_BAND
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" class="machine" role="img"'
        f' width="{_number(width)}" height="{_number(height)}" viewBox="0 0 {_at(width, height)}">',
        f"<title>{_text(title)}</title>",
        f"<desc>{_text(_description(layout, edges))}</desc>",
        f"<style>{stylesheet()}</style>",
        _rectangle("page", Rect(0.5, 0.5, width - 1, height - 1), 14.0),
        f'<text class="title" x="{_number(MARGIN)}" y="32">{_text(title)}</text>',
        f'<g transform="translate(0 {_number(_TITLE_BAND)})">',
        *_drawing(layout, _hues(edges)),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _description(layout: Layout, edges: Sequence[Edge]) -> str:
    states = ", ".join(box.name for box in layout.boxes)
    first = ", ".join(box.name for box in layout.boxes if box.initial)
    final = ", ".join(box.name for box in layout.boxes if box.terminal) or "none"
    moves = "; ".join(_sentence(edge) for edge in edges) or "none"
    return f"States: {states}. Initial: {first}. Terminal: {final}. Transitions: {moves}."


def _sentence(edge: Edge) -> str:
    note = f" ({edge.note})" if edge.note else ""
    return f"{edge.source} to {edge.target} by {edge.name}{note}"


def _hues(edges: Sequence[Edge]) -> dict[str, int]:
    """A hue for each note, in order of first use; hue 0 is for no note at all."""
    hues = {"": 0}
    for edge in edges:
        hues.setdefault(edge.note, (len(hues) - 1) % HUES + 1)
    return hues


def _drawing(layout: Layout, hues: Mapping[str, int]) -> list[str]:
    lines = _start(layout)
    for route in layout.routes:
        lines.extend(_route(route, hues[route.edge.note]))
    for loop in layout.loops:
        lines.extend(_loop(loop, hues))
    for box in layout.boxes:
        lines.extend(_box(box))
    return lines


def _start(layout: Layout) -> list[str]:
    x, y = layout.start
    tip = next(box.rect.x for box in layout.boxes if box.initial)
    return [
        '<g class="start">',
        f'<path class="line" d="M{_at(x, y)}H{_number(tip - _ARROW)}"/>',
        f'<circle cx="{_number(x)}" cy="{_number(y)}" r="6"/>',
        _head(tip, y, 1.0, 0.0),
        "</g>",
    ]


def _route(route: Route, hue: int) -> list[str]:
    (tip_x, tip_y), (before_x, _) = route.points[-1], route.points[-2]
    towards = 1.0 if before_x < tip_x else -1.0
    path = _path((*route.points[:-1], (tip_x - towards * (_ARROW - 1), tip_y)))
    return [
        f'<g class="edge hue{hue}">',
        f"<title>{_text(_sentence(route.edge))}</title>",
        f'<path class="halo" d="{path}"/>',
        f'<path class="line" d="{path}"/>',
        _head(tip_x, tip_y, towards, 0.0),
        *_pill(route.label),
        "</g>",
    ]


def _path(points: Sequence[tuple[float, float]]) -> str:
    """The way through all points, level pieces in a row being drawn as one."""
    steps = [f"M{_at(*points[0])}"]
    for index in range(1, len(points)):
        (from_x, from_y), (x, y) = points[index - 1], points[index]
        if y != from_y:
            middle = (from_x + x) / 2
            steps.append(f"C{_at(middle, from_y)} {_at(middle, y)} {_at(x, y)}")
        elif index + 1 == len(points) or points[index + 1][1] != y:
            steps.append(f"H{_number(x)}")
    return "".join(steps)


def _loop(loop: Loop, hues: Mapping[str, int]) -> list[str]:
    """An ear that leaves and enters the top of the box, its upper end behind the lowest label."""
    x, y = loop.box.rect.centre_x, loop.box.rect.y
    notes = list(dict.fromkeys(label.edge.note for label in loop.labels))
    ear = f"M{_at(x - 11, y)}C{_at(x - 34, y - 40)} {_at(x + 34, y - 40)} {_at(x + 14.5, y - 6.5)}"
    stem = f"M{_at(x, y - 30)}V{_number(loop.labels[-1].rect.centre_y)}"
    lines = [
        f'<g class="edge hue{hues[notes[0]] if len(notes) == 1 else 0}">',
        f'<path class="line" d="{ear}{stem}"/>',
        _head(x + 11, y, -0.5, 0.866),
    ]
    for label in loop.labels:
        lines.append(f'<g class="hue{hues[label.edge.note]}">')
        lines.append(f"<title>{_text(_sentence(label.edge))}</title>")
        lines.extend([*_pill(label), "</g>"])
    return [*lines, "</g>"]


def _head(x: float, y: float, along_x: float, along_y: float) -> str:
    """An arrow head with its tip at (x, y); (along_x, along_y) is the unit vector it points along."""
    back_x, back_y = x - _ARROW * along_x, y - _ARROW * along_y
    side_x, side_y = -_ARROW_HALF * along_y, _ARROW_HALF * along_x
    corners = f"{_at(back_x + side_x, back_y + side_y)}L{_at(back_x - side_x, back_y - side_y)}"
    return f'<path class="head" d="M{_at(x, y)}L{corners}Z"/>'


def _pill(label: Label) -> list[str]:
    rect, edge = label.rect, label.edge
    lines = [_rectangle("pill", rect, 12.0)]
    both = bool(edge.name and edge.note)
    if edge.name:
        drop = -3.0 if both else NAME_SIZE * 0.35
        lines.append(_centred("name middle", rect, drop, edge.name))
    if edge.note:
        drop = 11.0 if both else NOTE_SIZE * 0.35
        lines.append(_centred("note middle", rect, drop, edge.note))
    return lines


def _box(box: StateBox) -> list[str]:
    kind = "state first" if box.initial else "state"
    lines = [f'<g class="{kind}">', _rectangle("outer", box.rect, 11.0)]
    if box.terminal:
        rect = box.rect
        inner = Rect(rect.x + 4, rect.y + 4, rect.width - 8, rect.height - 8)
        lines.append(_rectangle("inner", inner, 7.5))
    return [*lines, _centred("middle", box.rect, STATE_SIZE * 0.35, box.name), "</g>"]


def _rectangle(kind: str, rect: Rect, radius: float) -> str:
    size = f'width="{_number(rect.width)}" height="{_number(rect.height)}"'
    corner = f'x="{_number(rect.x)}" y="{_number(rect.y)}"'
    return f'<rect class="{kind}" {corner} {size} rx="{_number(radius)}"/>'


def _centred(kind: str, rect: Rect, drop: float, text: str) -> str:
    place = f'x="{_number(rect.centre_x)}" y="{_number(rect.centre_y + drop)}"'
    return f'<text class="{kind}" {place}>{_text(text)}</text>'


def _at(x: float, y: float) -> str:
    return f"{_number(x)} {_number(y)}"


def _number(number: float) -> str:
    """At most one decimal, and never a minus zero."""
    return f"{round(number, 1) + 0.0:.1f}".removesuffix(".0")


def _text(text: str) -> str:
    """The text escaped, characters that XML cannot carry at all being replaced."""
    return escape(_NOT_XML.sub("\ufffd", text))
