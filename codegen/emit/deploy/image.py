"""Container images: one for all nodes of a system, and one for its load generator."""

from __future__ import annotations

import json
from collections.abc import Iterator

from codegen.emit.artefact import Artefact, join_lines, render_template
from codegen.emit.deploy import wiring
from codegen.source.spec import Spec

LOCK = "requirements-run.lock"
LOAD_LOCK = "requirements-bench.lock"
RESULTS = "/results"
"""The folder of the load generator's results."""


def emit(spec: Spec) -> Iterator[Artefact]:
    """Emit `Dockerfile` and `Dockerfile.load` with a `.dockerignore` each; the build context is the root."""
    constants = {
        name: _quote_text(str(row.default))
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
        has_data=any(
            wiring.has_data_volume(spec, deployment, node)
            for deployment in spec.deployments.root.values()
            if deployment.in_containers
            for node in deployment.nodes
        ),
        constants=constants,
        labels={name: _quote_text(join_lines(value)) for name, value in labels.items()},
        lock=LOCK,
    )
    yield Artefact(format_dockerfile_path(spec), text)
    yield Artefact(
        f"{format_dockerfile_path(spec)}.dockerignore", _render_dockerignore(spec, LOCK, bench=False)
    )
    if any(each.load_generator for each in spec.deployments.root.values()):
        text = render_template(
            "deploy/Dockerfile.load.j2", spec, user=wiring.USER_ID, lock=LOAD_LOCK, results=RESULTS
        )
        yield Artefact(format_load_dockerfile_path(spec), text)
        yield Artefact(
            f"{format_load_dockerfile_path(spec)}.dockerignore",
            _render_dockerignore(spec, LOAD_LOCK, bench=True),
        )


def _render_dockerignore(spec: Spec, lock: str, *, bench: bool) -> str:
    return render_template("deploy/dockerignore.j2", spec, lock=lock, bench=bench)


def format_image_name(spec: Spec) -> str:
    return f"{spec.name}:{spec.system.version}"


def format_load_dockerfile_path(spec: Spec) -> str:
    return f"{format_dockerfile_path(spec)}.load"


def format_dockerfile_path(spec: Spec) -> str:
    return f"generated/{spec.name}/deploy/Dockerfile"


def _quote_text(text: str) -> str:
    """Quote a text for a Dockerfile, with `$` escaped so that no variable is expanded."""
    return json.dumps(text, ensure_ascii=False).replace("$", "\\$")
