"""Containers and manifests of a system in a bucket: the store, who makes it ready, and who may use it."""

from __future__ import annotations

import json
from typing import Any

import yaml

from codegen.emit.deploy import compose, kubernetes
from tests.support.codegen.specs import spec, texts

NURSERY = "tests/specs/nursery"
FIELD = "generated/nursery/deploy/field"


def stack() -> Any:
    return yaml.safe_load(texts(compose.emit, spec(NURSERY))[f"{FIELD}/compose.yaml"])


def test_containers_are_made_of_what_is_started() -> None:
    """A node on demand is no container, has no manifest and no policy; those in one process stay at home."""
    found = {**texts(compose.emit, spec(NURSERY)), **texts(kubernetes.emit, spec(NURSERY))}
    assert set(stack()["services"]) == {"s3", "s3-buckets", "shed-0", "shed-1", "warden"}
    manifests = {path.rpartition("/")[2] for path in found if "kubernetes" in path}
    assert "desk.yaml" not in manifests and {"shed.yaml", "warden.yaml"} <= manifests
    assert "desk" not in found[f"{FIELD}/kubernetes/network-policies.yaml"]
    assert not any(path.startswith("generated/nursery/deploy/yard") for path in found)


def test_a_store_comes_with_the_nodes() -> None:
    """It keeps its objects in a volume, shows its key to nobody, and is reached from this machine."""
    server = stack()["services"]["s3"]
    assert server["image"].startswith("chrislusf/seaweedfs:4.")
    assert server["volumes"] == ["s3:/data"] and "s3" in stack()["volumes"]
    assert server["ports"] == ["127.0.0.1:${S3_PORT:-8333}:8333"] and "edge" in stack()["networks"]
    assert server["environment"]["AWS_SECRET_ACCESS_KEY"] == "${AWS_SECRET_ACCESS_KEY:?must be set}"
    (command,) = server["command"]
    key = command.partition("<<END\n")[2].partition("\nEND")[0]
    (identity,) = json.loads(key.replace("$$", ""))["identities"]
    assert identity["credentials"] == [
        {"accessKey": "AWS_ACCESS_KEY_ID", "secretKey": "AWS_SECRET_ACCESS_KEY"}
    ]
    assert "-s3.config=/tmp/s3.json" in command
    node = stack()["services"]["warden"]
    assert node["environment"]["NURSERY_STORE"] == "http://s3:8333"
    assert node["environment"]["AWS_ACCESS_KEY_ID"] is None
    assert node["depends_on"] == {
        "s3": {"condition": "service_healthy"},
        "s3-buckets": {"condition": "service_completed_successfully"},
    }


def test_only_the_door_that_asks_for_a_key_is_open() -> None:
    """The parts of the store talk within its container, and no bucket comes to be by a slip of the pen."""
    options = stack()["services"]["s3"]["command"][0].rpartition("exec ")[2].split()
    assert {"-ip.bind=127.0.0.1", "-s3.ip.bind=0.0.0.0", "-filer.disableHttp"} <= set(options)
    assert {"-s3.autoCreateBucket=false", "-s3.iam=false", "-master.telemetry=false"} <= set(options)


def test_buckets_are_made_ready_before_nodes_start() -> None:
    """A container that ends does it, told what nodes are told of buckets and nothing else."""
    services = stack()["services"]
    making = services["s3-buckets"]
    assert (making["command"], making["restart"]) == ("python -m runtime.make_buckets nursery", "no")
    assert making["depends_on"] == {"s3": {"condition": "service_healthy"}}
    told = making["environment"]
    assert set(told) == {
        *("NURSERY_STORE", "NURSERY_BUCKET", "NURSERY_REGION", "NURSERY_FOLDER"),
        *("NURSERY_FORGETS", "KEPT_DAYS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    }
    assert told.items() <= services["warden"]["environment"].items()


def test_the_example_asks_for_the_key_once() -> None:
    """What the server needs is what the nodes prove themselves with."""
    text = texts(compose.emit, spec(NURSERY))[f"{FIELD}/.env.example"]
    assert text.count("AWS_ACCESS_KEY_ID=") == text.count("AWS_SECRET_ACCESS_KEY=") == 1
    assert "#S3_PORT=8333" in text and "#NURSERY_BUCKET=nursery" in text


def test_pods_take_their_key_from_a_secret() -> None:
    """It may be left out where the machine itself is known to the store, which is reached by either port."""
    found = texts(kubernetes.emit, spec(NURSERY))
    (pod,) = [
        each
        for each in yaml.safe_load_all(found[f"{FIELD}/kubernetes/warden.yaml"])
        if each["kind"] == "Deployment"
    ]
    (container,) = pod["spec"]["template"]["spec"]["containers"]
    variables = {row["name"]: row for row in container["env"]}
    secret = variables["AWS_SECRET_ACCESS_KEY"]["valueFrom"]["secretKeyRef"]
    assert secret == {"name": "warden-settings", "key": "AWS_SECRET_ACCESS_KEY", "optional": True}
    store = variables["NURSERY_STORE"]["valueFrom"]["secretKeyRef"]
    assert store == {"name": "s3", "key": "NURSERY_STORE", "optional": True}
    policies = yaml.safe_load_all(found[f"{FIELD}/kubernetes/network-policies.yaml"])
    (allowed,) = [each for each in policies if each["metadata"]["name"] == "allow-warden"]
    assert [row["port"] for row in allowed["spec"]["egress"][0]["ports"]] == [8333, 443]
