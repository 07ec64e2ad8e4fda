"""Draw a state machine as a self-contained SVG picture or as Mermaid text."""

from codegen.diagram.layout import lay_out
from codegen.diagram.mermaid import format_mermaid
from codegen.diagram.model import DiagramLayout, Edge, EdgeLabel, EdgeRoute, Rect, SelfLoops, StateBox
from codegen.diagram.svg import draw_state_diagram

__all__ = [
    "DiagramLayout",
    "Edge",
    "EdgeLabel",
    "EdgeRoute",
    "Rect",
    "SelfLoops",
    "StateBox",
    "draw_state_diagram",
    "format_mermaid",
    "lay_out",
]
