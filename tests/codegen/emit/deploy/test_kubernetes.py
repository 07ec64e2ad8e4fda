"""The Kubernetes bases: valid, closed by default and open exactly where the caller matrix says so."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from codegen.emit.deploy import kubernetes
from tests.support import quick_yaml
from tests.support.codegen.specs import FOLDERS, change_spec, list_container_deployments, run, spec, texts

VALIDATE = Path(sys.executable).parent / "kubernetes-validate"
TASKQUEUE = "spec/taskqueue"
NAME = "app.kubernetes.io/name"


@cache
def list_documents(folder: str, deployment: str) -> list[Any]:
    """All objects of a deployment."""
    start = f"generated/{spec(folder).name}/deploy/{deployment}/kubernetes/"
    found = [text for path, text in texts(kubernetes.emit, spec(folder)).items() if path.startswith(start)]
    return [document for text in found for document in quick_yaml.read_all(text)]


def find_document(folder: str, deployment: str, kind: str, name: str) -> Any:
    (found,) = [
        each
        for each in list_documents(folder, deployment)
        if each["kind"] == kind and each["metadata"]["name"] == name
    ]
    return found


def list_workloads(folder: str, deployment: str) -> Iterator[Any]:
    for each in list_documents(folder, deployment):
        if each["kind"] in ("Deployment", "StatefulSet"):
            yield each


def container(workload: Any) -> Any:
    return workload["spec"]["template"]["spec"]["containers"][0]


def test_every_object_fits_its_schema(tmp_path: Path) -> None:
    """Kubernetes knows every field of every object that is made."""
    files = []
    for folder in FOLDERS:
        for path, text in texts(kubernetes.emit, spec(folder)).items():
            if not path.endswith("kustomization.yaml"):
                files.append(tmp_path / path.replace("/", "-"))
                files[-1].write_text(text, encoding="utf-8")
    # All in one call: the command takes longer to start than to check.
    completed = run(VALIDATE, "--strict", *files)
    assert completed.returncode == 0, completed.stdout


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_base_lists_all_its_files(folder: str) -> None:
    """Kustomize lists every file beside it, and no other."""
    found = texts(kubernetes.emit, spec(folder))
    for path, text in found.items():
        if path.endswith("/kustomization.yaml"):
            start = path.removesuffix("kustomization.yaml")
            beside = {each.removeprefix(start) for each in found if each.startswith(start)}
            assert set(quick_yaml.read(text)["resources"]) | {"kustomization.yaml"} == beside


@pytest.mark.parametrize("folder", FOLDERS)
def test_pods_may_do_no_more_than_they_need(folder: str) -> None:
    """Each pod satisfies the restricted profile that its namespace enforces."""
    for deployment in list_container_deployments(spec(folder)):
        for workload in list_workloads(folder, deployment):
            pod = workload["spec"]["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            assert pod["automountServiceAccountToken"] is False
            assert container(workload)["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"requests", "limits"} == set(container(workload)["resources"])


def test_kubernetes_does_not_overwrite_ports_with_links() -> None:
    """A service named job would put its link into JOB_PORT, so pods get no links."""
    for deployment in spec(TASKQUEUE).deployments.root:
        for workload in list_workloads(TASKQUEUE, deployment):
            assert workload["spec"]["template"]["spec"]["enableServiceLinks"] is False


@pytest.mark.req("TQ-190")
def test_pods_have_the_same_upstreams_as_containers() -> None:
    """The addresses of compose are those of the services here."""
    env = container(find_document(TASKQUEUE, "microservices", "Deployment", "gateway"))["env"]
    environment = {row["name"]: row["value"] for row in env}
    assert environment["JOB_SERVICE_ADDR"] == "job:50052"
    assert environment["QUEUE_SERVICE_ADDR"] == "queue:50053"
    assert environment["RESULT_SERVICE_ADDR"] == "result:50055"
    assert find_document(TASKQUEUE, "microservices", "Service", "result")["spec"]["ports"][0]["port"] == 50055


@pytest.mark.req("TQ-177")
def test_the_worker_has_no_service_and_no_port() -> None:
    """Nothing in the cluster can call the worker."""
    services = [each for each in list_documents(TASKQUEUE, "microservices") if each["kind"] == "Service"]
    assert "worker" not in [each["metadata"]["name"] for each in services]
    assert "ports" not in container(find_document(TASKQUEUE, "microservices", "Deployment", "worker"))


def test_a_listener_is_probed_itself_and_the_worker_by_its_healthcheck() -> None:
    """A listener has all three probes; a worker that lost its coordinator is unready, but not restarted."""
    gateway = container(find_document(TASKQUEUE, "microservices", "Deployment", "gateway"))
    intervals = {"periodSeconds": 5, "timeoutSeconds": 2}
    for probe, failures in (("startupProbe", 16), ("readinessProbe", 12), ("livenessProbe", 12)):
        assert gateway[probe] == {"tcpSocket": {"port": "api"}, **intervals, "failureThreshold": failures}
    worker = container(find_document(TASKQUEUE, "microservices", "Deployment", "worker"))
    command = "python -m scripts.healthcheck --mode worker --target ${COORDINATOR_ADDR}"
    options = "--timeout-ms 1000 --service worker"
    assert worker["readinessProbe"]["exec"]["command"] == ["sh", "-c", f"{command} {options}"]
    assert not {"startupProbe", "livenessProbe"} & set(worker)


def test_replicas_with_an_index_are_a_stateful_set() -> None:
    """Six monoliths get their index from their pod and list each other by name."""
    monolith = find_document(TASKQUEUE, "monolith", "StatefulSet", "monolith")
    assert monolith["spec"]["replicas"] == 6
    assert find_document(TASKQUEUE, "monolith", "Service", "monolith")["spec"]["clusterIP"] == "None"
    environment = {row["name"]: row for row in container(monolith)["env"]}
    place = environment["NODE_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert place == "metadata.labels['apps.kubernetes.io/pod-index']"
    assert environment["NODE_ADDRS"]["value"].split(",") == [
        f"monolith-{each}.monolith:50051" for each in range(6)
    ]


def test_a_single_node_never_runs_twice() -> None:
    """A single node may own its data, so the new pod waits for the old one to end."""
    assert find_document(TASKQUEUE, "microservices", "Deployment", "job")["spec"]["strategy"] == {
        "type": "Recreate"
    }


def test_certificates_are_mounted_from_a_secret() -> None:
    """Certificate, key and authority are at the paths of the variables, readable by the node's group only."""
    workload = find_document(TASKQUEUE, "microservices", "Deployment", "queue")
    environment = {row["name"]: row["value"] for row in container(workload)["env"]}
    assert environment["TLS_CERT_FILE"] == "/run/secrets/proof/tls.crt"
    volume = {row["name"]: row for row in workload["spec"]["template"]["spec"]["volumes"]}["proof"]
    assert volume["secret"] == {"secretName": "queue-tls", "defaultMode": 0o440}


def test_a_required_variable_without_a_value_comes_from_a_secret() -> None:
    """A value that neither the spec nor another node has is read from the node's settings."""

    def require(data: Any) -> None:
        data["variables"]["DOORS"] = {"type": "int", "required": True, "read_by": ["vault"], "doc": "Doors."}

    of = change_spec(spec("tests/specs/locker"), "environment", require)
    text = texts(kubernetes.emit, of)["generated/locker/deploy/branch/kubernetes/vault.yaml"]
    environment = {row["name"]: row for row in container(list(quick_yaml.read_all(text))[-1])["env"]}
    secret = {"name": "vault-settings", "key": "DOORS", "optional": False}
    assert environment["DOORS"]["valueFrom"]["secretKeyRef"] == secret


def list_flows(folder: str, deployment: str, direction: str) -> set[tuple[str, str, int]]:
    """(caller, callee, port) of all policies, by their egress or ingress rules; outsiders are '*'."""
    other = {"ingress": "from", "egress": "to"}[direction]
    found = set()
    for policy in list_documents(folder, deployment):
        selector = policy.get("spec", {}).get("podSelector", {}).get("matchLabels", {})
        if policy["kind"] == "NetworkPolicy" and NAME in selector:
            for rule in policy["spec"].get(direction, []):
                ends = [row["podSelector"]["matchLabels"][NAME] for row in rule.get(other, [])] or ["*"]
                for end in ends:
                    pair = (end, selector[NAME]) if direction == "ingress" else (selector[NAME], end)
                    found |= {(*pair, row["port"]) for row in rule["ports"]}
    return found


@pytest.mark.req("TQ-019")
def test_the_network_is_open_exactly_where_the_matrix_is() -> None:
    """Both ends of each call of the matrix may talk, clients reach the gateway, and that is all."""
    inside = {
        ("gateway", "job", 50052),
        ("gateway", "queue", 50053),
        ("gateway", "result", 50055),
        ("coordinator", "job", 50052),
        ("coordinator", "queue", 50053),
        ("coordinator", "result", 50055),
        ("worker", "coordinator", 50054),
    }
    assert list_flows(TASKQUEUE, "microservices", "egress") == inside
    assert list_flows(TASKQUEUE, "microservices", "ingress") == inside | {("*", "gateway", 50051)}


def test_components_in_one_process_need_no_network() -> None:
    """Monoliths receive calls from outside and make none."""
    assert list_flows(TASKQUEUE, "monolith", "ingress") == {("*", "monolith", 50051)}
    assert list_flows(TASKQUEUE, "monolith", "egress") == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_everything_else_is_denied(folder: str) -> None:
    """Every pod of the namespace is closed in both directions until a policy opens it; DNS is allowed."""
    for deployment in list_container_deployments(spec(folder)):
        deny = find_document(folder, deployment, "NetworkPolicy", "default-deny")
        assert deny["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
        names = find_document(folder, deployment, "NetworkPolicy", "allow-dns")
        assert names["spec"]["podSelector"] == {}
        assert {row["port"] for row in names["spec"]["egress"][0]["ports"]} == {53}


BAKERY = "tests/specs/bakery"


def test_http_has_a_port_a_service_and_probes_of_its_own() -> None:
    """A node with HTTP has separate probes of liveness and readiness, on its HTTP port."""
    shop = container(find_document(BAKERY, "village", "Deployment", "shop"))
    assert shop["ports"] == [{"name": "http", "containerPort": 7101}]
    probes = {probe: shop[probe]["httpGet"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
    alive = {"path": "/healthz", "port": "http", "scheme": "HTTP"}
    assert probes == {
        "startupProbe": alive,
        "readinessProbe": {**alive, "path": "/readyz"},
        "livenessProbe": alive,
    }
    service = find_document(BAKERY, "village", "Service", "shop")["spec"]
    assert service["ports"] == [{"name": "http", "port": 7101, "targetPort": "http"}]


def test_where_nodes_have_certificates_probes_speak_tls() -> None:
    """With a certificate a node serves HTTPS and nothing else, and its probe follows."""
    api = container(find_document("spec/orchestrator", "compose", "Deployment", "api"))
    assert api["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http", "scheme": "HTTPS"}
    assert [each["name"] for each in api["ports"]] == ["api", "http"]


def test_the_address_of_the_server_is_in_a_secret() -> None:
    """The address of the database, with its password, is in a secret and in no manifest."""
    for name in ("shop", "oven"):
        environment = {
            row["name"]: row for row in container(find_document(BAKERY, "village", "Deployment", name))["env"]
        }
        secret = {"name": "postgres", "key": "BAKERY_DATABASE"}
        assert environment["BAKERY_DATABASE"]["valueFrom"] == {"secretKeyRef": secret}


def test_nodes_reach_their_server_and_clients_reach_http() -> None:
    """Each node may connect to the database; only the shop is open to clients."""
    assert list_flows(BAKERY, "village", "egress") == {("shop", "*", 5432), ("oven", "*", 5432)}
    assert list_flows(BAKERY, "village", "ingress") == {("*", "shop", 7101)}


def test_nodes_without_data_of_their_own_are_replaced_one_by_one() -> None:
    """Where a server stores everything the new pod starts before the old one ends."""
    assert "strategy" not in find_document(BAKERY, "village", "Deployment", "shop")["spec"]


def test_a_deployment_of_one_machine_has_no_manifests() -> None:
    """Nodes that listen for their own machine only could not be reached in a container."""
    assert list_documents(BAKERY, "home") == []
