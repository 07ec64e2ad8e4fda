"""Style of figures: drawn once with placeholder colours, which the page replaces, and once for PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LIGHT = {
    "ink": "#1d2129",
    "soft": "#667085",
    "grid": "#e4e7ec",
    "paper": "#ffffff",
    "design-0": "#2f6fde",
    "design-1": "#e07b12",
    "design-2": "#2e9e6b",
    "part-0": "#2f6fde",
    "part-1": "#7b5cd6",
    "part-2": "#c2559d",
    "part-3": "#e07b12",
    "part-4": "#b9a12a",
    "part-5": "#2e9e6b",
    "part-6": "#98a2b3",
}
DARK = {
    **LIGHT,
    "ink": "#e6e9ef",
    "soft": "#98a2b3",
    "grid": "#303642",
    "paper": "#14171d",
    "design-0": "#78a6ff",
    "design-1": "#ffa94d",
    "design-2": "#5fd0a0",
    "part-0": "#78a6ff",
    "part-1": "#ab93f5",
    "part-2": "#ee8cc8",
    "part-3": "#ffa94d",
    "part-4": "#e0cc60",
    "part-5": "#5fd0a0",
    "part-6": "#6b7484",
}
# Colours that no figure has by chance, so that they can be replaced in the text of an SVG.
PLACEHOLDERS = {name: f"#01{number:02x}f1" for number, name in enumerate(LIGHT)}
_WIDTH_IN = 9.2


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours by their meaning."""

    colours: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.colours[name]

    def design(self, index: int) -> str:
        return self.colours[f"design-{index % 3}"]

    def part(self, index: int) -> str:
        return self.colours[f"part-{index % 7}"]


@contextmanager
def draw_figure(
    palette: Palette, panels: int, height_in: float, *, rows: int = 1, **options: Any
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Create a figure with that many panels side by side in each row, in our style."""
    # It takes a second of processor time to load, which a run without a report does not have to spend.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.use("Agg")
    settings: dict[Any, Any] = {
        "font.family": "sans-serif",
        "font.size": 9.5,
        "svg.fonttype": "none",
        "svg.hashsalt": "charter",
        "text.color": palette["ink"],
        "axes.labelcolor": palette["soft"],
        "axes.edgecolor": palette["grid"],
        "xtick.color": palette["soft"],
        "ytick.color": palette["soft"],
        "grid.color": palette["grid"],
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "legend.frameon": False,
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(_WIDTH_IN, height_in), layout="constrained")
        axes = figure.subplots(rows, panels, squeeze=False, **options).flatten()
        for each in axes:
            each.spines[["top", "right", "left"]].set_visible(False)
            each.tick_params(length=0)
            each.set_axisbelow(True)
            each.grid(axis="y", linewidth=0.8)
        yield figure, list(axes)


def figure_to_svg(figure: Figure) -> str:
    """Convert a figure to SVG that takes its colours from the page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"font: ([^;\"]*?)'?sans-serif'?", r"font: \1var(--font)", text)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for name, colour in PLACEHOLDERS.items():
        text = text.replace(colour, f"var(--{name})")
    return text


def figure_to_png(figure: Figure) -> bytes:
    """Convert a figure to PNG, in the light colours."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150, facecolor=LIGHT["paper"])
    return buffer.getvalue()
