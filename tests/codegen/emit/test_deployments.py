"""The table of deployments: the engine of its entities, and the variables that it does not need."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from codegen.emit.deploy import compose, sentinel
from codegen.emit.postgres import postgres_files
from codegen.language.deployments import DeploymentsFile
from codegen.source.loader import load
from codegen.source.spec import Spec
from tests.support.codegen.specs import FOLDERS, spec, texts

ROOT = Path(__file__).parents[3]
BAKERY, NURSERY = (next(each for each in FOLDERS if each.endswith(name)) for name in ("bakery", "nursery"))


def in_memory(of: Spec) -> Spec:
    """The spec with all deployments in memory."""
    kept = {name: row.model_copy(update={"engine": "memory"}) for name, row in of.deployments.root.items()}
    return replace(of, deployments=DeploymentsFile(kept))


def test_the_variables_of_another_engine_are_not_needed() -> None:
    """Those that say where the entities are by default; what the lifecycle itself names stays."""
    for folder, variables in (
        (BAKERY, ["BAKERY_DATABASE"]),
        (NURSERY, ["NURSERY_BUCKET", "NURSERY_REGION", "NURSERY_STORE"]),
    ):
        of = spec(folder)
        assert all(of.unneeded_variables(each) == [] for each in of.deployments.root.values())
        moved = in_memory(of)
        for each in moved.deployments.root.values():
            assert set(variables) <= set(moved.unneeded_variables(each))
            assert moved.unneeded_variables(each) == sorted(moved.unneeded_variables(each))


def test_the_servers_follow_from_the_engine() -> None:
    """Of one with an outbox there are two."""
    of = spec("spec/priority")
    own, moved = (of.deployments.root[name] for name in ("local", "postgres"))
    assert of.servers_of(own) == {"redis": "REDIS_URL", "postgres": "DATABASE_URL"}
    assert of.servers_of(moved) == {"postgres": "DATABASE_URL"}
    for name in ("memory", "sqlite"):
        assert of.servers_of(of.deployments.root[name]) == {}


def test_a_node_reads_the_variables_of_its_engine() -> None:
    """Nobody else does, unless the entities are there anyway."""
    of = spec("spec/queuey")
    reading = {
        name for name, row in of.deployments.root.items() if "DATABASE_URL" in of.variables_of(row, "queue")
    }
    assert reading == {name for name, row in of.deployments.root.items() if row.engine == "postgres"}
    assert of.unneeded_variables(of.deployments.root["postgres"]) == ["DB_PATH"]


def test_artefacts_of_two_places_do_not_mix() -> None:
    """The history that an outbox writes stays as it is beside the tables of a deployment that has moved."""
    found = texts(postgres_files.emit, spec("spec/priority"))
    own, moved = (found[f"generated/priority/{folder}/schema.sql"] for folder in ("sql", "postgres"))
    assert "CREATE TABLE task_changes" in own
    assert "CREATE TABLE tasks" not in own
    assert "CREATE TABLE tasks" in moved
    assert "task_changes" not in moved
    assert not [
        path for path in texts(postgres_files.emit, spec("spec/orchestrator")) if "/postgres/" in path
    ]


def test_the_engine_of_a_deployment_is_one_word(tmp_path: Path) -> None:
    """From one line to the other the servers follow, and the nodes, and what they read."""
    folder = tmp_path / "priority"
    shutil.copytree(ROOT / "spec" / "priority", folder)
    path = folder / "deployments.yaml"
    text = path.read_text()
    path.write_text(text.replace("  engine: postgres\n", "  engine: redis\n"))
    assert text.count("  engine: postgres\n") == 1
    of = load(folder)
    own, moved = (of.deployments.root[name] for name in ("local", "postgres"))
    assert of.servers_of(moved) == of.servers_of(own)
    for node in own.nodes:
        assert of.variables_of(moved, node) == of.variables_of(own, node)
    assert of.unneeded_variables(moved) == []
    assert not [path for path in texts(postgres_files.emit, of) if "/postgres/" in path]


def test_containers_have_the_servers_and_migrations_of_the_engine() -> None:
    of = spec("spec/priority")
    row = of.deployments.root["compose"].model_copy(update={"engine": "postgres", "servers": {}})
    moved = replace(of, deployments=DeploymentsFile({"compose": row}))
    found = texts(compose.emit, moved)["generated/priority/deploy/compose/compose.yaml"]
    assert "python -m runtime.stores.postgres migrate priority/postgres" in found
    assert "\n  postgres:\n" in found
    assert "\n  redis:\n" not in found
    assert texts(sentinel.emit, moved) == {}
