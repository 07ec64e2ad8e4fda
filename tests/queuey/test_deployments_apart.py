"""Two deployments on one network: clients and runners use the nodes of one of them, and never mix them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from handlers.queuey.samples import binary
from runtime.cli import charter
from tests.support.queuey.processes import PATIENCE_S, Process, Works

BRISK = {"MDNS_ENABLED": "true", "RUN_SECONDS": "60"}
LOOKS = {"QUEUE_ADDR": "", "STORE_URL": ""}


class Town:
    """Two deployments by their names, each with a runner that found it by its name alone."""

    def __init__(self, folder: Path, deployments: dict[str, Works]) -> None:
        self.folder = folder
        self.deployments = deployments
        self.sample = str(folder / "echo.wasm")
        Path(self.sample).write_bytes(binary("echo"))

    def run(self, *arguments: str, env: dict[str, str] | None = None, stdin: bytes = b"") -> Result:
        """Run a command of a user with these variables only."""
        return CliRunner(env=env or {}).invoke(charter, ["queuey", *arguments], input=stdin)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    folders = [tmp_path_factory.mktemp(each) for each in ("one", "other")]
    names = [f"{each.name}-{uuid4().hex[:8]}" for each in folders]
    first, second = (
        Works(folder, **BRISK, DEPLOYMENT_NAME=name) for folder, name in zip(folders, names, strict=True)
    )
    with first, second:
        for each in (first, second):
            each.runner("seeker", **LOOKS).wait()
        yield Town(folders[0], {names[0]: first, names[1]: second})


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine answers late; no test here waits for something that does not exist.

    What has a name or an address is unique, so that nothing more need be awaited once it is found.
    """
    monkeypatch.setattr("runtime.cli.location._LOOK_S", PATIENCE_S)
    monkeypatch.setattr("runtime.cli.location._SETTLE_S", 0.1)


def read_discovered(runner: Process) -> str:
    return " ".join(each["message"] for each in runner.events("found_upstream"))


@pytest.mark.req("QQ-055", "QQ-X01", "QQ-X12")
def test_each_run_stays_in_its_chosen_deployment(town: Town) -> None:
    """Four runs, two in each, by the option and by the variable: each is run by the runner of its own."""
    for name, works in town.deployments.items():
        for chosen, option in (({"DEPLOYMENT_NAME": name}, ()), ({}, ("--deployment", name))):
            content = f"{name} {bool(chosen)}".encode()
            completed = town.run("run", town.sample, *option, env=chosen, stdin=content)
            assert (completed.exit_code, completed.stdout_bytes) == (0, content), completed.stderr
            job = works.job(completed.stderr.split()[1])
            assert works.content(job["output_addr"]) == content
            assert town.run("wait", job["job_id"], *option, env=chosen).stdout == "completed\n"


@pytest.mark.req("QQ-055", "QQ-X01")
def test_a_runner_finds_queue_and_store_of_its_own_deployment(town: Town) -> None:
    for name, works in town.deployments.items():
        message = read_discovered(works.runners[0])
        assert f"127.0.0.1:{works.queue.ports['port']}: " in message and works.store.url in message
        assert message.count(f" of {name} ") == 2


@pytest.mark.req("QQ-X12")
def test_without_a_choice_a_command_lists_the_deployments(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names them and exits with 2; nothing is submitted anywhere."""
    monkeypatch.setattr("runtime.cli.location._SETTLE_S", 5.0)
    before = [works.count() for works in town.deployments.values()]
    for arguments in (("submit", town.sample), ("wait", "x"), ("count-jobs",)):
        completed = town.run(*arguments)
        assert completed.exit_code == 2, completed.output
        assert "Several deployments are on the network: " in completed.stderr
        assert "Choose by --deployment or DEPLOYMENT_NAME" in completed.stderr
    assert [works.count() for works in town.deployments.values()] == before


@pytest.mark.req("QQ-X01")
def test_without_a_choice_a_runner_refuses_to_start(town: Town) -> None:
    """It exits with 2, as for any other wrong setting, and claims nothing."""
    lost = Process(town.folder, "runner", "lost", {**BRISK, **LOOKS, "RUNNER_ID": "lost"}).begin()
    assert lost.process is not None
    assert lost.process.wait(PATIENCE_S) == 2
    message = lost.events("settings_invalid")[0]["message"]
    assert "Several deployments are on the network: " in message
    assert "Choose by DEPLOYMENT_NAME or QUEUE_ADDR and STORE_URL" in message


@pytest.mark.req("QQ-X01", "QQ-X12")
def test_one_address_decides_the_deployment(town: Town) -> None:
    """The store is that of the queue, for a runner and for a client."""
    for works in town.deployments.values():
        half = works.runner("half", STORE_URL="", DEPLOYMENT_NAME="").wait()
        assert works.store.url in read_discovered(half)
        completed = town.run("run", town.sample, env={"QUEUE_URL": works.queue.url}, stdin=b"half")
        assert (completed.exit_code, completed.stdout_bytes) == (0, b"half"), completed.stderr
        works.runners.remove(half)
        half.kill()


@pytest.mark.req("QQ-X05", "QQ-X12")
def test_every_method_discovers_the_queue_as_other_commands_do(town: Town) -> None:
    """By the name of the deployment, and by the URL of the queue."""
    for name, works in town.deployments.items():
        job = works.submit("noop")
        for env in ({"DEPLOYMENT_NAME": name}, {"QUEUE_URL": works.queue.url}):
            output = town.run("get-job", job, "--json", env=env)
            assert (output.exit_code, job in output.stdout) == (0, True), output.stderr
