"""Project files: its folders, its dependencies and the commands on its pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generated.taskqueue.system import SYSTEM
from tests.support.scheduling import GROUPED, LONGEST

ROOT = Path(__file__).parent.parent
SESSIONS = set(
    re.findall(
        r"^@nox\.session.*\ndef (\w+)\(", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE
    )
)
PAGES = ("README.md", "CONTRIBUTING.md")


@pytest.mark.req("TQ-210", "CH-92")
@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "proto/taskqueue_public.proto",
        "proto/taskqueue_internal.proto",
        "generated/taskqueue_public_pb2.py",
        "generated/taskqueue/deploy/Dockerfile",
        "generated/taskqueue/deploy/microservices/compose.yaml",
        "generated/taskqueue/deploy/monolith/compose.yaml",
        *(f"handlers/taskqueue/{name}.py" for name in ("gateway", "job", "queue", "coordinator")),
        *(f"handlers/taskqueue/{name}.py" for name in ("worker", "result")),
        "scripts/healthcheck.py",
        "bench/results",
    ],
)
def test_required_files_exist(path: str) -> None:
    """The repository has the files that the requirements list."""
    assert (ROOT / path).exists()


@pytest.mark.req("TQ-216", "TQ-220")
def test_the_services_need_no_database_and_no_consensus() -> None:
    """Neither design has a store or starts a server, and no image has a library for consensus.

    The drivers that are installed are for systems and deployments that keep entities in PostgreSQL, in Redis
    or in a bucket.
    """
    assert {each.engine for each in SYSTEM.lifecycles.values()} == {"memory"}
    designs = [SYSTEM.deployments[name] for name in ("microservices", "monolith")]
    assert all(not each.servers and each.engine == "memory" for each in designs)
    lock = (ROOT / "requirements-run.lock").read_text(encoding="utf-8")
    installed = set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    assert {"grpcio", "protobuf"} <= installed
    databases = ("sql", "redis", "mongo", "psycopg", "asyncpg", "boto", "obstore")
    stores = (*databases, "raft", "etcd", "zookeeper", "kazoo")
    drivers = {name for name in installed if any(each in name for each in stores)}
    assert drivers == {"asyncpg", "botocore", "hiredis", "obstore", "redis"}


@pytest.mark.req("TQ-219")
def test_every_command_on_the_pages_is_there() -> None:
    """A reader who types a command of the pages finds a session of that name."""
    for page in PAGES:
        named = set(re.findall(r"nox -s (\w+)", (ROOT / page).read_text(encoding="utf-8")))
        assert named
        assert named <= SESSIONS, f"{page} names {named - SESSIONS}"


@pytest.mark.req("TQ-219")
def test_continuous_integration_runs_what_the_readme_says() -> None:
    """One command runs the tests, and it is the one in the README."""
    assert "nox -s test" in (ROOT / "README.md").read_text(encoding="utf-8")
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert script.rstrip().endswith("-m nox -s test")


@pytest.mark.req("TQ-213", "TQ-214", "CH-13")
def test_the_pages_say_how_a_change_is_recorded() -> None:
    """The page for contributors lists the content of a record."""
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
    for item in ("what changed", "why", "expected impact", "why the design fails", "the scope"):
        assert item in text


@pytest.mark.parametrize("unit", sorted({*LONGEST, *GROUPED}))
def test_ordered_units_exist(unit: str) -> None:
    """The order of the tests names modules that exist, and folders that pytest knows as packages."""
    assert (ROOT / unit).is_file() or (unit in GROUPED and (ROOT / unit / "__init__.py").is_file())
