"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from runtime.embedded.postgres import EmbeddedPostgres
from tests.support.postgres_clusters import SHARED, Clusters
from tests.support.scheduling import ByUnits, turns, unit_of
from tests.support.specs.neutral import open_session

pytest_plugins = ["tests.support.s3.fixtures"]
SPECS = open_session()
"""Before any other module of the tests is imported, and before parallel workers are started."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts what takes long first, and leaves together what belongs together."""
    order = turns(unit_of(item.nodeid) for item in items)
    items.sort(key=lambda item: order[unit_of(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByUnits:
    """Parallel processes take whole units, in that order."""
    return ByUnits(config, log)


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
    if SPECS is not None:
        config.add_cleanup(lambda: shutil.rmtree(SPECS))
    settings.register_profile(
        "charter",
        max_examples=1000 if config.getoption("--deep") else 50,
        # What was green stays green; `--deep` is for looking around.
        derandomize=not config.getoption("--deep"),
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
