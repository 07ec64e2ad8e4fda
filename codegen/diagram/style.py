"""Stylesheet of a diagram: colours and fonts for light and for dark pages."""

_FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif'

_FIXED = (
    f"text{{font-family:{_FONT}}}",
    "text.middle{text-anchor:middle}",
    ".title{font-size:15px;font-weight:600}",
    ".state text{font-size:14px;font-weight:600;letter-spacing:.02em}",
    ".state rect{stroke-width:1.6}",
    ".state .inner{fill:none;stroke-width:1.1}",
    ".name{font-size:13px;font-weight:500}",
    ".note{font-size:11px;font-weight:400}",
    ".line{fill:none;stroke-width:1.7;stroke-linecap:round}",
    ".halo{fill:none;stroke-width:6}",
    ".pill{stroke-width:1;stroke-opacity:.4}",
    ".edge:hover .line{stroke-width:2.6}",
    ".edge:hover .pill{stroke-opacity:1}",
)

# Selector, property, colour on light pages, colour on dark pages.
_COLOURS = (
    (".page", "fill", "#ffffff", "#10151f"),
    (".page", "stroke", "#e2e8f0", "#273142"),
    (".halo", "stroke", "#ffffff", "#10151f"),
    (".pill", "fill", "#ffffff", "#10151f"),
    (".title", "fill", "#475569", "#a9b6c9"),
    (".name", "fill", "#1e293b", "#e6ecf5"),
    (".state rect", "fill", "#f1f5f9", "#1b2433"),
    (".state rect", "stroke", "#64748b", "#8494ab"),
    (".state text", "fill", "#0f172a", "#f1f5f9"),
    (".first rect", "fill", "#e0f2fe", "#10304a"),
    (".first rect", "stroke", "#0284c7", "#38bdf8"),
    (".start", "fill", "#334155", "#cbd5e1"),
    (".start .line", "stroke", "#334155", "#cbd5e1"),
)

# The first pair is for edges without a note, or with several notes at once.
_HUE_PAIRS = (
    ("#475569", "#b6c2d2"),
    ("#4f46e5", "#a5b4fc"),
    ("#c2410c", "#fdba74"),
    ("#0f766e", "#5eead4"),
    ("#be185d", "#f9a8d4"),
    ("#4d7c0f", "#bef264"),
    ("#7e22ce", "#d8b4fe"),
    ("#0369a1", "#7dd3fc"),
    ("#92400e", "#fcd34d"),
)

HUES = len(_HUE_PAIRS) - 1


def format_stylesheet() -> str:
    """Format the CSS of a diagram; every rule is scoped to its root, so an inlined picture styles no page."""
    colours = list(_COLOURS)
    for index, (light, dark) in enumerate(_HUE_PAIRS):
        colours.append((f".hue{index} .line,.hue{index} .pill", "stroke", light, dark))
        colours.append((f".hue{index} .head,.hue{index} .note", "fill", light, dark))
    light_rules = [f"{selector}{{{key}:{light}}}" for selector, key, light, _ in colours]
    dark_rules = [f"{selector}{{{key}:{dark}}}" for selector, key, _, dark in colours]
    usual = "\n".join(_scope_rule(rule) for rule in (*_FIXED, *light_rules))
    night = "\n".join(_scope_rule(rule) for rule in dark_rules)
    return f"\n{usual}\n@media (prefers-color-scheme:dark){{\n{night}\n}}\n"


def _scope_rule(rule: str) -> str:
    selectors, _, body = rule.partition("{")
    return ",".join(f".machine {selector}" for selector in selectors.split(",")) + "{" + body
