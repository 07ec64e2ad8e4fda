"""Order of the tests, and the units that one process runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from xdist.scheduler import LoadScopeScheduling

GROUPED = ("tests/taskqueue/blackbox", "tests/objectqueue/page/tasks", "tests/objectqueue/page")
"""Folders whose tests use the same six nodes or browser, which take CPU time even while idle."""
LONGEST = (
    "tests/taskqueue/breakdowns/test_lost_nodes.py",
    "tests/objectqueue/page/tasks",
    "tests/taskqueue/test_engines.py",
    "tests/runtime/stores/s3/client/test_failures.py",
    "tests/queuey/test_deployments_apart.py",
    "tests/queuey/runner/test_runner.py",
    "tests/taskqueue/blackbox",
    "tests/queuey/test_claims.py",
    "tests/objectqueue/chaos/test_outage.py",
    "tests/bench/generator/test_load_generator.py",
    "tests/priority/test_engines.py",
    "tests/objectqueue/worker/test_worker_heartbeat.py",
    "tests/codegen/emit/docs/test_reference.py",
    "tests/objectqueue/worker/test_polling.py",
    "tests/bench/peers/test_redis_peers.py",
    "tests/runtime/launch/test_launch_supervision.py",
    "tests/stores/test_differential.py",
    "tests/objectqueue/page",
    "tests/priority/test_up.py",
    "tests/runtime/stores/test_field_names.py",
    "tests/codegen/test_bare_specs.py",
    "tests/jobs/test_handlers_option.py",
    "tests/objectqueue/chaos/test_chaos.py",
    "tests/queuey/test_cli.py",
    "tests/objectqueue/worker/test_stopping.py",
    "tests/runtime/stores/postgres/test_guards.py",
    "tests/priority/chaos/test_failover.py",
    "tests/objectqueue/test_up.py",
    "tests/stores/test_edges.py",
    "tests/runtime/stores/history/test_writing.py",
    "tests/objectqueue/chaos/test_faults.py",
    "tests/runtime/launch/embedded/test_embedded_seaweedfs.py",
    "tests/orchestrator/worker/test_zombies.py",
    "tests/objectqueue/worker/test_runs.py",
    "tests/runtime/worker/test_lease_worker.py",
    "tests/codegen/test_generate.py",
)
"""Long units. They go first, so that no process runs one of them alone at the end."""


def find_unit(nodeid: str) -> str:
    """Find the unit of a test: its file, or its grouped folder."""
    module = nodeid.partition("::")[0]
    return next((folder for folder in GROUPED if module.startswith(f"{folder}/")), module)


def order_units(units: Iterable[str]) -> Mapping[str, float]:
    """Order the units: the longest first, and then one of each folder in turn: some compute, others wait."""
    each = [*dict.fromkeys(units)]
    sizes = Counter(unit.split("/")[1] for unit in each)
    seen = Counter[str]()
    order: dict[str, float] = {}
    for unit in each:
        folder = unit.split("/")[1]
        seen[folder] += 1
        order[unit] = LONGEST.index(unit) - len(LONGEST) if unit in LONGEST else seen[folder] / sizes[folder]
    return order


class UnitScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Scheduler that gives each process a unit at a time; chaos tests, which take long, one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if self.config.getoption("--chaos") else find_unit(nodeid)
