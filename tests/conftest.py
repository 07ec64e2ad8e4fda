"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from runtime.embedded.postgres import EmbeddedPostgres
from tests.clusters import SHARED, Clusters

pytest_plugins = ["tests.s3_fixtures"]

TESTS = Path(__file__).parent
LONGEST = (
    "objectqueue/test_chaos.py",
    "taskqueue/test_failure_windows.py",
    "objectqueue/page/test_list.py",
    "bench/test_load_generator.py",
    "taskqueue/test_equivalence.py",
    "orchestrator/worker/test_chaos.py",
    "codegen/test_diagnostics.py",
    "queuey/test_claims.py",
    "orchestrator/api/test_pages.py",
    "objectqueue/test_runs.py",
    "objectqueue/page/test_detail.py",
    "orchestrator/worker/test_outages.py",
    "priority/test_pages.py",
    "objectqueue/test_faults.py",
    "bench/test_peers_sql.py",
    "objectqueue/page/test_actions.py",
    "orchestrator/api/test_outages.py",
    "taskqueue/test_chaos.py",
    "objectqueue/page/test_access.py",
    "queuey/test_abandonment.py",
    "priority/test_up.py",
    "objectqueue/test_presence.py",
    "bench/test_redis_peers.py",
    "objectqueue/test_stopping.py",
    "orchestrator/api/test_logs.py",
)
"""Modules that take long. They go first, so that no worker is left alone with one of them at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the longest modules first, and then one of each folder in turn: some compute, and others wait."""
    modules = [*dict.fromkeys(item.path.relative_to(TESTS).as_posix() for item in items)]
    sizes = Counter(module.partition("/")[0] for module in modules)
    seen = Counter[str]()
    turns: dict[str, float] = {}
    for module in modules:
        folder = module.partition("/")[0]
        seen[folder] += 1
        turns[module] = (
            LONGEST.index(module) - len(LONGEST) if module in LONGEST else seen[folder] / sizes[folder]
        )
    items.sort(key=lambda item: turns[item.path.relative_to(TESTS).as_posix()])


def pytest_collection_finish() -> None:
    """Has the collector leave alone what is there for good: six thousand tests and all that they import."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`nox -s test -- --deep` tries more of what is tried by chance, and stays longer."""
    parser.addoption("--deep", action="store_true", help="many more random sequences, kills and rounds")


def pytest_configure(config: pytest.Config) -> None:
    """Tells the modules and the parallel workers, which are started after this."""
    # Processes that tests start find their modules compiled, whatever the surroundings wish: half the time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if config.getoption("--deep"):
        os.environ["CHARTER_DEEP"] = "1"
    settings.register_profile(
        "charter",
        max_examples=1000 if config.getoption("--deep") else 50,
        # These judge the machine, which has much else to do.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("charter")


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    """Makes PostgreSQL servers."""
    with tempfile.TemporaryDirectory(prefix="charter-test-") as folder:
        Path(folder).chmod(0o711)
        yield Clusters(Path(folder))


@pytest.fixture(scope="session")
def shared_postgres(clusters: Clusters) -> Iterator[EmbeddedPostgres]:
    """A server for all tests of the process. Each makes databases of its own, and nobody stops it."""
    with clusters.started(**SHARED) as made:
        yield made
