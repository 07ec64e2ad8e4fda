"""The examples of what a deployment may be told."""

from __future__ import annotations

import re

import pytest

from codegen.emit.deploy import compose
from tests.support.codegen.specs import FOLDERS, spec, texts


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_example_names_all_that_compose_can_be_told(folder: str) -> None:
    """Each variable that compose looks up is explained once, commented out, with the default of compose."""
    found = texts(compose.emit, spec(folder))
    for path, text in found.items():
        if path.endswith("compose.yaml"):
            example = found[path.replace("compose.yaml", ".env.example")]
            assert all(not line or line.startswith("#") for line in example.splitlines())
            told = dict(re.findall(r"^#(\w+)=(.*)$", example, re.MULTILINE))
            assert len(told) == len(re.findall(r"^#\w+=", example, re.MULTILINE))
            used = dict(re.findall(r"(?<!\$)\$\{(\w+):-([^}]*)\}", text))
            required = set(re.findall(r"(?<!\$)\$\{(\w+):\?must be set\}", text))
            passed_on = set(re.findall(r"^\s+([A-Z_]+):$", text, re.MULTILINE))
            assert set(told) == set(used) | required | passed_on
            assert all(told[name] == default for name, default in used.items())
            assert all(told[name] == "" for name in required)


def test_the_example_asks_for_the_password_of_a_server() -> None:
    """Who starts a server with the nodes makes up its password; where the server is nobody has to say."""
    example = texts(compose.emit, spec("tests/specs/bakery"))["generated/bakery/deploy/village/.env.example"]
    assert "required).\n#POSTGRES_PASSWORD=\n" in example
    assert "#   BAKERY_DATABASE (postgres)\n" in example
    assert "#BAKERY_DATABASE=" not in example


def test_the_example_tells_meaning_and_unit() -> None:
    """A line of the example says what the variable means, its unit and its default."""
    found = texts(compose.emit, spec("spec/taskqueue"))
    example = found["generated/taskqueue/deploy/microservices/.env.example"]
    assert (
        "# Silence after which a worker counts as unavailable (in ms).\n#WORKER_TIMEOUT_MS=4000\n" in example
    )
    assert "#   JOB_SERVICE_ADDR (job)\n" in example
