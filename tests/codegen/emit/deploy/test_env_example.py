"""The example files with all variables of a deployment."""

from __future__ import annotations

import re

import pytest

from codegen.emit.deploy import compose
from tests.support.codegen.specs import FOLDERS, spec, texts


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_example_has_every_variable_of_compose(folder: str) -> None:
    """Each variable that compose reads is explained once, commented out, with the default of compose."""
    found = texts(compose.emit, spec(folder))
    for path, text in found.items():
        if path.endswith("compose.yaml"):
            example = found[path.replace("compose.yaml", ".env.example")]
            assert all(not line or line.startswith("#") for line in example.splitlines())
            defaults = dict(re.findall(r"^#(\w+)=(.*)$", example, re.MULTILINE))
            assert len(defaults) == len(re.findall(r"^#\w+=", example, re.MULTILINE))
            used = dict(re.findall(r"(?<!\$)\$\{(\w+):-([^}]*)\}", text))
            required = set(re.findall(r"(?<!\$)\$\{(\w+):\?must be set\}", text))
            passed_on = set(re.findall(r"^\s+([A-Z_]+):$", text, re.MULTILINE))
            assert set(defaults) == set(used) | required | passed_on
            assert all(defaults[name] == default for name, default in used.items())
            assert all(defaults[name] == "" for name in required)


def test_the_example_asks_for_the_password_of_a_server() -> None:
    """The user chooses the password of an included server; its address need not be set."""
    example = texts(compose.emit, spec("tests/specs/bakery"))["generated/bakery/deploy/village/.env.example"]
    assert "required).\n#POSTGRES_PASSWORD=\n" in example
    assert "#   BAKERY_DATABASE (postgres)\n" in example
    assert "#BAKERY_DATABASE=" not in example


def test_the_example_has_meaning_and_unit() -> None:
    """A line of the example has the meaning of the variable, its unit and its default."""
    found = texts(compose.emit, spec("spec/taskqueue"))
    example = found["generated/taskqueue/deploy/microservices/.env.example"]
    assert (
        "# Silence after which a worker counts as unavailable (in ms).\n#WORKER_TIMEOUT_MS=4000\n" in example
    )
    assert "#   JOB_SERVICE_ADDR (job)\n" in example
