"""Images: one that every node of a system runs from, and one for its load generator."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codegen.emit.artefact import Artefact, render_template
from codegen.emit.deploy import wiring
from codegen.source.spec import Spec

LOCK = "requirements-run.lock"
LOAD_LOCK = "requirements-bench.lock"
RESULTS = "/results"
"""Where the load generator writes what it measured."""


def emit(spec: Spec) -> Iterator[Artefact]:
    """`Dockerfile` and `Dockerfile.load`, each with what its build may see; built from the project's root."""
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
    text = render_template(
        "deploy/Dockerfile.j2",
        spec,
        user=wiring.USER_ID,
        data=wiring.DATA,
        keeps_data=any(row.type == "data_path" for row in spec.environment.variables.values()),
        constants=constants,
        labels={name: _quoted(wiring.one_line(value)) for name, value in labels.items()},
        lock=LOCK,
    )
    yield Artefact(dockerfile_path(spec), text)
    yield Artefact(f"{dockerfile_path(spec)}.dockerignore", _ignored(spec, LOCK, bench=False))
    if any(each.load_generator for each in spec.deployments.root.values()):
        text = render_template(
            "deploy/Dockerfile.load.j2", spec, user=wiring.USER_ID, lock=LOAD_LOCK, results=RESULTS
        )
        yield Artefact(load_dockerfile_path(spec), text)
        yield Artefact(f"{load_dockerfile_path(spec)}.dockerignore", _ignored(spec, LOAD_LOCK, bench=True))


def _ignored(spec: Spec, lock: str, *, bench: bool) -> str:
    return render_template("deploy/dockerignore.j2", spec, lock=lock, bench=bench)


def image_name(spec: Spec) -> str:
    return f"{spec.name}:{spec.system.version}"


def load_dockerfile_path(spec: Spec) -> str:
    return f"{dockerfile_path(spec)}.load"


def dockerfile_path(spec: Spec) -> str:
    return f"generated/{spec.name}/deploy/Dockerfile"


def _quoted(text: str) -> str:
    """Text in double quotes, in which Docker would otherwise look for variables."""
    return json.dumps(text, ensure_ascii=False).replace("$", "\\$")
