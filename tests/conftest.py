"""Hooks and fixtures of all tests."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from xdist.remote import Producer

from runtime.launch.embedded.postgres import EmbeddedPostgres
from tests.support import postgres_clusters
from tests.support.memory_folder import use_memory
from tests.support.postgres_clusters import SHARED, Clusters
from tests.support.scheduling import UnitScheduling, find_unit, order_units
from tests.support.specs.neutral import open_session

pytest_plugins = ["tests.support.chaos", "tests.support.s3.fixtures"]
FOLDERS = [
    folder
    for folder in (use_memory(), open_session(), postgres_clusters.open_session())
    if folder is not None
]
"""Folders of the session, made before other modules are imported and parallel workers are started."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests: long ones first, and grouped ones next to each other."""
    order = order_units(find_unit(item.nodeid) for item in items)
    items.sort(key=lambda item: order[find_unit(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> UnitScheduling:
    """Schedule whole units to the parallel processes, in that order."""
    return UnitScheduling(config, log)


def pytest_collection_finish() -> None:
    """Freeze the garbage collector's view of six thousand tests and their imports, which stay for good."""
    gc.freeze()
    # Most of what a test makes is gone with it, so that looking for circles seldom finds any.
    gc.set_threshold(20_000, 10, 50)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--deep`, which runs more of the random tests; `nox -s chaos` kills and races for longer."""
    parser.addoption("--deep", action="store_true", help="many more examples, sequences and repetitions")


def pytest_configure(config: pytest.Config) -> None:
    """Set the variables and profile of the modules and the parallel workers, which start after this."""
    # Write bytecode whatever the caller has set: processes that tests start need half the time then.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # As in our processes (`carrier.py` says why), also where a test imports grpc before a carrier does.
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
    if config.getoption("--deep"):
        os.environ["CHARTER_DEEP"] = "1"
    for folder in FOLDERS:
        # A process that a test has killed the parent of may still write.
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    settings.register_profile(
        "charter",
        max_examples=1000 if config.getoption("--deep") else 25,
        # The same examples in every run; `--deep` looks for new ones.
        derandomize=not config.getoption("--deep"),
        # These depend on the load of the machine.
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("charter")
    if not config.getoption("--deep"):
        _forget_code()


def _forget_code() -> None:
    """Draw no text and no number from the code of the modules that happen to be loaded.

    Which are loaded depends on the tests that a process has run, so the same test had other examples in the
    next run, even with a fixed seed. To read all of that code takes each process a second, too.
    """
    nothing = Constants()
    # No setting turns it off; `test_same_examples.py` looks whether this does.
    setattr(providers, "_get_local_constants", lambda: nothing)  # noqa: B010


@pytest.fixture(scope="session")
def clusters() -> Iterator[Clusters]:
    """A folder for PostgreSQL servers."""
    with tempfile.TemporaryDirectory(prefix="charter-test-") as folder:
        Path(folder).chmod(0o711)
        yield Clusters(Path(folder))


@pytest.fixture(scope="session")
def shared_postgres(clusters: Clusters) -> Iterator[EmbeddedPostgres]:
    """A server for all tests of the process. Each creates databases of its own, and none stops it."""
    with clusters.started(**SHARED) as made:
        yield made
