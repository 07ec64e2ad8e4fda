"""The plan of the launcher before any node is healthy: ports, tokens and settings."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from runtime.launch import NotHealthy, PortsTaken, WrongSettings, launched
from runtime.launch.__main__ import command
from runtime.node.systems import deployment_names, system_names

MICROSERVICES = "taskqueue.microservices"
NODES = ["gateway", "job", "queue", "coordinator", "worker", "result"]
NO_PATIENCE = 0.0
"""No node is asked for its health, however long the start of the processes took."""


async def test_replicas_take_consecutive_ports() -> None:
    """Replicas that are given a port take it and those after it, and know their place among all of them."""
    for base in range(20_000, 30_000, 100):
        replicas = launched(
            "taskqueue.monolith", tls=False, settings={"NODE_PORT": str(base)}, patience=NO_PATIENCE
        )
        try:
            async with replicas:
                raise AssertionError("no node is healthy so soon")
        except PortsTaken:
            continue
        except NotHealthy:
            break
    addresses = [f"127.0.0.1:{base + index}" for index in range(6)]
    assert list(replicas.endpoints.values()) == addresses
    for index, process in enumerate(replicas.processes.values()):
        variables = process.plan.variables
        assert process.name == f"monolith-{index}"
        assert variables["NODE_INDEX"] == str(index)
        assert variables["NODE_ADDRS"] == ",".join(addresses)
        assert variables["NODE_PORT"] == str(base + index)
        assert variables["WORKER_ID"] == process.name
        assert not process.running


async def test_without_tls_each_principal_has_a_token_of_its_own() -> None:
    """Every node gets its own token and the digests of all, and no token is another node's."""
    running = launched(MICROSERVICES, ports="auto", tls=False, patience=NO_PATIENCE)
    with pytest.raises(NotHealthy):
        async with running:
            pass
    variables = {name: process.plan.variables for name, process in running.processes.items()}
    tokens = {name: found["CALLER_TOKEN"] for name, found in variables.items()}

    assert len(set(tokens.values())) == len(NODES)
    for found in variables.values():
        digests = dict(pair.split("=") for pair in found["ACCEPTED_TOKENS"].split(","))
        assert digests == {name: hashlib.sha256(token.encode()).hexdigest() for name, token in tokens.items()}
        assert "TLS_KEY_FILE" not in found


async def test_a_deployment_that_is_announced_has_a_name_of_its_own(tmp_path: Path) -> None:
    """All its nodes have the same, as have all runs with the same data; so has a client."""
    names: list[str] = []
    for folder, settings in (("a", {}), ("a", {}), ("b", {}), ("b", {"DEPLOYMENT_NAME": "blue"})):
        running = launched(
            "queuey.local",
            ports="auto",
            tls=False,
            settings=settings,
            data=tmp_path / folder,
            patience=NO_PATIENCE,
        )
        with pytest.raises(NotHealthy):
            async with running:
                pass
        found = {each.plan.variables["DEPLOYMENT_NAME"] for each in running.processes.values()}
        assert found == {running.env["DEPLOYMENT_NAME"]}
        names += found
    assert names[0] == names[1]
    assert len({*names[1:]}) == 3
    assert names[3] == "blue"


async def test_wrong_settings_are_reported_all_at_once() -> None:
    """A variable that is not read, one of the launcher and a bad value are in one message."""
    settings = {"WORKER_SLOT": "2", "JOB_SERVICE_ADDR": "a:1", "GATEWAY_PORT": "x", "PYTHONUNBUFFERED": "0"}

    with pytest.raises(WrongSettings) as wrong:
        async with launched(MICROSERVICES, settings=settings):
            pass

    assert wrong.value.problems[0] == (
        "No node of taskqueue.microservices reads WORKER_SLOT. Did you mean 'WORKER_SLOTS'?"
    )
    assert wrong.value.problems[1] == "JOB_SERVICE_ADDR is given by the launcher and cannot be set."
    assert wrong.value.problems[2] == "PYTHONUNBUFFERED is given by the launcher and cannot be set."
    assert wrong.value.problems[3].startswith("GATEWAY_PORT: must be a port")


async def test_a_rule_between_variables_is_checked_before_anything_starts() -> None:
    """The launcher refuses the same settings as a node, in the same words."""
    with pytest.raises(WrongSettings, match="must be able to miss a beat"):
        async with launched(MICROSERVICES, ports="auto", settings={"WORKER_TIMEOUT_MS": "10"}):
            pass


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["up", "taskqueue.microservces"], "Did you mean 'taskqueue.microservices'?"),
        (["up", "taskqueue"], f"There are: {', '.join(deployment_names())}."),
        (
            ["up", "other.microservices"],
            f"There is no system 'other'. There are: {', '.join(system_names())}.",
        ),
        (["up", MICROSERVICES, "--set", "LOG_LEVEL"], "'LOG_LEVEL' is not NAME=VALUE."),
        (["up", MICROSERVICES, "--set", "LOG_LEVEL=loud"], "LOG_LEVEL: must be one of DEBUG, INFO"),
        (["up", MICROSERVICES, "--port", "auto"], "Did you mean '--ports'?"),
    ],
)
def test_a_mistyped_argument_is_reported_with_a_suggestion(arguments: list[str], message: str) -> None:
    """A slip of the pen ends with exit code 2 and the likeliest cure."""
    result = CliRunner().invoke(command, arguments)

    assert result.exit_code == 2
    assert message in result.stderr
