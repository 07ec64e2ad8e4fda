"""The compose files: environment, health checks, ports and limits of each container."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from codegen.emit.deploy import compose
from codegen.source.spec import Spec
from tests.support import quick_yaml
from tests.support.codegen.specs import spec, texts

SERVICES = ("gateway", "job", "queue", "coordinator", "worker", "result")
COMMON = {"LOG_LEVEL": "INFO", "PYTHONUNBUFFERED": "1", "METRICS_PORT": "0"}
PROOF = {"TLS_CERT_FILE", "TLS_KEY_FILE", "TLS_CA_FILE"}


@cache
def read_stack(deployment: str) -> Any:
    return parse(spec("spec/taskqueue"), deployment)


def parse(of: Spec, deployment: str) -> Any:
    """The compose file without services that start only by their name."""
    text = texts(compose.emit, of)[f"generated/{of.name}/deploy/{deployment}/compose.yaml"]
    found = quick_yaml.read(text)
    found["services"] = {name: row for name, row in found["services"].items() if "profiles" not in row}
    return found


@pytest.mark.req("TQ-186", "TQ-200", "TQ-019")
@pytest.mark.parametrize(
    ("deployment", "nodes"),
    [("microservices", ["gateway"]), ("monolith", [f"monolith-{n}" for n in range(6)])],
)
def test_the_load_generator_is_a_service_that_starts_by_its_name(deployment: str, nodes: list[str]) -> None:
    """It is in a profile of its own, calls the ingress nodes in their order, and trusts their authority."""
    text = texts(compose.emit, spec("spec/taskqueue"))[
        f"generated/taskqueue/deploy/{deployment}/compose.yaml"
    ]
    service = quick_yaml.read(text)["services"]["load-generator"]
    assert service["profiles"] == ["load"]
    words = [fill(word) for word in service["entrypoint"]]
    assert words[:4] == ["python", "-m", "bench", f"taskqueue.{deployment}"]
    options = dict(zip(words[4::2], words[5::2], strict=True))
    assert options["--target"] == ",".join(f"{node}:50051" for node in nodes)
    assert options["--ca-file"] == "/run/secrets/ca.crt"
    assert service["secrets"] == ["ca.crt"]
    assert service["networks"] == ["internal"]
    assert service["volumes"] == [f"results:{options['--out']}"]
    assert set(service["depends_on"]) == set(read_stack(deployment)["services"])
    assert "ports" not in service


def test_a_system_without_a_load_generator_has_no_service_for_it() -> None:
    """Neither the service nor its volume is there."""
    text = texts(compose.emit, spec("tests/specs/locker"))["generated/locker/deploy/branch/compose.yaml"]
    assert "load-generator" not in text
    assert "volumes" not in quick_yaml.read(text)


def fill(text: str, **environment: str) -> str:
    """The text after compose has substituted its variables."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        assert match[2] == "-" or match[1] in environment, f"{match[0]} must be set"
        return environment.get(match[1]) or str(match[3])

    return re.sub(r"\$\$|\$\{(\w+):([-?])([^}]*)\}", value, text)


def read_environment(service: Any, **environment: str) -> dict[str, str]:
    """The environment of a container without its identity; optional variables are absent unless set."""
    return {
        name: fill(text, **environment)
        for name, text in service["environment"].items()
        if text is not None and name not in PROOF
    }


@pytest.mark.req("TQ-168")
@pytest.mark.parametrize("deployment", ["microservices", "monolith"])
def test_every_container_logs_at_info_and_at_once(deployment: str) -> None:
    """Each container logs from INFO on, without buffering."""
    for service in read_stack(deployment)["services"].values():
        assert read_environment(service)["LOG_LEVEL"] == "INFO"
        assert service["environment"]["PYTHONUNBUFFERED"] == "1"


UPSTREAMS = {
    "JOB_SERVICE_ADDR": "job:50052",
    "QUEUE_SERVICE_ADDR": "queue:50053",
    "RESULT_SERVICE_ADDR": "result:50055",
}


@pytest.mark.parametrize(
    ("service", "own"),
    [
        pytest.param("gateway", {"GATEWAY_PORT": "50051", **UPSTREAMS}, marks=pytest.mark.req("TQ-169")),
        pytest.param(
            "job",
            {"JOB_PORT": "50052", "MAX_DEDUP_KEYS": "10000", "MAX_RETAINED_JOBS": "1000000"},
            marks=pytest.mark.req("TQ-170"),
        ),
        pytest.param("queue", {"QUEUE_PORT": "50053"}, marks=pytest.mark.req("TQ-171")),
        pytest.param(
            "coordinator",
            {
                "COORDINATOR_PORT": "50054",
                **UPSTREAMS,
                "HEARTBEAT_INTERVAL_MS": "1000",
                "WORKER_TIMEOUT_MS": "4000",
                "FETCH_RETRY_AFTER_MS": "200",
            },
            marks=pytest.mark.req("TQ-172"),
        ),
        pytest.param(
            "result",
            {
                "RESULT_PORT": "50055",
                "MAX_OUTPUT_BYTES": "262144",
                "MAX_RETAINED_OUTPUT_BYTES": "1073741824",
            },
            marks=pytest.mark.req("TQ-173"),
        ),
        pytest.param(
            "worker",
            {
                "COORDINATOR_ADDR": "coordinator:50054",
                "HEARTBEAT_INTERVAL_MS": "1000",
                "MAX_OUTPUT_BYTES": "262144",
                "WORKER_SLOTS": "6",
            },
            marks=pytest.mark.req("TQ-174"),
        ),
    ],
)
def test_each_microservice_gets_its_own_variables_and_no_others(service: str, own: dict[str, str]) -> None:
    """The environment of a container has exactly the variables that its service reads, with their values."""
    assert read_environment(read_stack("microservices")["services"][service]) == {**COMMON, **own}


@pytest.mark.req("TQ-174")
def test_a_worker_is_named_by_its_host_by_default() -> None:
    """The name of a worker is passed on only when it is set, so that it falls back to the hostname."""
    assert read_stack("microservices")["services"]["worker"]["environment"]["WORKER_ID"] is None


@pytest.mark.req("TQ-190")
def test_upstream_addresses_are_literal_and_only_where_they_are_needed() -> None:
    """No variable of compose can change an upstream address, and four services have none."""
    addresses = {
        name: {key: text for key, text in row["environment"].items() if key.endswith("_ADDR")}
        for name, row in read_stack("microservices")["services"].items()
    }
    assert addresses == {
        "gateway": UPSTREAMS,
        "coordinator": UPSTREAMS,
        "worker": {"COORDINATOR_ADDR": "coordinator:50054"},
        "job": {},
        "queue": {},
        "result": {},
    }


@pytest.mark.req("TQ-184", "CH-83")
@pytest.mark.parametrize(
    ("service", "mode", "target"),
    [
        ("gateway", "tcp", "127.0.0.1:$${GATEWAY_PORT}"),
        ("job", "tcp", "127.0.0.1:$${JOB_PORT}"),
        ("queue", "tcp", "127.0.0.1:$${QUEUE_PORT}"),
        ("coordinator", "tcp", "127.0.0.1:$${COORDINATOR_PORT}"),
        ("result", "tcp", "127.0.0.1:$${RESULT_PORT}"),
        ("worker", "worker", "$${COORDINATOR_ADDR}"),
    ],
)
def test_healthchecks_have_the_one_agreed_form(service: str, mode: str, target: str) -> None:
    """Every container runs the same command, and its shell, not compose, substitutes the variable."""
    command = (
        f"python -m scripts.healthcheck --mode {mode} --target {target} --timeout-ms 1000 --service {service}"
    )
    row = read_stack("microservices")["services"][service]
    assert row["healthcheck"]["test"] == ["CMD-SHELL", command]
    assert re.findall(r"\$\$\{(\w+)\}", target)[0] in row["environment"]


@pytest.mark.req("TQ-185")
@pytest.mark.parametrize("deployment", ["microservices", "monolith"])
def test_healthchecks_have_one_timing(deployment: str) -> None:
    """All containers are checked at the same intervals."""
    for service in read_stack(deployment)["services"].values():
        timing = {key: value for key, value in service["healthcheck"].items() if key != "test"}
        assert timing == {"interval": "5s", "timeout": "2s", "retries": 12, "start_period": "20s"}


@pytest.mark.req("TQ-186")
def test_the_microservices_are_six_containers() -> None:
    """The stack of microservices has its six functional containers and no other."""
    assert tuple(read_stack("microservices")["services"]) == SERVICES


@pytest.mark.req("TQ-187", "CH-88")
def test_monoliths_differ_in_their_index_only() -> None:
    """The six monolith nodes are one image and one command; index and outside port are all that differs."""
    services = read_stack("monolith")["services"]
    assert list(services) == [f"monolith-{place}" for place in range(6)]
    places, alike = [], []
    for service in services.values():
        row = {**service, "environment": {**service["environment"]}, "ports": None}
        places.append(row["environment"].pop("NODE_INDEX"))
        alike.append(row)
    assert places == ["0", "1", "2", "3", "4", "5"]
    assert all(row == alike[0] for row in alike)


@pytest.mark.req("CH-88")
def test_a_monolith_knows_all_nodes_in_their_order() -> None:
    """Each monolith gets its port, the fixed order of nodes, one slot, and is checked on its own port."""
    service = read_stack("monolith")["services"]["monolith-3"]
    environment = read_environment(service)
    assert environment["NODE_ADDRS"] == ",".join(f"monolith-{place}:50051" for place in range(6))
    assert (environment["NODE_INDEX"], environment["NODE_PORT"], environment["WORKER_SLOTS"]) == (
        "3",
        "50051",
        "1",
    )
    assert {"LOG_LEVEL", "MAX_DEDUP_KEYS", "MAX_OUTPUT_BYTES"} <= set(environment)
    assert "--mode tcp --target 127.0.0.1:$${NODE_PORT} " in service["healthcheck"]["test"][1]


@pytest.mark.req("TQ-188")
@pytest.mark.parametrize("deployment", ["microservices", "monolith"])
def test_each_container_has_one_start_command(deployment: str) -> None:
    """A container has a command of its own node and no entrypoint beside it."""
    for name, service in read_stack(deployment)["services"].items():
        node = "monolith" if deployment == "monolith" else name
        assert service["command"] == f"python -m runtime.serve taskqueue.{deployment}.{node}"
        assert "entrypoint" not in service


@pytest.mark.req("TQ-176")
def test_dns_names_and_ports_agree() -> None:
    """Five services listen on their agreed ports under their own names."""
    ports = {
        name: read_environment(row)[f"{name.upper()}_PORT"]
        for name, row in read_stack("microservices")["services"].items()
        if name != "worker"
    }
    assert ports == {
        "gateway": "50051",
        "job": "50052",
        "queue": "50053",
        "coordinator": "50054",
        "result": "50055",
    }


@pytest.mark.req("TQ-177")
def test_the_worker_serves_no_calls() -> None:
    """The worker publishes nothing, exposes nothing and has no port of its own."""
    worker = read_stack("microservices")["services"]["worker"]
    assert not {"ports", "expose"} & set(worker)
    assert [name for name in worker["environment"] if name.endswith("_PORT")] == ["METRICS_PORT"]


@pytest.mark.req("TQ-019")
def test_only_the_gateway_is_reachable_from_outside() -> None:
    """A client reaches the gateway and nothing else: all others are on an internal network."""
    services = read_stack("microservices")["services"]
    assert [name for name, row in services.items() if "ports" in row] == ["gateway"]
    assert [name for name, row in services.items() if "edge" in row["networks"]] == ["gateway"]
    assert read_stack("microservices")["networks"]["internal"] == {"internal": True}


@pytest.mark.parametrize(("environment", "port"), [({}, "50051"), ({"GATEWAY_PORT": "6000"}, "6000")])
def test_a_published_port_follows_its_variable(environment: dict[str, str], port: str) -> None:
    """A changed port changes outside, inside and in the environment of the service."""
    gateway = read_stack("microservices")["services"]["gateway"]
    assert [fill(text, **environment) for text in gateway["ports"]] == [f"127.0.0.1:{port}:{port}"]
    assert read_environment(gateway, **environment)["GATEWAY_PORT"] == port


def test_inside_ports_of_upstreams_are_fixed() -> None:
    """A port that is part of another node's address cannot be changed."""
    job = read_stack("microservices")["services"]["job"]
    assert job["environment"]["JOB_PORT"] == "50052"


def test_replicas_publish_consecutive_ports() -> None:
    """Six monoliths are reached from outside on six ports, whatever port they use inside."""
    rows = read_stack("monolith")["services"].values()
    ports = [fill(row["ports"][0], NODE_PORT="7000", NODE_PORT_2="9000") for row in rows]
    outside = [50051, 50052, 9000, 50054, 50055, 50056]
    assert ports == [f"127.0.0.1:{port}:7000" for port in outside]
    assert read_environment(next(iter(rows)), NODE_PORT="7000")["NODE_ADDRS"].count(":7000") == 6


def test_nodes_wait_for_their_upstreams() -> None:
    """A container starts after its upstreams are healthy."""
    waits = {name: row.get("depends_on", {}) for name, row in read_stack("microservices")["services"].items()}
    healthy = {"condition": "service_healthy"}
    assert waits["gateway"] == waits["coordinator"] == dict.fromkeys(("job", "queue", "result"), healthy)
    assert waits["worker"] == {"coordinator": healthy}
    assert waits["job"] == waits["queue"] == waits["result"] == {}


def test_identity_is_one_certificate_a_component() -> None:
    """A node that hosts one component has its certificate, a node that hosts several one of its own."""
    worker = read_stack("microservices")["services"]["worker"]
    assert worker["environment"]["TLS_CERT_FILE"] == "/run/secrets/worker.crt"
    assert worker["environment"]["TLS_KEY_FILE"] == "/run/secrets/worker.key"
    assert worker["environment"]["TLS_CA_FILE"] == "/run/secrets/ca.crt"
    assert worker["secrets"] == ["ca.crt", "worker.crt", "worker.key"]
    assert read_stack("monolith")["services"]["monolith-4"]["secrets"] == [
        "ca.crt",
        "monolith.crt",
        "monolith.key",
    ]
    folder = "../../../../certs/taskqueue.microservices"
    assert read_stack("microservices")["secrets"]["job.key"] == {"file": f"${{CERTS_DIR:-{folder}}}/job.key"}
