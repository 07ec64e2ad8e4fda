"""Containers and manifests of a system in a bucket: the store, its preparation, and its clients."""

from __future__ import annotations

import json
from typing import Any

import yaml

from codegen.emit.deploy import compose, kubernetes
from tests.support.codegen.specs import spec, texts

NURSERY = "tests/specs/nursery"
FIELD = "generated/nursery/deploy/field"


def read_stack() -> Any:
    return yaml.safe_load(texts(compose.emit, spec(NURSERY))[f"{FIELD}/compose.yaml"])


def test_only_started_nodes_are_containers() -> None:
    """A node on demand has no container, no manifest and no policy; nor have those in one process."""
    found = {**texts(compose.emit, spec(NURSERY)), **texts(kubernetes.emit, spec(NURSERY))}
    assert set(read_stack()["services"]) == {"s3", "s3-buckets", "shed-0", "shed-1", "warden"}
    manifests = {path.rpartition("/")[2] for path in found if "kubernetes" in path}
    assert "desk.yaml" not in manifests and {"shed.yaml", "warden.yaml"} <= manifests
    assert "desk" not in found[f"{FIELD}/kubernetes/network-policies.yaml"]
    assert not any(path.startswith("generated/nursery/deploy/yard") for path in found)


def test_a_store_comes_with_the_nodes() -> None:
    """It stores its objects in a volume, its key is in no file, and it is reached from this machine."""
    server = read_stack()["services"]["s3"]
    assert server["image"].startswith("chrislusf/seaweedfs:4.")
    assert server["volumes"] == ["s3:/data"] and "s3" in read_stack()["volumes"]
    assert server["ports"] == ["127.0.0.1:${S3_PORT:-8333}:8333"] and "edge" in read_stack()["networks"]
    assert server["environment"]["AWS_SECRET_ACCESS_KEY"] == "${AWS_SECRET_ACCESS_KEY:?must be set}"
    (command,) = server["command"]
    key = command.partition("<<END\n")[2].partition("\nEND")[0]
    (identity,) = json.loads(key.replace("$$", ""))["identities"]
    assert identity["credentials"] == [
        {"accessKey": "AWS_ACCESS_KEY_ID", "secretKey": "AWS_SECRET_ACCESS_KEY"}
    ]
    assert "-s3.config=/tmp/s3.json" in command
    node = read_stack()["services"]["warden"]
    assert node["environment"]["NURSERY_STORE"] == "http://s3:8333"
    assert node["environment"]["AWS_ACCESS_KEY_ID"] is None
    assert node["depends_on"] == {
        "s3": {"condition": "service_healthy"},
        "s3-buckets": {"condition": "service_completed_successfully"},
    }


def test_only_the_port_that_needs_a_key_is_open() -> None:
    """The parts of the store talk within its container, and no bucket is created implicitly."""
    options = read_stack()["services"]["s3"]["command"][0].rpartition("exec ")[2].split()
    assert {"-ip.bind=127.0.0.1", "-s3.ip.bind=0.0.0.0", "-filer.disableHttp"} <= set(options)
    assert {"-s3.autoCreateBucket=false", "-s3.iam=false", "-master.telemetry=false"} <= set(options)


def test_buckets_are_prepared_before_nodes_start() -> None:
    """A container that ends does it, with the bucket variables of the nodes and nothing else."""
    services = read_stack()["services"]
    making = services["s3-buckets"]
    assert (making["command"], making["restart"]) == ("python -m runtime.make_buckets nursery", "no")
    assert making["depends_on"] == {"s3": {"condition": "service_healthy"}}
    environment = making["environment"]
    assert set(environment) == {
        *("NURSERY_STORE", "NURSERY_BUCKET", "NURSERY_REGION", "NURSERY_FOLDER"),
        *("NURSERY_FORGETS", "KEPT_DAYS", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    }
    assert environment.items() <= services["warden"]["environment"].items()


def test_the_example_asks_for_the_key_once() -> None:
    """The key of the server is the key of the nodes."""
    text = texts(compose.emit, spec(NURSERY))[f"{FIELD}/.env.example"]
    assert text.count("AWS_ACCESS_KEY_ID=") == text.count("AWS_SECRET_ACCESS_KEY=") == 1
    assert "#S3_PORT=8333" in text and "#NURSERY_BUCKET=nursery" in text


def test_pods_read_their_key_from_a_secret() -> None:
    """It may be omitted where the store knows the machine itself; both ports are allowed."""
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
