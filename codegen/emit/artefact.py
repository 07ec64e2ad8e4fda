"""Artefacts, the output of emitters: a path below the project's root and a text, rendered from a template."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from codegen.emit.template_cache import TemplateBytecodeCache
from codegen.source.spec import Spec

TEMPLATES = Path(__file__).parent.parent / "templates"


@dataclass(frozen=True, slots=True)
class Artefact:
    """One generated file."""

    path: str
    text: str


def render_template(template: str, spec: Spec, **data: Any) -> str:
    """Render a template with some data, the spec and the stamp for the top of the file."""
    return _build_environment().get_template(template).render(spec=spec, stamp=format_stamp(spec), **data)


def format_stamp(spec: Spec) -> str:
    """Format the line that names the source of a file; its hash changes only with the content of the spec."""
    return f"Generated from {spec.folder} (sha256:{spec.digest[:16]}). Do not edit; run `nox -s generate`."


def to_snake_case(name: str) -> str:
    """Convert `SubmitJob` to `submit_job`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def to_camel_case(name: str) -> str:
    """Convert `job_not_found` to `JobNotFound`."""
    return "".join(part.capitalize() for part in name.split("_"))


def format_docstring(text: str, indent: int = 0) -> str:
    """Escape a text for use between triple quotes, and wrap it to the width of a line."""
    safe = join_lines(text).replace("\\", "\\\\").replace('"""', r"\"\"\"")
    safe = safe[:-1] + r"\"" if safe.endswith('"') else safe
    return textwrap.fill(
        safe, 104 - indent, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
    )


def join_lines(text: str) -> str:
    """Replace line breaks by spaces, as a comment needs it."""
    return " ".join(text.split())


def escape_proto_comment(line: str) -> str:
    """Escape a line for a .proto comment, which gRPC's compiler copies between triple quotes as it is."""
    return line.replace("\\", "\\\\").replace('"""', "'''")


def quote_sql(text: str) -> str:
    """Quote a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


@cache
def _build_environment() -> jinja2.Environment:
    options: dict[str, Any] = {
        "undefined": jinja2.StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
        "keep_trailing_newline": True,
        "autoescape": False,
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), bytecode_cache=TemplateBytecodeCache(options), **options
    )
    environment.filters.update(
        snake=to_snake_case,
        camel=to_camel_case,
        docstring=format_docstring,
        oneline=join_lines,
        proto_comment=escape_proto_comment,
        repr=repr,
        tuple_repr=lambda names: repr(tuple(names)),
        quoted_sql=quote_sql,
        prefixed=lambda name, prefix: f"{prefix}{name}",
    )
    return environment
