"""Compose files with a Redis: durable, closed, bounded, and in a variant that outlives a lost server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from codegen.emit.deploy import compose, kubernetes, sentinel
from codegen.source.spec import Spec
from tests.support import quick_yaml
from tests.support.codegen.specs import change_spec, run, spec, texts

FOLDER = "generated/bakery/deploy/village"


def with_redis() -> Spec:
    def bring(data: Any) -> None:
        data["village"]["servers"] = {"redis": "BAKERY_DATABASE"}

    return change_spec(spec("tests/specs/bakery"), "deployments", bring)


def stack() -> Any:
    return quick_yaml.read(texts(compose.emit, with_redis())[f"{FOLDER}/compose.yaml"])


def watched() -> Any:
    return quick_yaml.read(texts(sentinel.emit, with_redis())[f"{FOLDER}/compose.sentinel.yaml"])


def settings(service: Any) -> dict[str, str]:
    lines = service["command"][2].partition("<<END\n")[2].partition("\nEND")[0].splitlines()
    rows = (line.partition(" ") for line in lines if not line.startswith("#"))
    return {name: value for name, _, value in rows}


def test_a_redis_comes_with_the_nodes() -> None:
    """It logs every write to a volume, never drops what it holds, and shows its password to nobody."""
    server = stack()["services"]["redis"]
    found = settings(server)
    assert server["image"].startswith("redis:7")
    assert (found["appendonly"], found["appendfsync"]) == ("yes", "${REDIS_APPENDFSYNC:-everysec}")
    assert (found["maxmemory-policy"], found["dir"]) == ("noeviction", "/data")
    assert found["requirepass"] == "$$REDISCLI_AUTH"
    assert server["environment"]["REDISCLI_AUTH"] == "${REDIS_PASSWORD:?must be set}"
    assert server["volumes"] == ["redis:/data"] and "redis" in stack()["volumes"]
    assert server["networks"] == ["internal"] and "ports" not in server
    assert (server["user"], server["cap_drop"], server["read_only"]) == ("redis", ["ALL"], True)


def test_nodes_wait_for_their_redis_and_know_where_it_is() -> None:
    services = stack()["services"]
    for name in ("shop", "oven-0", "oven-1"):
        assert services[name]["environment"]["BAKERY_DATABASE"] == (
            "redis://:${REDIS_PASSWORD:?must be set}@redis:6379/0"
        )
        assert services[name]["depends_on"] == {"redis": {"condition": "service_healthy"}}


def test_the_example_tells_of_the_redis() -> None:
    example = texts(compose.emit, with_redis())[f"{FOLDER}/.env.example"]
    for line in ("#REDIS_PASSWORD=\n", "#REDIS_APPENDFSYNC=everysec\n", "#REDIS_MAXMEMORY=1gb\n"):
        assert line in example


def test_in_kubernetes_nodes_may_reach_the_redis_and_its_sentinels() -> None:
    text = texts(kubernetes.emit, with_redis())[f"{FOLDER}/kubernetes/network-policies.yaml"]
    policies = {each["metadata"]["name"]: each["spec"] for each in quick_yaml.read_all(text)}
    (egress,) = policies["allow-oven"]["egress"]
    assert [each["port"] for each in egress["ports"]] == [6379, 26379]


def test_the_variant_has_three_servers_and_three_sentinels() -> None:
    """One server leads, the others follow it, and none takes writes that nobody else has."""
    services = watched()["services"]
    found = {name: settings(services[name]) for name in ("redis", "redis-1", "redis-2")}
    first = services["redis"]["networks"]["internal"]["ipv4_address"]
    assert "replicaof" not in found["redis"]
    assert found["redis-1"]["replicaof"] == found["redis-2"]["replicaof"] == f"{first} 6379"
    assert all(each["min-replicas-to-write"] == "1" for each in found.values())
    for index in range(3):
        told = services[f"sentinel-{index}"]["command"][2]
        assert f"sentinel monitor bakery {first} 6379 2\n" in told


def test_nodes_ask_the_sentinels() -> None:
    services = watched()["services"]
    addresses = [services[f"sentinel-{each}"]["networks"]["internal"]["ipv4_address"] for each in range(3)]
    hosts = ",".join(f"{each}:26379" for each in addresses)
    for name in ("shop", "oven-0", "oven-1"):
        url = services[name]["environment"]["BAKERY_DATABASE"]
        password = "${REDIS_PASSWORD:?must be set}"
        assert url == f"redis+sentinel://:{password}@{hosts}/bakery?sentinel_password={password}"
        assert len(services[name]["depends_on"]) == 3


def test_no_two_containers_share_an_address_or_a_volume() -> None:
    services = watched()["services"].values()
    addresses = [each["networks"]["internal"]["ipv4_address"] for each in services if "networks" in each]
    volumes = [volume for each in services for volume in each.get("volumes", [])]
    assert len(set(addresses)) == len(addresses) == 6
    assert len(set(volumes)) == len(volumes) == 5
    assert {each.partition(":")[0] for each in volumes} == set(watched()["volumes"])


def test_the_variant_fits_the_compose_schema(tmp_path: Path) -> None:
    for emit in (compose.emit, sentinel.emit):
        for path, text in texts(emit, with_redis()).items():
            (tmp_path / Path(path).name).write_text(text, encoding="utf-8")
    files = sorted(tmp_path.glob("compose*.yaml"))
    assert len(files) == 2
    schema = ("--builtin-schema", "vendor.compose-spec")
    done = run(sys.executable, "-m", "check_jsonschema", *schema, *files)
    assert done.returncode == 0, done.stdout


def test_only_what_has_a_redis_has_the_variant() -> None:
    assert not texts(sentinel.emit, spec("tests/specs/bakery"))
