"""Compose files with a Redis: durable, private, bounded, and a variant with failover."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from codegen.emit.deploy import compose, kubernetes, sentinel
from codegen.source.spec import Spec
from tests.support import quick_yaml
from tests.support.codegen.specs import change_spec, run, spec, texts

FOLDER = "generated/bakery/deploy/village"


def make_spec() -> Spec:
    def bring(data: Any) -> None:
        data["village"]["engine"] = "redis"

    def name_server(data: Any) -> None:
        data["redis"] = {"url": "BAKERY_DATABASE"}

    named = change_spec(spec("tests/specs/bakery"), "storage", name_server)
    return change_spec(named, "deployments", bring)


def read_stack() -> Any:
    return quick_yaml.read(texts(compose.emit, make_spec())[f"{FOLDER}/compose.yaml"])


def read_sentinel_stack() -> Any:
    return quick_yaml.read(texts(sentinel.emit, make_spec())[f"{FOLDER}/compose.sentinel.yaml"])


def parse_settings(service: Any) -> dict[str, str]:
    lines = service["command"][2].partition("<<END\n")[2].partition("\nEND")[0].splitlines()
    rows = (line.partition(" ") for line in lines if not line.startswith("#"))
    return {name: value for name, _, value in rows}


def test_a_redis_comes_with_the_nodes() -> None:
    """It logs every write to a volume, never evicts keys, and its password is in no file."""
    server = read_stack()["services"]["redis"]
    found = parse_settings(server)
    assert server["image"].startswith("redis:7")
    assert (found["appendonly"], found["appendfsync"]) == ("yes", "${REDIS_APPENDFSYNC:-everysec}")
    assert (found["maxmemory-policy"], found["dir"]) == ("noeviction", "/data")
    assert found["requirepass"] == "$$REDISCLI_AUTH"
    assert server["environment"]["REDISCLI_AUTH"] == "${REDIS_PASSWORD:?must be set}"
    assert server["volumes"] == ["redis:/data"] and "redis" in read_stack()["volumes"]
    assert server["networks"] == ["internal"] and "ports" not in server
    assert (server["user"], server["cap_drop"], server["read_only"]) == ("redis", ["ALL"], True)


def test_nodes_wait_for_their_redis_and_have_its_address() -> None:
    services = read_stack()["services"]
    for name in ("shop", "oven-0", "oven-1"):
        assert services[name]["environment"]["BAKERY_DATABASE"] == (
            "redis://:${REDIS_PASSWORD:?must be set}@redis:6379/0"
        )
        assert services[name]["depends_on"] == {"redis": {"condition": "service_healthy"}}


def test_the_example_has_the_redis() -> None:
    example = texts(compose.emit, make_spec())[f"{FOLDER}/.env.example"]
    for line in ("#REDIS_PASSWORD=\n", "#REDIS_APPENDFSYNC=everysec\n", "#REDIS_MAXMEMORY=1gb\n"):
        assert line in example


def test_in_kubernetes_nodes_may_reach_the_redis_and_its_sentinels() -> None:
    text = texts(kubernetes.emit, make_spec())[f"{FOLDER}/kubernetes/network-policies.yaml"]
    policies = {each["metadata"]["name"]: each["spec"] for each in quick_yaml.read_all(text)}
    (egress,) = policies["allow-oven"]["egress"]
    assert [each["port"] for each in egress["ports"]] == [6379, 26379]


def test_the_variant_has_three_servers_and_three_sentinels() -> None:
    """One server is the master, the others replicate it, and none accepts unreplicated writes."""
    services = read_sentinel_stack()["services"]
    found = {name: parse_settings(services[name]) for name in ("redis", "redis-1", "redis-2")}
    first = services["redis"]["networks"]["internal"]["ipv4_address"]
    assert "replicaof" not in found["redis"]
    assert found["redis-1"]["replicaof"] == found["redis-2"]["replicaof"] == f"{first} 6379"
    assert all(each["min-replicas-to-write"] == "1" for each in found.values())
    for index in range(3):
        script = services[f"sentinel-{index}"]["command"][2]
        assert f"sentinel monitor bakery {first} 6379 2\n" in script


def test_nodes_connect_through_the_sentinels() -> None:
    services = read_sentinel_stack()["services"]
    addresses = [services[f"sentinel-{each}"]["networks"]["internal"]["ipv4_address"] for each in range(3)]
    hosts = ",".join(f"{each}:26379" for each in addresses)
    for name in ("shop", "oven-0", "oven-1"):
        url = services[name]["environment"]["BAKERY_DATABASE"]
        password = "${REDIS_PASSWORD:?must be set}"
        assert url == f"redis+sentinel://:{password}@{hosts}/bakery?sentinel_password={password}"
        assert len(services[name]["depends_on"]) == 3


def test_no_two_containers_have_one_address_or_volume() -> None:
    services = read_sentinel_stack()["services"].values()
    addresses = [each["networks"]["internal"]["ipv4_address"] for each in services if "networks" in each]
    volumes = [volume for each in services for volume in each.get("volumes", [])]
    assert len(set(addresses)) == len(addresses) == 6
    assert len(set(volumes)) == len(volumes) == 5
    assert {each.partition(":")[0] for each in volumes} == set(read_sentinel_stack()["volumes"])


def test_the_variant_fits_the_compose_schema(tmp_path: Path) -> None:
    for emit in (compose.emit, sentinel.emit):
        for path, text in texts(emit, make_spec()).items():
            (tmp_path / Path(path).name).write_text(text, encoding="utf-8")
    files = sorted(tmp_path.glob("compose*.yaml"))
    assert len(files) == 2
    schema = ("--builtin-schema", "vendor.compose-spec")
    completed = run(sys.executable, "-m", "check_jsonschema", *schema, *files)
    assert completed.returncode == 0, completed.stdout


def test_only_systems_with_a_redis_have_the_variant() -> None:
    assert not texts(sentinel.emit, spec("tests/specs/bakery"))
