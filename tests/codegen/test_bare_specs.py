"""Specs that use little of the language: an omitted part breaks no generated file."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codegen.__main__ import main
from codegen.generate import build
from codegen.source.yaml_reader import parse
from tests.support import quick_yaml
from tests.support.codegen.projects import BAKERY, LOCKER, RENTAL, snapshot

Data = dict[str, Any]


def methods(data: Data) -> list[Data]:
    return [row for service in data["services"]["services"].values() for row in service["methods"].values()]


def without_entities(data: Data) -> None:
    data["lifecycle"]["entities"] = {}
    data["services"]["services"]["VaultService"]["methods"]["MoveParcel"].pop("drives")
    data["system"]["policies"].pop("retention")
    data["environment"]["variables"].pop("KEPT_PARCELS")


def without_retries(data: Data) -> None:
    data["system"]["policies"]["retry"] = {}
    for row in methods(data):
        row.pop("retry", None)


def without_soft_outcomes(data: Data) -> None:
    conditions = data["errors"]["conditions"]
    soft = [name for name, row in conditions.items() if "soft" in row]
    for name in soft:
        conditions.pop(name)
    for row in methods(data):
        row["raises"] = [name for name in row.get("raises", []) if name not in soft]


def without_odds_and_ends(data: Data) -> None:
    data["environment"].pop("rules")
    data["errors"].pop("events")
    data["system"]["policies"].pop("log_fields")
    for row in methods(data):
        row.pop("route", None)


def without_leases(data: Data) -> None:
    cake = data["lifecycle"]["entities"]["cake"]
    cake.pop("lease")
    cake["transitions"]["burn"].pop("due")
    data["errors"]["conditions"].pop("taken_over")


def without_clocks(data: Data) -> None:
    data["lifecycle"]["entities"]["cake"].pop("overrides")
    for row in data["lifecycle"]["entities"]["cake"]["transitions"].values():
        for word in ("increment", "backoff", "dead_letter", "due"):
            row.pop(word, None)


def without_shows(data: Data) -> None:
    cake = data["lifecycle"]["entities"]["cake"]
    for word in ("public_status", "listed_by"):
        cake.pop(word)
    cake.pop("unique")


def without_http(data: Data) -> None:
    for row in methods(data):
        row.pop("route")
    shop, oven = data["deployments"]["home"]["nodes"].values()
    data["deployments"].pop("village")
    for node in (shop, oven):
        node.pop("http")
    shop["healthcheck"] = {"mode": "tcp", "target": "127.0.0.1:${SHOP_GRPC_PORT}"}
    shop["hosts"] = ["counter", "baker", "porter"]
    data["deployments"]["home"]["nodes"].pop("oven")
    for name in ("SHOP_PORT", "OVEN_PORT"):
        data["environment"]["variables"].pop(name)


def without_metrics(data: Data) -> None:
    data.pop("metrics")
    data["storage"]["redis"].pop("metrics")
    data["environment"]["variables"].pop("RECENT_SECONDS")


def without_history(data: Data) -> None:
    entities, redis = data["lifecycle"]["entities"], data["storage"]["redis"]
    redis.pop("prefix")
    for word in ("outbox", "wake_up", "trace", "replicas", "unique"):
        redis["entities"]["bike"].pop(word)
    entities["bike"].pop("unique_for")
    for name in ("bike", "van"):
        entities[name].pop("expires")
    for name in ("ARCHIVE_DATABASE", "COPIES", "KEPT_SECONDS", "PLATE_SECONDS", "RENTAL_PREFIX"):
        data["environment"]["variables"].pop(name)


def without_names(data: Data) -> None:
    """No names of keys; those of the engine are used, and it counts nothing."""
    data["storage"]["redis"]["entities"] = {}
    data["storage"]["redis"].pop("metrics")
    data.pop("metrics")
    for name in ("ARCHIVE_DATABASE", "COPIES", "RECENT_SECONDS"):
        data["environment"]["variables"].pop(name)


def without_storage(data: Data) -> None:
    """No storage.yaml: leases, clocks, unique fields and indexes under nothing but defaults."""
    data.pop("storage")
    for deployment in data["deployments"].values():
        deployment["engine"] = "postgres"
    variables = data["environment"]["variables"]
    variables["DATABASE_URL"] = variables.pop("BAKERY_DATABASE", None) or variables.pop("RENTAL_STORE")
    if "metrics" in data:
        data.pop("metrics")
        for name in ("ARCHIVE_DATABASE", "COPIES", "RECENT_SECONDS", "RENTAL_PREFIX"):
            variables.pop(name)


def without_work(data: Data) -> None:
    """No leases, no updates, no clocks: entities that are only stored."""
    bike, van = data["lifecycle"]["entities"].values()
    for word in ("lease", "updates"):
        bike.pop(word)
    for row in bike["transitions"].values():
        for word in ("due", "dead_letter", "backoff", "increment", "multiply", "copy", "reason"):
            row.pop(word, None)
    for index in ("waiting", "resting", "loaded", "aboard"):
        bike["indexes"].pop(index)
        data["storage"]["redis"]["entities"]["bike"]["indexes"].pop(index)
    bike["create"] = {"by": ["yard"], "trigger": "Someone leaves a bike.", "stamps": ["changed_at"]}
    bike["delete"].pop("due")
    for edge in ("miss", "miss_resting"):
        van["transitions"][edge].pop("due")
    van["delete"].pop("unless_holding")
    for condition in ("taken_over", "not_empty"):
        data["errors"]["conditions"].pop(condition)
    data.pop("metrics")


@pytest.mark.parametrize(
    ("spec", "omit"),
    [
        *((LOCKER, each) for each in (without_entities, without_retries)),
        *((LOCKER, each) for each in (without_soft_outcomes, without_odds_and_ends)),
        *((BAKERY, each) for each in (without_leases, without_clocks, without_shows, without_http)),
        *((RENTAL, each) for each in (without_metrics, without_history, without_names, without_work)),
        *((each, without_storage) for each in (BAKERY, RENTAL)),
    ],
)
def test_a_part_of_the_language_may_be_omitted(
    spec: Path, omit: Callable[[Data], None], tmp_path: Path
) -> None:
    """A spec without some part of the language is accepted, and every generated module is valid Python."""
    sources = (parse(path.name, path.read_text(encoding="utf-8"))[0] for path in spec.glob("*.yaml"))
    data = {source.name.removesuffix(".yaml"): source.data for source in sources}
    omit(data)
    folder = tmp_path / "spec" / spec.name
    folder.mkdir(parents=True)
    for name, part in data.items():
        (folder / f"{name}.yaml").write_text(quick_yaml.write(part))
    wanted, outcome = build(tmp_path)
    assert not outcome.diagnostics
    for name, text in wanted.items():
        if name.endswith(".py"):
            ast.parse(text, name)


def test_a_project_without_specs_is_a_project(tmp_path: Path) -> None:
    """Before the first spec there are the schemas to write it by, and the pages about the language."""
    assert main(["generate", "--root", str(tmp_path)]) == 0
    written = snapshot(tmp_path)
    assert {"spec/schema/types.schema.json", "docs/reference/errors.md"} <= written.keys()
    assert not [path for path in written if path.startswith("proto/")]
