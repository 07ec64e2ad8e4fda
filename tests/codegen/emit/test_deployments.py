"""The table of deployments: the engine of its entities, and the variables that it does not need."""

from __future__ import annotations

from dataclasses import replace

from codegen.language.deployments import DeploymentsFile
from codegen.source.spec import Spec
from tests.support.codegen.specs import FOLDERS, spec

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
