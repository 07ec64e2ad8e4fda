"""What an emitter makes: a path below the project's root and a text, from a template and plain data."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from codegen.emit.template_cache import CompiledTemplates
from codegen.source.spec import Spec

TEMPLATES = Path(__file__).parent.parent / "templates"


@dataclass(frozen=True, slots=True)
class Artefact:
    """One generated file."""

    path: str
    text: str


def fill(template: str, spec: Spec, **data: Any) -> str:
    """Fills a template, which always knows the spec and the stamp that goes on top of the file."""
    return _environment().get_template(template).render(spec=spec, stamp=stamp(spec), **data)


def stamp(spec: Spec) -> str:
    """Says where a file comes from; the hash changes with what the spec says, and with nothing else."""
    return f"Generated from {spec.folder} (sha256:{spec.digest[:16]}). Do not edit; run `nox -s generate`."


def snake(name: str) -> str:
    """`SubmitJob` -> `submit_job`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def camel(name: str) -> str:
    """`job_not_found` -> `JobNotFound`."""
    return "".join(part.capitalize() for part in name.split("_"))


def docstring(text: str, indent: int = 0) -> str:
    """A text as it can stand between triple quotes at this indentation, wrapped to the width of a line."""
    safe = oneline(text).replace("\\", "\\\\").replace('"""', r"\"\"\"")
    safe = safe[:-1] + r"\"" if safe.endswith('"') else safe
    return textwrap.fill(
        safe, 104 - indent, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def oneline(text: str) -> str:
    """A text without line breaks, as a comment must be."""
    return " ".join(text.split())


def proto_comment(line: str) -> str:
    """A line as a comment of a .proto file; gRPC's compiler puts it between triple quotes as it is."""
    return line.replace("\\", "\\\\").replace('"""', "'''")


def quoted_sql(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


@cache
def _environment() -> jinja2.Environment:
    options: dict[str, Any] = {
        "undefined": jinja2.StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
        "keep_trailing_newline": True,
        "autoescape": False,
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), bytecode_cache=CompiledTemplates(options), **options
    )
    environment.filters.update(
        snake=snake,
        camel=camel,
        docstring=docstring,
        oneline=oneline,
        proto_comment=proto_comment,
        repr=repr,
        tuple_repr=lambda names: repr(tuple(names)),
        quoted_sql=quoted_sql,
        prefixed=lambda name, prefix: f"{prefix}{name}",
    )
    return environment
