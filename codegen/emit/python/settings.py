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
        "python/settings.py.j2", spec, components=components, python_type=python_type, text_of=text_of
    )
    yield Artefact(f"generated/{spec.name}/settings.py", text)


def python_type(row: Variable) -> str:
    """The type of a setting; one that may be left out is None then."""
    known = PYTHON_TYPES.get(row.type, "str")
    sure = row.required or row.default is not None or row.default_from is not None
    return known if sure else f"{known} | None"


def text_of(value: bool | float | str | None) -> str | None:
    """A default as the environment would hold it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)
