"""Draws a state machine for people: as a self-contained SVG picture or as Mermaid text."""

from codegen.diagram.layout import lay_out
from codegen.diagram.mermaid import mermaid
from codegen.diagram.model import Edge, Label, Layout, Loop, Rect, Route, StateBox
from codegen.diagram.svg import state_diagram

__all__ = [
    "Edge",
    "Label",
    "Layout",
    "Loop",
    "Rect",
    "Route",
    "StateBox",
    "lay_out",
    "mermaid",
    "state_diagram",
]
