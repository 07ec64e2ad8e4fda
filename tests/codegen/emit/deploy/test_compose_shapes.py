"""Compose files of any spec: valid, safe, and right also with cycles, tokens and replicas."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from codegen.emit.deploy import compose
from codegen.source.spec import Spec
from tests.support import quick_yaml
from tests.support.codegen.specs import FOLDERS, change_spec, list_container_deployments, run, spec, texts


def parse(of: Spec, deployment: str) -> Any:
    text = texts(compose.emit, of)[f"generated/{of.name}/deploy/{deployment}/compose.yaml"]
    return quick_yaml.read(text)


@pytest.mark.parametrize("folder", FOLDERS)
def test_containers_may_do_no_more_than_they_need(folder: str) -> None:
    """No container has a capability, a writable disk, a root user, or memory without a limit."""
    for deployment in list_container_deployments(spec(folder)):
        servers = spec(folder).servers_of(spec(folder).deployments.root[deployment])
        for name, service in parse(spec(folder), deployment)["services"].items():
            if name in servers:
                continue
            assert service["cap_drop"] == ["ALL"]
            assert service["security_opt"] == ["no-new-privileges:true"]
            assert service["read_only"] and service["init"]
            assert service["tmpfs"] == ["/tmp"]
            assert service["user"] == "${RUN_AS:-10001:10001}"
            ends = name in (compose.BUCKETS_SERVICE, compose.MIGRATION_SERVICE) or "profiles" in service
            assert service["restart"] == ("no" if ends else "unless-stopped")
            assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}


def test_a_node_has_memory_for_its_retention_bounds() -> None:
    """The memory limit of a node is above the sum of its retention bounds."""
    limits = {
        name: int(row["deploy"]["resources"]["limits"]["memory"].rstrip("M"))
        for name, row in parse(spec("spec/taskqueue"), "microservices")["services"].items()
    }
    assert limits["result"] > 1024
    assert limits["gateway"] == limits["queue"] == 256


def test_the_stop_timeout_exceeds_the_grace_period() -> None:
    """A container is killed only after the node had its grace and a margin."""
    assert parse(spec("spec/taskqueue"), "microservices")["services"]["job"]["stop_grace_period"] == "10s"


def test_compose_files_fit_the_compose_schema(tmp_path: Path) -> None:
    """Every compose file is valid by the schema of the compose specification."""
    files = []
    for folder in FOLDERS:
        found = {
            path: text
            for path, text in texts(compose.emit, spec(folder)).items()
            if path.endswith("compose.yaml")
        }
        assert len(found) == len(list_container_deployments(spec(folder)))
        for path, text in found.items():
            files.append(tmp_path / path.replace("/", "-"))
            files[-1].write_text(text, encoding="utf-8")
    schema = ("--builtin-schema", "vendor.compose-spec")
    # All in one call: the command takes longer to start than to check.
    completed = run(sys.executable, "-m", "check_jsonschema", *schema, *files)
    assert completed.returncode == 0, completed.stdout


def test_tokens_are_for_callers_without_certificates() -> None:
    """No token is set where callers have certificates; a caller without one is authenticated by its token."""
    services = parse(spec("spec/taskqueue"), "microservices")["services"].values()
    environments = [set(row.get("environment", ())) for row in services]
    assert any(environments) and not any({"CALLER_TOKEN", "ACCEPTED_TOKENS"} & each for each in environments)
    locker = parse(spec("tests/specs/locker"), "branch")["services"]
    assert "LOCKER_TOKENS" in locker["desk"]["environment"]
    assert "LOCKER_TOKENS" not in locker["vault"]["environment"]


def test_nodes_that_call_each_other_do_not_wait_in_a_cycle() -> None:
    """Two nodes with each other's address start at the same time; compose would refuse a cycle."""

    def call_back(data: Any) -> None:
        data["branch"]["nodes"]["vault"]["upstreams"] = {"DESK_ADDR": "desk"}

    def address(data: Any) -> None:
        data["variables"]["DESK_ADDR"] = data["variables"]["VAULT_ADDR"] | {"read_by": ["vault"]}

    of = change_spec(
        change_spec(spec("tests/specs/locker"), "deployments", call_back), "environment", address
    )
    services = parse(of, "branch")["services"]
    assert "depends_on" not in services["desk"] and "depends_on" not in services["vault"]
    assert services["vault"]["environment"]["DESK_ADDR"] == "desk:7001"
    assert services["desk"]["environment"]["DESK_PORT"] == "7001"
    assert services["desk"]["ports"] == ["127.0.0.1:${DESK_PORT:-7001}:7001"]


def test_a_required_variable_without_a_value_must_be_set() -> None:
    """A required variable that no node supplies stops compose until the user sets it."""

    def require(data: Any) -> None:
        data["variables"]["DOORS"] = {"type": "int", "required": True, "read_by": ["vault"], "doc": "Doors."}

    service = parse(change_spec(spec("tests/specs/locker"), "environment", require), "branch")["services"][
        "vault"
    ]
    assert service["environment"]["DOORS"] == "${DOORS:?must be set}"


def test_without_certificates_each_node_has_its_own_token() -> None:
    """Where a spec has no certificates, the token of each principal comes from a variable of its own."""

    def drop(data: Any) -> None:
        for name in ("LOCKER_CERT", "LOCKER_KEY", "LOCKER_AUTHORITY"):
            del data["variables"][name]

    found = parse(change_spec(spec("tests/specs/locker"), "environment", drop), "branch")
    tokens = [row["environment"]["LOCKER_TOKEN"] for row in found["services"].values()]
    assert tokens == ["${DESK_LOCKER_TOKEN:-}", "${VAULT_LOCKER_TOKEN:-}"]
    assert "secrets" not in found


def test_replicas_answer_to_the_name_of_their_node() -> None:
    """An upstream with several replicas is reached by one name that all of them answer to."""

    def replicate(data: Any) -> None:
        data["branch"]["nodes"]["vault"]["replicas"] = 2

    services = parse(change_spec(spec("tests/specs/locker"), "deployments", replicate), "branch")["services"]
    assert list(services) == ["desk", "vault-0", "vault-1"]
    assert services["desk"]["environment"]["VAULT_ADDR"] == "vault:7002"
    assert list(services["desk"]["depends_on"]) == ["vault-0", "vault-1"]
    assert services["vault-1"]["networks"] == {"internal": {"aliases": ["vault"]}}


BAKERY = "tests/specs/bakery"


def test_a_server_comes_with_the_nodes() -> None:
    """The server has a volume, a check over the network, and a password that must be set."""
    stack = parse(spec(BAKERY), "village")
    server = stack["services"]["postgres"]
    assert server["image"].startswith("postgres:18")
    assert server["environment"]["POSTGRES_PASSWORD"] == "${POSTGRES_PASSWORD:?must be set}"
    assert server["volumes"] == ["postgres:/var/lib/postgresql"]
    assert "postgres" in stack["volumes"]
    assert server["healthcheck"]["test"][:3] == ["CMD", "pg_isready", "--host=127.0.0.1"]
    assert server["networks"] == ["internal"] and "ports" not in server
    assert (server["user"], server["cap_drop"], server["read_only"]) == ("postgres", ["ALL"], True)


def test_nodes_wait_for_their_server_and_have_its_url() -> None:
    """Every node that reads the variable gets the URL, and starts when the migrations are done."""
    url = "postgresql://bakery_service:${POSTGRES_SERVICE_PASSWORD:?must be set}@postgres:5432/bakery"
    waits = {
        "postgres": {"condition": "service_healthy"},
        "postgres-schema": {"condition": "service_completed_successfully"},
    }
    services = parse(spec(BAKERY), "village")["services"]
    for name in ("shop", "oven-0", "oven-1"):
        assert services[name]["environment"]["BAKERY_DATABASE"] == url
        assert services[name]["depends_on"] == waits
        assert not [each for each in services[name]["environment"] if each.startswith("OWNER_")]


def test_no_node_has_the_password_of_the_tables_owner() -> None:
    """A container that ends runs the migrations; it alone has the password of their owner."""
    services = parse(spec(BAKERY), "village")["services"]
    schema = services["postgres-schema"]
    assert schema["command"] == "python -m runtime.stores.postgres migrate bakery"
    assert (schema["restart"], schema["depends_on"]) == ("no", {"postgres": {"condition": "service_healthy"}})
    nodes, owner = (
        "bakery_service:${POSTGRES_SERVICE_PASSWORD:?must be set}",
        "bakery:${POSTGRES_PASSWORD:?must be set}",
    )
    assert schema["environment"] == {
        "BAKERY_DATABASE": f"postgresql://{nodes}@postgres:5432/bakery",
        "OWNER_BAKERY_DATABASE": f"postgresql://{owner}@postgres:5432/bakery",
    }
    using = [name for name, each in services.items() if "POSTGRES_PASSWORD" in str(each)]
    assert sorted(using) == ["postgres", "postgres-schema"]


def test_http_ports_of_ingress_nodes_are_published() -> None:
    """Clients reach the HTTP port of an ingress node, and the ovens by no port at all."""
    services = parse(spec(BAKERY), "village")["services"]
    assert services["shop"]["ports"] == ["127.0.0.1:${SHOP_PORT:-7101}:${SHOP_PORT:-7101}"]
    assert "ports" not in services["oven-0"]
    api = parse(spec("spec/orchestrator"), "compose")["services"]["api"]
    assert len(api["ports"]) == 2


def test_callers_over_http_may_have_a_token() -> None:
    """Tokens stay possible where methods have routes, also beside certificates."""
    services = parse(spec("spec/orchestrator"), "compose")["services"]
    assert "ACCEPTED_TOKENS" in services["api"]["environment"]
    assert "ACCEPTED_TOKENS" not in services["worker-0"]["environment"]


def test_nodes_are_checked_over_http_from_within() -> None:
    """The check requests readiness on the node's own port."""
    test = parse(spec(BAKERY), "village")["services"]["oven-1"]["healthcheck"]["test"]
    assert "--mode http --target 127.0.0.1:$${OVEN_PORT}/readyz " in test[1]


def test_a_deployment_of_one_machine_has_no_compose_file() -> None:
    """Nodes that listen for their own machine only could not be reached in a container."""
    assert list_container_deployments(spec(BAKERY)) == ["village"]
    assert not any("/home/" in path for path in texts(compose.emit, spec(BAKERY)))
