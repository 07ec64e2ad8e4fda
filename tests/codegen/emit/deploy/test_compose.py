"""The compose files: what each container is told, how it is checked, and what it may do."""

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
def stack(deployment: str) -> Any:
    return parsed(spec("spec/taskqueue"), deployment)


def parsed(of: Spec, deployment: str) -> Any:
    """The compose file without what starts only when it is asked for by name."""
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
    words = [filled(word) for word in service["entrypoint"]]
    assert words[:4] == ["python", "-m", "bench", f"taskqueue.{deployment}"]
    options = dict(zip(words[4::2], words[5::2], strict=True))
    assert options["--target"] == ",".join(f"{node}:50051" for node in nodes)
    assert options["--ca-file"] == "/run/secrets/ca.crt"
    assert service["secrets"] == ["ca.crt"]
    assert service["networks"] == ["internal"]
    assert service["volumes"] == [f"results:{options['--out']}"]
    assert set(service["depends_on"]) == set(stack(deployment)["services"])
    assert "ports" not in service


def test_a_system_without_a_load_generator_has_no_service_for_it() -> None:
    """Neither the service nor its volume is there."""
    text = texts(compose.emit, spec("tests/specs/locker"))["generated/locker/deploy/branch/compose.yaml"]
    assert "load-generator" not in text
    assert "volumes" not in quick_yaml.read(text)


def filled(text: str, **environment: str) -> str:
    """The text after compose put in its variables."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        assert match[2] == "-" or match[1] in environment, f"{match[0]} must be set"
        return environment.get(match[1]) or str(match[3])

    return re.sub(r"\$\$|\$\{(\w+):([-?])([^}]*)\}", value, text)


def environment_of(service: Any, **environment: str) -> dict[str, str]:
    """What a container is told, identity apart; what is only passed on when set is not there otherwise."""
    return {
        name: filled(text, **environment)
        for name, text in service["environment"].items()
        if text is not None and name not in PROOF
    }


@pytest.mark.req("TQ-168")
@pytest.mark.parametrize("deployment", ["microservices", "monolith"])
def test_every_container_logs_at_info_and_at_once(deployment: str) -> None:
    """Each container is told to log from INFO on, and to hold no output back."""
    for service in stack(deployment)["services"].values():
        assert environment_of(service)["LOG_LEVEL"] == "INFO"
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
def test_each_microservice_is_told_its_own_variables_and_no_others(service: str, own: dict[str, str]) -> None:
    """The environment of a container is exactly what its service reads, with the agreed values."""
    assert environment_of(stack("microservices")["services"][service]) == {**COMMON, **own}


@pytest.mark.req("TQ-174")
def test_a_worker_is_named_by_its_host_unless_it_is_told() -> None:
    """The name of a worker is passed on only when it is set, so that it falls back to the hostname."""
    assert stack("microservices")["services"]["worker"]["environment"]["WORKER_ID"] is None


@pytest.mark.req("TQ-190")
def test_upstream_addresses_are_literal_and_go_only_where_they_are_needed() -> None:
    """Nothing in the environment of compose can bend an upstream address, and four services have none."""
    addresses = {
        name: {key: text for key, text in row["environment"].items() if key.endswith("_ADDR")}
        for name, row in stack("microservices")["services"].items()
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
    """Every container runs the same command, and its shell, not compose, fills in the variable."""
    command = (
        f"python -m scripts.healthcheck --mode {mode} --target {target} --timeout-ms 1000 --service {service}"
    )
    row = stack("microservices")["services"][service]
    assert row["healthcheck"]["test"] == ["CMD-SHELL", command]
    assert re.findall(r"\$\$\{(\w+)\}", target)[0] in row["environment"]


@pytest.mark.req("TQ-185")
@pytest.mark.parametrize("deployment", ["microservices", "monolith"])
def test_healthchecks_have_one_timing(deployment: str) -> None:
    """All containers are checked at the same pace."""
    for service in stack(deployment)["services"].values():
        timing = {key: value for key, value in service["healthcheck"].items() if key != "test"}
        assert timing == {"interval": "5s", "timeout": "2s", "retries": 12, "start_period": "20s"}


@pytest.mark.req("TQ-186")
def test_the_microservices_are_six_containers() -> None:
    """The stack of microservices has its six functional containers and no other."""
    assert tuple(stack("microservices")["services"]) == SERVICES


@pytest.mark.req("TQ-187", "CH-88")
def test_monoliths_differ_in_their_place_only() -> None:
    """The six monolith nodes are one image and one command; place and outside port are all that differs."""
    services = stack("monolith")["services"]
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
    """Each monolith is told its port, the fixed order of nodes, one slot, and is checked on its own port."""
    service = stack("monolith")["services"]["monolith-3"]
    told = environment_of(service)
    assert told["NODE_ADDRS"] == ",".join(f"monolith-{place}:50051" for place in range(6))
    assert (told["NODE_INDEX"], told["NODE_PORT"], told["WORKER_SLOTS"]) == ("3", "50051", "1")
    assert {"LOG_LEVEL", "MAX_DEDUP_KEYS", "MAX_OUTPUT_BYTES"} <= set(told)
    assert "--mode tcp --target 127.0.0.1:$${NODE_PORT} " in service["healthcheck"]["test"][1]


@pytest.mark.req("TQ-188")
@pytest.mark.parametrize("deployment", ["microservices", "monolith"])
def test_each_container_has_one_start_command(deployment: str) -> None:
    """A container has a command of its own node and no entrypoint beside it."""
    for name, service in stack(deployment)["services"].items():
        node = "monolith" if deployment == "monolith" else name
        assert service["command"] == f"python -m runtime.serve taskqueue.{deployment}.{node}"
        assert "entrypoint" not in service


@pytest.mark.req("TQ-176")
def test_dns_names_and_ports_agree() -> None:
    """Five services listen on their agreed ports under their own names."""
    ports = {
        name: environment_of(row)[f"{name.upper()}_PORT"]
        for name, row in stack("microservices")["services"].items()
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
def test_the_worker_takes_no_calls() -> None:
    """The worker publishes nothing, exposes nothing and has no port of its own."""
    worker = stack("microservices")["services"]["worker"]
    assert not {"ports", "expose"} & set(worker)
    assert [name for name in worker["environment"] if name.endswith("_PORT")] == ["METRICS_PORT"]


@pytest.mark.req("TQ-019")
def test_only_the_gateway_is_reachable_from_outside() -> None:
    """A client finds the gateway and nothing else: all others live on a network without a way out."""
    services = stack("microservices")["services"]
    assert [name for name, row in services.items() if "ports" in row] == ["gateway"]
    assert [name for name, row in services.items() if "edge" in row["networks"]] == ["gateway"]
    assert stack("microservices")["networks"]["internal"] == {"internal": True}


@pytest.mark.parametrize(("told", "port"), [({}, "50051"), ({"GATEWAY_PORT": "6000"}, "6000")])
def test_a_published_port_follows_its_variable(told: dict[str, str], port: str) -> None:
    """Whoever moves the port moves it outside, inside and in what the service is told."""
    gateway = stack("microservices")["services"]["gateway"]
    assert [filled(text, **told) for text in gateway["ports"]] == [f"127.0.0.1:{port}:{port}"]
    assert environment_of(gateway, **told)["GATEWAY_PORT"] == port


def test_ports_inside_stay_where_others_expect_them() -> None:
    """A port that is part of another node's address cannot be moved under its feet."""
    job = stack("microservices")["services"]["job"]
    assert job["environment"]["JOB_PORT"] == "50052"


def test_replicas_publish_consecutive_ports() -> None:
    """Six monoliths are found outside on six ports, whatever port they use inside."""
    rows = stack("monolith")["services"].values()
    ports = [filled(row["ports"][0], NODE_PORT="7000", NODE_PORT_2="9000") for row in rows]
    outside = [50051, 50052, 9000, 50054, 50055, 50056]
    assert ports == [f"127.0.0.1:{port}:7000" for port in outside]
    assert environment_of(next(iter(rows)), NODE_PORT="7000")["NODE_ADDRS"].count(":7000") == 6


def test_nodes_wait_for_what_they_call() -> None:
    """A container starts after its upstreams are healthy."""
    waits = {name: row.get("depends_on", {}) for name, row in stack("microservices")["services"].items()}
    healthy = {"condition": "service_healthy"}
    assert waits["gateway"] == waits["coordinator"] == dict.fromkeys(("job", "queue", "result"), healthy)
    assert waits["worker"] == {"coordinator": healthy}
    assert waits["job"] == waits["queue"] == waits["result"] == {}


def test_identity_is_one_certificate_a_component() -> None:
    """A node that hosts one component proves itself as that one, a node that hosts several as itself."""
    worker = stack("microservices")["services"]["worker"]
    assert worker["environment"]["TLS_CERT_FILE"] == "/run/secrets/worker.crt"
    assert worker["environment"]["TLS_KEY_FILE"] == "/run/secrets/worker.key"
    assert worker["environment"]["TLS_CA_FILE"] == "/run/secrets/ca.crt"
    assert worker["secrets"] == ["ca.crt", "worker.crt", "worker.key"]
    assert stack("monolith")["services"]["monolith-4"]["secrets"] == [
        "ca.crt",
        "monolith.crt",
        "monolith.key",
    ]
    folder = "../../../../certs/taskqueue.microservices"
    assert stack("microservices")["secrets"]["job.key"] == {"file": f"${{CERTS_DIR:-{folder}}}/job.key"}
