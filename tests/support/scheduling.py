"""Which tests one process runs one after the other, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("tests/taskqueue/blackbox", "tests/objectqueue/page")
"""Folders whose tests share what takes processor time even while it waits: six nodes, or a browser."""
LONGEST = (
    "tests/taskqueue/blackbox",
    "tests/objectqueue/page",
    "tests/objectqueue/worker/test_worker_heartbeat.py",
    "tests/objectqueue/worker/test_runs.py",
    "tests/test_locks.py",
    "tests/objectqueue/chaos/test_chaos.py",
    "tests/codegen/review/test_kinds.py",
    "tests/codegen/test_diagnostics.py",
    "tests/runtime/launch/test_launch_supervision.py",
    "tests/queuey/test_deployments_apart.py",
    "tests/orchestrator/worker/test_outages.py",
    "tests/objectqueue/worker/test_polling.py",
    "tests/runtime/stores/s3/client/test_failures.py",
    "tests/objectqueue/worker/test_stopping.py",
    "tests/runtime/transport/grpc/contract/test_calls.py",
    "tests/runtime/stores/postgres/test_embedded.py",
    "tests/orchestrator/api/test_pages.py",
    "tests/runtime/stores/test_field_names.py",
    "tests/objectqueue/chaos/test_outage.py",
    "tests/priority/api/test_pages.py",
    "tests/queuey/test_transports.py",
    "tests/objectqueue/chaos/test_faults.py",
    "tests/runtime/launch/test_launch.py",
    "tests/test_wheel.py",
    "tests/bench/generator/test_load_generator.py",
    "tests/objectqueue/test_up.py",
    "tests/codegen/test_fuzz.py",
)
"""What takes long. It goes first, so that no process is left alone with one of them at the end."""


def unit_of(nodeid: str) -> str:
    """The file of a test, or the folder whose tests stay together."""
    module = nodeid.partition("::")[0]
    return next((folder for folder in TOGETHER if module.startswith(f"{folder}/")), module)


def turns(units: Iterable[str]) -> Mapping[str, float]:
    """The longest first, and then one of each folder in turn: some compute, and others wait."""
    each = [*dict.fromkeys(units)]
    sizes = Counter(unit.split("/")[1] for unit in each)
    seen = Counter[str]()
    found: dict[str, float] = {}
    for unit in each:
        folder = unit.split("/")[1]
        seen[folder] += 1
        found[unit] = LONGEST.index(unit) - len(LONGEST) if unit in LONGEST else seen[folder] / sizes[folder]
    return found


class ByUnits(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each process a unit at a time; chaos tests, which take long, one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if self.config.getoption("--chaos") else unit_of(nodeid)
