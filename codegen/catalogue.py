"""Catalogue of complaints, rendered from the rules."""

from __future__ import annotations

from codegen.review.complaints import COMPLAINTS
from codegen.rules import RULES
from codegen.rules.complaint import Complaint
from codegen.rules.cross_spec import CROSS_SPEC_COMPLAINTS
from codegen.rules.rule import Rule

_SECTIONS = {
    "E0": "The text and shape of a file",
    "E1": "`types.yaml`",
    "E2": "`lifecycle.yaml`",
    "E3": "`services.yaml`",
    "E4": "`callers.yaml`",
    "E5": "`errors.yaml`",
    "E6": "`environment.yaml`",
    "E7": "`deployments.yaml`",
    "E8": "`system.yaml`, and several specs together",
    "E85": "`metrics.yaml`",
    "E9": "Change records and accepted forms",
}
_INTRODUCTION = """\
# Complaints about a spec

Generated from `codegen/rules/` and `codegen/review/`. Do not edit; run `nox -s generate`.

A spec is checked as a whole before anything is generated. Every complaint has a place, a code, a sentence
and, where there is one, a way out. The examples below are shortened: `…` stands for what does not matter.
"""


def render_catalogue() -> str:
    """Render docs/reference/errors.md: every code, its meaning, and an example of wrong and right."""
    parts = [_INTRODUCTION]
    every: list[Rule | Complaint] = sorted(
        [*RULES, *CROSS_SPEC_COMPLAINTS, *COMPLAINTS], key=lambda rule: rule.code
    )
    for prefix, title in _SECTIONS.items():
        rules = [rule for rule in every if _find_section(rule.code) == prefix]
        parts += [f"## {title}\n", *(_format_entry(rule) for rule in rules)]
    return "\n".join(parts)


def _find_section(code: str) -> str:
    """Find the section of a code by its longest prefix."""
    return max((prefix for prefix in _SECTIONS if code.startswith(prefix)), key=len)


def _format_entry(rule: Rule | Complaint) -> str:
    warning = " This is a warning." if rule.severity == "warning" else ""
    return f"""\
### {rule.code}

{rule.meaning}{warning}

Wrong:

```yaml
{rule.wrong}
```

Right:

```yaml
{rule.right}
```
"""
