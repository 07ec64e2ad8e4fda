"""Objects that were written before the engine had the contract are read, claimed, settled and repaired."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from tests.runtime.stores.s3.conftest import Make
from tests.runtime.stores.s3.kit import Process
from tests.support.s3.fixtures import Bucket

WRITTEN = Path(__file__).parent / "data/written_before.json"
AT_MS = 1_780_000_000_000
"""When they were written."""


def written_before() -> dict[str, Any]:
    """The objects by key, and the records that they were; long texts are shortened in the file."""
    text = WRITTEN.read_text(encoding="utf-8")
    for letter in "xy":
        text = text.replace(f"<70000 {letter}>", 70_000 * letter)
    found: dict[str, Any] = json.loads(text)
    return found


def put_back(bucket: Bucket, process: Make) -> tuple[Process, dict[str, Any]]:
    """A process on a bucket with those objects, a moment after they were written."""
    before = written_before()
    refs = [ref for each in before["tasks"] for ref in (each["input_ref"], each["output_ref"]) if ref]
    versions = {each["key"]: each["version"] for each in refs}
    written: dict[str, str] = {}
    # Large values come first: others name their versions, which every bucket numbers anew.
    for key in sorted(before["objects"], key=lambda key: not key.startswith("data/")):
        body = before["objects"][key]
        for old, new in written.items():
            body = body.replace(old, new)
        put = bucket.raw.put_object(Bucket=bucket.name, Key=key, Body=body.encode())
        if key in versions:
            written[versions[key]] = put["VersionId"]
    one = process()
    one.world.stands_at_ms = AT_MS + 1000
    return one, before


def shown(record: Any) -> dict[str, Any]:
    """A record without the versions of large values, which every bucket numbers anew."""
    found: dict[str, Any] = json.loads(json.dumps(to_builtins(record)))
    for ref in ("input_ref", "output_ref"):
        if found.get(ref):
            found[ref]["version"] = None
    return found


async def test_every_record_is_what_it_was(process: Make, bucket: Bucket) -> None:
    """Large values included; what is written again has the same members in the same form."""
    one, before = put_back(bucket, process)
    for wanted in before["tasks"]:
        assert shown(await one.tasks.get(wanted["id"])) == shown(wanted)
    workers = one.store("worker")
    for wanted in before["workers"]:
        assert shown(await workers.get(wanted["worker_id"])) == wanted


async def test_what_was_begun_goes_on(process: Make, bucket: Bucket) -> None:
    """Leases are settled, what waits is claimed by its hint, and nothing has to be repaired."""
    one, before = put_back(bucket, process)
    assert await one.repair() == 0
    tasks = {each["id"]: each for each in before["tasks"]}
    held = [each for each in tasks.values() if each["status"] == one.states["RUNNING"]]
    for each in held:
        record = await one.tasks.get(each["id"])
        assert await one.settle(record, "complete", output="1") == one.states["COMPLETED"]
        old = json.loads(before["objects"][f"tasks/{each['shard']}/{each['id']}.json"])
        new = one.raw_task(record)
        assert list(new) == list(old) and new["rev"] == old["rev"] + 1
        touched = {"status", "rev", "output", "updated_at", "completed_at", "lease_expires_at", "lease_id"}
        assert {name for name in new if new[name] != old[name]} - {"input_ref"} <= touched
    one.world.stands_at_ms = AT_MS + 20_000
    waiting = [each for each in tasks.values() if each["status"] == one.states["PENDING"]]
    claimed = await one.take(free=9)
    assert {each.id for each in claimed} == {each["id"] for each in waiting if not each["id"].startswith("2")}
    assert all(each.attempt == tasks[each.id]["attempt"] + 1 for each in claimed)
