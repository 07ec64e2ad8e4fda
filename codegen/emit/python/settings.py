"""Settings as frozen structs, one for each component, and the variables they are read from."""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.language.environment import Variable
from codegen.source.spec import Spec

PYTHON_TYPES = {
    "int": "int",
    "number": "float",
    "bool": "bool",
    "port": "int",
    "addresses": "tuple[str, ...]",
    "digests": "Mapping[str, bytes]",
}
"""The Python type of each type of variable that is not plain text."""


def emit(spec: Spec) -> Iterator[Artefact]:
    components = {name: spec.settings_of(name) for name in spec.services.components}
    text = render_template(
        "python/settings.py.j2", spec, components=components, python_type=to_python_type, value=format_value
    )
    yield Artefact(f"generated/{spec.name}/settings.py", text)


def to_python_type(row: Variable) -> str:
    """Convert the type of a variable to Python; an optional one without a default may be None."""
    known = PYTHON_TYPES.get(row.type, "str")
    is_present = row.required or row.default is not None or row.default_from is not None
    return known if is_present else f"{known} | None"


def format_value(value: bool | float | str | None) -> str | None:
    """Format a default as the text of an environment variable."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)
