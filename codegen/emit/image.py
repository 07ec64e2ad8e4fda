"""The image that every node of a system runs from: a Dockerfile and what its build may see."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codegen.emit import wiring
from codegen.emit.artefact import Artefact, fill
from codegen.spec import Spec


def emit(spec: Spec) -> Iterator[Artefact]:
    """`Dockerfile` and `Dockerfile.dockerignore`, for a build from the project's root."""
    constants = {
        name: _quoted(str(row.default))
        for name, row in spec.environment.variables.items()
        if row.type == "constant" and row.read_by == "everyone"
    }
    labels = {
        "title": spec.system.title,
        "description": spec.system.summary,
        "version": str(spec.system.version),
    }
    text = fill(
        "deploy/Dockerfile.j2",
        spec,
        user=wiring.USER_ID,
        data=wiring.DATA,
        keeps_data=any(row.type == "data_path" for row in spec.environment.variables.values()),
        constants=constants,
        labels={name: _quoted(wiring.one_line(value)) for name, value in labels.items()},
    )
    yield Artefact(dockerfile_path(spec), text)
    yield Artefact(f"{dockerfile_path(spec)}.dockerignore", fill("deploy/dockerignore.j2", spec))


def image_name(spec: Spec) -> str:
    return f"{spec.name}:{spec.system.version}"


def dockerfile_path(spec: Spec) -> str:
    return f"generated/{spec.name}/deploy/Dockerfile"


def _quoted(text: str) -> str:
    """Text in double quotes, in which Docker would otherwise look for variables."""
    return json.dumps(text, ensure_ascii=False).replace("$", "\\$")
