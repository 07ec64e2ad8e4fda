"""Order of the tests, and the units that one process runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from xdist.scheduler import LoadScopeScheduling

GROUPED = ("tests/taskqueue/blackbox", "tests/objectqueue/page")
"""Folders whose tests use the same six nodes or browser, which take CPU time even while idle."""
LONGEST = (
    "tests/objectqueue/page",
    "tests/taskqueue/blackbox",
    "tests/objectqueue/chaos/test_chaos.py",
    "tests/taskqueue/simulation/test_failure_windows.py",
    "tests/bench/generator/test_load_generator.py",
    "tests/taskqueue/simulation/test_equivalence.py",
    "tests/orchestrator/worker/test_chaos.py",
    "tests/codegen/test_diagnostics.py",
    "tests/queuey/test_claims.py",
    "tests/orchestrator/api/test_pages.py",
    "tests/objectqueue/worker/test_runs.py",
    "tests/orchestrator/worker/test_outages.py",
    "tests/priority/api/test_pages.py",
    "tests/objectqueue/chaos/test_faults.py",
    "tests/bench/peers/test_peers_sql.py",
    "tests/orchestrator/api/failures/test_outages.py",
    "tests/taskqueue/simulation/test_chaos.py",
    "tests/queuey/test_abandonment.py",
    "tests/priority/test_up.py",
    "tests/objectqueue/worker/test_worker_heartbeat.py",
    "tests/bench/peers/test_redis_peers.py",
    "tests/objectqueue/worker/test_stopping.py",
    "tests/orchestrator/api/test_logs.py",
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
    """Scheduler that gives each process a unit at a time."""

    def _split_scope(self, nodeid: str) -> str:
        return find_unit(nodeid)
