"""A new system: its spec is added, and everything else is generated."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.__main__ import main
from tests.support.codegen.projects import BAKERY, LAUNDRY, LOCKER, RENTAL, ROOT, TASKQUEUE, project, snapshot


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that was generated for one system, got the folder of another, and was generated again."""
    root = project(tmp_path_factory.mktemp("project"))
    assert main(["generate", "--root", str(root)]) == 0
    project(root, [LOCKER, BAKERY, RENTAL, LAUNDRY])
    assert main(["generate", "--root", str(root)]) == 0
    return root


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the generated modules before those of the repository."""
    path = os.pathsep.join((str(root), str(ROOT)))
    environ = {**os.environ, "PYTHONPATH": path, "MYPYPATH": path}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)


def test_a_new_folder_is_picked_up(root: Path) -> None:
    """Protos, stubs, tables, deployments and pages of the new system are there."""
    written = set(snapshot(root))
    assert {
        "proto/locker_desk.proto",
        "generated/locker_vault_pb2_grpc.py",
        "generated/locker/callers.py",
        "generated/locker/deploy/kiosk/compose.yaml",
        "docs/reference/locker.md",
    } <= written


def test_the_other_system_is_as_it_was(root: Path, tmp_path: Path) -> None:
    """A neighbour changes no file that is generated from another spec."""
    alone = project(tmp_path)
    assert main(["generate", "--root", str(alone)]) == 0
    assert dict(list_taskqueue_files(alone)) == dict(list_taskqueue_files(root))


def list_taskqueue_files(root: Path) -> Iterator[tuple[str, bytes]]:
    for path, content in snapshot(root).items():
        if TASKQUEUE.name in path:
            yield path, content


def test_the_new_modules_can_be_imported_and_used(root: Path) -> None:
    """In a fresh interpreter the new tables load, and its rules, matrix and settings work."""
    program = """
import generated.locker.system as module
from generated.locker import messages, requests
from generated.locker.settings import VaultSettings

assert module.__file__.startswith(ROOT), module.__file__
system = module.SYSTEM
assert set(system.deployments) == {"branch", "kiosk"}
assert system.lifecycles["parcel"].initial == messages.EXPECTED
wrong = requests.check_announce_parcel_request(messages.AnnounceParcelRequest(waybill="x"))
assert [each.field for each in wrong] == ["waybill", "items", "code"], wrong
nested = messages.AnnounceParcelRequest(waybill="DE123456789", code="123456", items={"book": messages.Item()})
assert [each.field for each in requests.check_announce_parcel_request(nested)] == ["items['book'].grams"]
requests.settle_announce_parcel_request(nested)
assert nested.size == messages.SMALL
assert VaultSettings.load({"SHELF_DAYS": "99"}).shelf_days == 30
"""
    completed = run(root, "-c", f"ROOT = {str(root)!r}\n{program}")
    assert completed.returncode == 0, completed.stderr


def test_entities_that_a_server_keeps_have_records_and_tables(root: Path) -> None:
    """In a fresh interpreter leases, waits, routes and public states are as in the spec."""
    program = """
from datetime import UTC, datetime

from generated.bakery import messages
from generated.bakery.lifecycle import CAKE, CAKE_BURN
from generated.bakery.records import CakeRecord
from generated.bakery.settings import BakerSettings
from generated.bakery.system import SYSTEM

record = CakeRecord(order_id="1", state=messages.NOTED)
assert (record.baker, record.burnt, record.placed_at) == (None, 0, datetime(1, 1, 1, tzinfo=UTC))
assert CAKE.record is CakeRecord and CAKE.holders == {"counter", "baker", "porter"}
assert CAKE.kept.unique == ("order_number",) and CAKE.lease.seconds == "OVEN_SECONDS"
assert CAKE.public_status[messages.BINNED] == messages.PROGRESS_GONE
assert CAKE_BURN.via is None and CAKE_BURN.increment == "burnt" and CAKE_BURN.dues[0].by == "porter"
assert CAKE.transition(CAKE_BURN.dead_letter.transition).target == messages.BINNED
settings = BakerSettings.load({"BAKERY_DATABASE": "postgresql://localhost/bakery", "NIGHT_SHIFT": "true"})
assert (settings.night_shift, settings.oven_seconds) == (True, 0.5)
shop = SYSTEM.deployments["home"].nodes["shop"]
assert (shop.anonymous, shop.http.port_variable) == ("customer", "SHOP_PORT")
assert "bakery.v1.PlaceOrderRequest.recipe" in SYSTEM.json_fields
assert SYSTEM.enum_prefixes == {"bakery.v1.Progress": "PROGRESS_"}
route = SYSTEM.services["CounterService"].methods[0].route
assert (route.method, route.path, route.status) == ("POST", "/orders", 201)
"""
    completed = run(root, "-c", program)
    assert completed.returncode == 0, completed.stderr


def test_entities_that_redis_keeps_have_records_and_tables(root: Path) -> None:
    """In a fresh interpreter indexes, updates, holders, clocks and words are as in the spec."""
    program = """
from generated.rental import messages
from generated.rental.lifecycle import BIKE, BIKE_DROP, BIKE_HURRY_SMALL, BIKE_NOTE, VAN
from generated.rental.records import BikeRecord
from generated.rental.system import SYSTEM

record = BikeRecord(bike_id="1")
assert (record.tools, record.plate, record.size, record.mended) == ((), None, 0, False)
kept = BIKE.in_redis
assert BIKE.kept is None and kept.hash == "bikes:{bike_id}" and kept.sequence == "changes"
assert kept.types["tools"] == "repeated string" and kept.types["state"] == "enum"
assert kept.words["state"][messages.BIKE_ABOARD] == "aboard" and "plate" in kept.optional
assert VAN.in_redis.words["state"][messages.DRIVING] == "DRIVING"
assert kept.indexes["waiting"].parts.by == "tools" and kept.indexes["loaded"].score is None
assert kept.outbox.by == "clerk" and kept.unique["plate"].seconds == "PLATE_SECONDS"
assert BIKE.lease.claim_order == (messages.SIZE_CARGO, messages.SIZE_LARGE, messages.SIZE_SMALL)
assert BIKE.lease.holder.states == {messages.DRIVING}
assert BIKE.defaults["most_drops"].of[messages.SIZE_CARGO] == "LARGE_DROPS"
assert BIKE.ceiling.index == "waiting"
assert BIKE.copy == {"urgency": "size", "first_seconds": "trip_seconds"}
assert BIKE.deletion_due.after == "LOST_SECONDS" and VAN.unless_holding == "bike"
assert BIKE_DROP.dues[1].holder_in == messages.GONE and BIKE_DROP.dues[1].at is None
assert BIKE_DROP.dues[0].values["reason"] == "late" and BIKE_DROP.multiply["trip_seconds"].times == 1.5
assert BIKE_HURRY_SMALL.where == {"urgency": messages.SIZE_SMALL} and BIKE.updates["note"] is BIKE_NOTE
assert BIKE_HURRY_SMALL.sets == {"urgency": messages.SIZE_LARGE} and BIKE_NOTE.fenced
assert SYSTEM.word("rental.v1.BikeSize", "SIZE_SMALL") == "small"
assert SYSTEM.deployments["home"].servers == {"redis": "RENTAL_STORE", "postgres": "ARCHIVE_DATABASE"}
"""
    completed = run(root, "-c", program)
    assert completed.returncode == 0, completed.stderr


def test_the_new_modules_are_typed(root: Path) -> None:
    """mypy --strict has nothing to say about any generated module of the new systems."""
    completed = run(
        root,
        *(
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--follow-imports=silent",
            # What is known of libraries since the last run takes most of the time.
            "--cache-dir",
            str(ROOT / ".mypy_cache/new_system"),
        ),
        *("-p", "generated.locker", "-p", "generated.bakery"),
        *("-p", "generated.rental", "-p", "generated.laundry"),
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_the_new_modules_are_formatted(root: Path) -> None:
    """Linter and formatter of the repository accept the generated modules."""
    folders = [f"generated/{name}" for name in ("locker", "bakery", "rental", "laundry")]
    config = ("--config", str(ROOT / "pyproject.toml"), "--no-cache", *folders)
    assert run(root, "-m", "ruff", "format", "--check", *config).returncode == 0
    lint = run(root, "-m", "ruff", "check", *config)
    assert lint.returncode == 0, lint.stdout


def test_the_files_of_a_removed_system_are_removed(root: Path, tmp_path: Path) -> None:
    """Without its spec nothing of a system may stay, neither modules nor protos nor pages."""
    both = project(tmp_path, [TASKQUEUE, LOCKER])
    assert main(["generate", "--root", str(both)]) == 0
    for file in (both / "spec/locker").iterdir():
        file.unlink()
    assert main(["generate", "--root", str(both), "--check"]) == 1
    assert main(["generate", "--root", str(both)]) == 0
    assert not [path for path in snapshot(both) if "locker" in path]
